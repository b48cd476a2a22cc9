"""The rows of the table: each measures secondtake and its reference in the same minutes, round by round, and returns figures.

A round is one measurement of each side, ours first in even rounds and the reference first in odd ones; the first round is dropped.
A figure is the median of its rounds, so that a burst of somebody else's work on the machine does not decide.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from bench import clients, scene
from bench.programs import Program, Programs
from secondtake.cassettes.exchange import Answer, Body, Channel, Digest, Ending, Exchange, Piece, Request
from secondtake.cassettes.records import End, Head
from secondtake.cassettes.store import Store

PATHS = 64
"""Different requests in the keep-alive rows, so that a lookup is part of each."""

TLS_RECORD_BYTES = 16_384
"""Requests arrive in records of this size; answers arrive event by event."""

MIB = 1024 * 1024
REPLAY_SETTINGS = ("--set", "server_replay_reuse=true", "--set", "server_replay_extra=404", "--set", "server_replay_refresh=false")


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    rounds: int
    requests: int
    """Per round, on kept-alive connections."""
    connects: int
    """Per round, with a connection each."""
    body_mb: int
    opened: int
    """Exchanges in the cassette that is opened."""
    turns: int
    events: int
    repeats: int
    """Starts per cassette."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    ours: float
    reference: float
    unit: str
    against: str
    ratio: float
    """As the goal speaks of it."""
    goal: str
    met: bool
    note: str = ""


class Bench:
    """What the rows share: the programs, the origin, the load generator, and recorded cassettes."""

    def __init__(self, folder: Path, effort: Effort) -> None:
        self.programs = Programs(folder)
        self.effort = effort
        self.load = clients.compiled(folder)
        self.flows = folder / "flows.mitm"

    @contextlib.contextmanager
    def set_up(self) -> Iterator[None]:
        """Start the origin and record what the replay rows need, with both programs."""
        with self.programs.origin() as origin:
            self.port = origin.port
            with self.programs.ours("record", "items", "--loopback") as proxy:
                clients.load(self.load, proxy.port, self.port, requests=PATHS, paths=PATHS)
            with self.programs.mitmdump("-w", self.flows) as proxy:
                clients.load(self.load, proxy.port, self.port, requests=PATHS, paths=PATHS)
            yield

    def interleaved(self, ours: Callable[[], float], reference: Callable[[], float]) -> tuple[list[float], list[float]]:
        """Measure both, turn about."""
        mine: list[float] = []
        other: list[float] = []
        for turn in range(self.effort.rounds + 1):
            for measure, into in ((ours, mine), (reference, other)) if turn % 2 == 0 else ((reference, other), (ours, mine)):
                into.append(measure())
        return mine[1:], other[1:]


def cheaper(what: str, against: str, goal: float, ours: Sequence[float], reference: Sequence[float], note: str = "") -> Row:
    """A row whose goal is `so many times cheaper`. Microseconds per request."""
    mine, other = statistics.median(ours), statistics.median(reference)
    return Row(what, mine, other, "µs", against, other / mine, f"≥ {goal:g}× cheaper", other / mine >= goal, spread(ours, reference) + note)


def at_most(what: str, against: str, goal: float, ours: Sequence[float], reference: Sequence[float], unit: str, note: str = "") -> Row:
    """A row whose goal is `at most so many times the reference`."""
    mine, other = statistics.median(ours), statistics.median(reference)
    return Row(what, mine, other, unit, against, mine / other, f"≤ {goal:g}×", mine / other <= goal, spread(ours, reference) + note)


def spread(ours: Sequence[float], reference: Sequence[float]) -> str:
    """Lowest and highest round of each side."""
    return f"ours {min(ours):.4g}–{max(ours):.4g}, reference {min(reference):.4g}–{max(reference):.4g}"


def cost(proxy: Program, send: Callable[[], object], requests: int) -> float:
    """Processor time of the proxy's process tree per request, in microseconds."""
    before = proxy.cpu_s()
    send()
    return (proxy.cpu_s() - before) / requests * 1e6


def replay(bench: Bench) -> Iterator[Row]:
    """One kilobyte, kept alive on both protocols, then a connection per request."""
    effort, port, load = bench.effort, bench.port, bench.load

    def keep_alive(proxy: Program) -> Callable[[], float]:
        return lambda: cost(
            proxy, lambda: clients.load(load, proxy.port, port, requests=effort.requests, connections=2, paths=PATHS), effort.requests
        )

    def kept_h2(proxy: Program) -> Callable[[], float]:
        return lambda: cost(proxy, lambda: clients.load_h2(proxy.port, port, requests=effort.requests, paths=PATHS), effort.requests)

    def reconnecting(proxy: Program) -> Callable[[], float]:
        return lambda: cost(
            proxy, lambda: clients.load(load, proxy.port, port, requests=effort.connects, paths=PATHS, reconnect=True), effort.connects
        )

    with bench.programs.ours("replay", "items") as ours, bench.programs.mitmdump("-S", bench.flows, *REPLAY_SETTINGS) as stock:
        for what, goal, measure in (
            ("replay, 1 KB keep-alive, HTTP/1.1, CPU per request", 10.0, keep_alive),
            ("replay, 1 KB keep-alive, HTTP/2, CPU per request", 3.0, kept_h2),
            ("replay, new connection per request, CPU", 3.0, reconnecting),
        ):
            mine, other = bench.interleaved(measure(ours), measure(stock))
            note = ""
            if measure is not kept_h2:
                with bench.programs.floor() as floor:
                    note = f"; floor {statistics.median([measure(floor)() for _ in range(3)]):.0f} µs"
            yield cheaper(what, "`mitmdump -S`", goal, mine, other, note)


def record(bench: Bench) -> Iterator[Row]:
    """Record, against a `mitmdump` that keeps nothing; then the way of one event."""
    effort, port = bench.effort, bench.port
    addon = Path(__file__).parent / "stream_addon.py"

    def keep_alive(proxy: Program, connections: int) -> Callable[[], float]:
        return lambda: cost(
            proxy,
            lambda: clients.load(bench.load, proxy.port, port, requests=effort.requests, connections=connections, paths=PATHS),
            effort.requests,
        )

    def lag(proxy: Program) -> Callable[[], float]:
        return lambda: statistics.median(clients.lags(proxy.port, port, events=effort.events, gap_ms=5))

    with bench.programs.ours("record", "load", "--loopback") as ours:
        with bench.programs.mitmdump() as stock:
            rounds = bench.interleaved(keep_alive(ours, 4), keep_alive(stock, 4))
            yield at_most("record, 1 KB keep-alive, CPU per request", "`mitmdump`, keeping nothing", 1.0, *rounds, "µs")
        with bench.programs.mitmdump("-s", addon) as streaming:
            yield at_most(
                "stream while recording, lag per event, p50", "`stream=True`", 1.1, *bench.interleaved(lag(ours), lag(streaming)), "µs"
            )


def large(bench: Bench) -> Iterator[Row]:
    """How much the process tree grows by one large body."""
    size = bench.effort.body_mb * 1_000_000
    path = f"/bytes/{size}"

    def growth(proxy: Program) -> float:
        with contextlib.closing(clients.tunnel(proxy.port, bench.port)) as warm:
            clients.get(warm, bench.port, "/bytes/1000000")
            clients.get(warm, bench.port, "/bytes/1000000")
        before = proxy.memory_bytes(peak=False)
        proxy.forget_peak()
        with contextlib.closing(clients.tunnel(proxy.port, bench.port)) as connection:
            clients.get(connection, bench.port, path)
        return (proxy.memory_bytes(peak=True) - before) / MIB

    with bench.programs.mitmdump() as stock:
        buffered = growth(stock)
    with bench.programs.ours("record", "large", "--loopback") as ours:
        recording = growth(ours)
    with bench.programs.ours("replay", "large") as ours:
        replaying = growth(ours)
    for what, grown in (("record", recording), ("replay", replaying)):
        label = f"{bench.effort.body_mb} MB body, memory growth, {what}"
        yield Row(label, grown, buffered, "MiB", "`mitmdump`, buffering", grown / buffered, "≤ 16 MiB", grown <= 16)


def opening(bench: Bench) -> Iterator[Row]:
    """From exec to the ready line, and memory then, by what is in the cassette."""
    number = bench.effort.opened
    with bench.programs.ours("record", "empty", "--loopback"):
        pass
    for name in ("item", "large"):
        with bench.programs.ours("record", f"many-{name}", "--loopback") as proxy:
            clients.load(bench.load, proxy.port, bench.port, requests=number, connections=4, prefix=f"/{name}/", paths=number)
    seconds: dict[str, list[float]] = {"empty": [], "many-item": [], "many-large": []}
    memory: dict[str, list[float]] = {name: [] for name in seconds}
    for _ in range(bench.effort.repeats + 1):
        for name, starts in seconds.items():
            with bench.programs.ours("replay", name) as proxy:
                starts.append(proxy.ready_s * 1000)
                memory[name].append(proxy.memory_bytes(peak=False) / MIB)
    what = f"open {number:,} exchanges for replay, start to ready"
    # Whatever else the machine does only ever adds to a start: the best of each is the one to compare.
    mine, other = min(seconds["many-item"]), min(seconds["empty"])
    note = spread(seconds["many-item"], seconds["empty"])
    yield Row(what, mine, other, "ms", "empty cassette, best of each", mine / other, "≤ 1.15×", mine / other <= 1.15, note)
    rss = [statistics.median(memory[name]) for name in ("empty", "many-item", "many-large")]
    note = f"empty {rss[0]:.1f}, with 32 KB bodies {rss[2]:.1f}"
    yield Row(
        f"memory at ready, {number:,} exchanges, 32 KB bodies", rss[2], rss[1], "MiB", "1 KB bodies", rss[2] / rss[1], "≤ 1.02×",
        rss[2] / rss[1] <= 1.02, note,
    )  # fmt: skip


def kept(bench: Bench) -> Iterator[Row]:
    """The model traffic of one session on disk, what encoding it costs, and what reading it costs."""
    turns = scene.session(bench.effort.turns)
    bodies = [body for turn in turns for body in (turn.request, turn.response)]
    zipped = sum(len(gzip.compress(body, 6)) for body in bodies)
    exchanges = [_call(seq, turn) for seq, turn in enumerate(turns)]
    compressor = zstandard.ZstdCompressor(level=3)
    root = bench.programs.folder / "kept"
    store = Store(root)

    def plain() -> float:
        begin = time.process_time()
        for body in bodies:
            compressor.compress(body)
        return (time.process_time() - begin) * 1000

    def ours() -> float:
        begin = time.process_time()
        write(store, "model", exchanges)
        return (time.process_time() - begin) * 1000

    mine, other = bench.interleaved(ours, plain)
    on_disk = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    raw = sum(map(len, bodies))
    what = f"model traffic of a {len(turns)}-turn session on disk"
    cache = sum(file.stat().st_size for file in root.rglob("index"))
    note = (
        f"{raw / 1e6:.1f} MB of bodies; without the index, a cache: {(on_disk - cache) / 1024:.1f} KiB, {zipped / (on_disk - cache):.1f}×"
    )
    yield Row(
        what, on_disk / 1024, zipped / 1024, "KiB", "gzip -6 per record", zipped / on_disk, "≥ 25× smaller", zipped >= 25 * on_disk, note
    )

    times = decode_times(store, "model", random.Random(3))
    worst = max(times)
    floor = min(_whole_ms(max(bodies, key=len)) for _ in range(9))
    note = f"processor time, nothing read before; median {statistics.median(times):.2f} ms; the largest as one zstd frame {floor:.2f} ms"
    yield Row("decode any body of it, slowest", worst, 2.0, "ms", "goal", worst / 2, "≤ 2 ms", worst <= 2, note)
    yield at_most("encode CPU, journal and hashes included", "zstd -3 per record", 1.0, mine, other, "ms")


def _whole_ms(body: bytes) -> float:
    """Milliseconds of processor time to unpack a body that is one zstd frame, and to check its digest: no store can do with less."""
    packed = zstandard.ZstdCompressor(level=3).compress(body)
    begin = time.thread_time()
    hashlib.sha256(zstandard.ZstdDecompressor().decompress(packed)).digest()
    return (time.thread_time() - begin) * 1000


def decode_times(store: Store, name: str, chance: random.Random) -> list[float]:
    """Milliseconds of processor time to read each body whole, the best of five in random order; nothing of the cassette was read before."""
    best: dict[Digest, float] = {}
    with store.open(name) as cassette:
        exchanges = [cassette.exchange(row.seq) for row in cassette.rows]
    bodies = [body for one in exchanges if one.answer is not None for body in (one.request.body, one.answer.body)]
    for _ in range(5):
        chance.shuffle(bodies)
        for body in bodies:
            with store.open(name) as cassette:
                begin = time.thread_time()
                source = cassette.body(body)
                data = source.read(0, source.size_bytes)
                took = (time.thread_time() - begin) * 1000
                assert len(data) == body.size_bytes
                best[body.digest] = min(took, best.get(body.digest, took))
    return list(best.values())


def write(store: Store, name: str, exchanges: Sequence[End]) -> None:
    """Keep exchanges as a recorder would: each begun and then committed."""
    failures: list[object] = []
    writer = store.create(name, meta={}, replace=True)
    for end in exchanges:
        exchange = end.exchange
        asked = dataclasses.replace(exchange.request, body=Body())  # it begins: its body is still to come
        writer.write([Head(exchange.seq, exchange.started_us, exchange.channel, asked)])
        writer.commit(end, failures.append)
    writer.close(meta={})
    if any(failures):
        raise RuntimeError(f"not stored: {failures}")


def _call(seq: int, turn: scene.Turn) -> End:
    records = [min(TLS_RECORD_BYTES, len(turn.request) - at) for at in range(0, len(turn.request), TLS_RECORD_BYTES)]
    request = _body(turn.request, records, 300, 20)
    events = [len(event) + 2 for event in turn.response.split(b"\n\n")[:-1]]
    response = _body(turn.response, events, 700_000, 12_000)
    fields = ((b"content-type", b"application/json"), (b"anthropic-version", b"2023-06-01"), (b"user-agent", b"agent/1.0"))
    asked = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=fields, body=request)
    answer = Answer(200, b"OK", fields=((b"content-type", b"text/event-stream"),), body=response, offset_us=700_000)
    start = seq * 3_000_000
    exchange = Exchange(seq, Channel.MODEL, start, asked, answer, Ending.COMPLETE, 2_500_000, adapter="anthropic")
    return End(exchange, {request.digest: turn.request, response.digest: turn.response})


def _body(data: bytes, cuts: Sequence[int], start_us: int, gap_us: int) -> Body:
    """A body that came in these sizes, one every `gap_us` and a little, as it does on a wire."""
    chance = random.Random(len(data))
    pieces = []
    for size in cuts:
        pieces.append(Piece(size, start_us))
        start_us += chance.randrange(gap_us, 2 * gap_us)
    return Body(Digest(hashlib.sha256(data).hexdigest()), len(data), tuple(pieces))
