"""`fixture`: a recorded scene as a folder that can be edited, put back, checked and passed on."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from secondtake.cassettes.errors import NameTaken
from secondtake.cli.exits import Exit, Unusable
from secondtake.cli.options import Decorator, Surface, complete_name, surface_options
from secondtake.cli.render.escape import visible_line


@click.group("fixture")
def command() -> None:
    """Make, check, restore and pass on the scene of a recording as a folder."""


def complete_fixture(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Names of fixtures in the store that begin with what was typed, for the shell."""
    from secondtake.cli.options import place_of
    from secondtake.harness.fixture import listed

    try:
        import os

        asked = context.params.get("store_dir") or context.find_root().params.get("store_dir")
        names = listed(Surface(place_of(asked, os.environ), json=False, quiet=True).store())
    except Exception:  # noqa: BLE001  # a completion that fails says nothing: the shell shows no errors
        return []
    return [name for name in names if name.startswith(incomplete)]


def fixture_argument() -> Decorator:
    """FIXTURE: a folder with a fixture.toml, an exported file, or the name of one in the store."""
    return click.argument("fixture", metavar="FIXTURE", shell_complete=complete_fixture)


@command.command("create")
@click.argument("name", metavar="NAME")
@click.option("--from", "recording", metavar="CASSETTE", shell_complete=complete_name, help="The recording; else that of the same name.")
@click.option("--dir", "into", metavar="DIR", type=click.Path(path_type=Path), help="Make it here instead of in the store.")
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The start tree, for a recording that has none.",
)
@click.option("--replace", is_flag=True, help="Replace the fixture of that name.")
@surface_options
def create(surface: Surface, name: str, recording: str | None, into: Path | None, workspace: Path | None, replace: bool) -> int:
    """Make a fixture from a recording, with a fixture.toml to edit."""
    from secondtake.cli.render.fixture import made_lines, shown_fields
    from secondtake.cli.render.progress import working
    from secondtake.cli.wire import stage_of
    from secondtake.harness.fixture.making import create as make

    with working(surface, f"making the fixture {name}"):
        made = make(
            stage_of(surface),
            name,
            recording=recording or name,
            into=into,
            workspace=None if workspace is None else workspace.absolute(),
            replace_it=replace,
        )
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**shown_fields(made.fixture), "not_captured": list(made.not_captured)}))
    for line in made_lines(made, again=surface.again, named=into is None):
        surface.say(line)
    return 0


@command.command("check")
@fixture_argument()
@surface_options
def check(surface: Surface, fixture: str) -> int:
    """Check a fixture, and whether a take would find what the recording did.

    Every byte is read. The scene is put back in a scratch folder and compared with the recorded envelope, layer by layer. What only
    traffic can tell (prompts, tools, parameters) is compared when a take has run. Exits 0 when nothing differs, 103 when something does.
    """
    from secondtake.cli.render.fixture import check_fields, check_lines, check_rows
    from secondtake.cli.render.progress import working
    from secondtake.cli.wire import stage_of
    from secondtake.harness.fixture import load
    from secondtake.harness.fixture.checking import check as compare

    stage = stage_of(surface)
    with working(surface, f"checking {fixture}"):
        found = compare(stage, load(fixture, stage.store))
    code = Exit.CLEAN if found.equal else Exit.DIVERGED
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**check_fields(found), "exit_code": int(code)}))
        return code
    if not found.equal:
        from secondtake.cli.render.tables import print_table

        print_table(["layer", "field", "recorded", "now"], check_rows(found))
    else:
        print("equal: a take would find what the recording did")
    for line in check_lines(found):
        surface.say(line)
    return code


@command.command("restore")
@fixture_argument()
@click.argument("into", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--home", metavar="DIR", type=click.Path(path_type=Path), help="Put the recorded files of HOME here.")
@surface_options
def restore(surface: Surface, fixture: str, into: Path, home: Path | None) -> int:
    """Put the recorded workspace into DIR.

    Files come with modes and links, repositories as they were and with nothing later.
    """
    from secondtake.cli.render.progress import working
    from secondtake.harness.fixture import load
    from secondtake.harness.fixture.staging import put_back

    found = load(fixture, surface.store())
    with working(surface, f"restoring {found.name}"):
        notes = put_back(found, into.absolute(), None if home is None else home.absolute())
    if surface.json:
        from secondtake.cli.render.objects import as_line

        told = {"fixture": found.name, "digest": found.digest, "dir": str(into), "home": None if home is None else str(home)}
        print(as_line({**told, "not_captured": list(found.stage.not_captured), "notes": list(notes)}))
    for line in (*(f"was not captured: {line}" for line in found.stage.not_captured), *notes):
        surface.say(visible_line(line))
    surface.say(f"restored {visible_line(found.name)} into {visible_line(str(into))}")
    return 0


@command.command("show")
@fixture_argument()
@click.option("--envelope", is_flag=True, help="Every field of the recorded envelope.")
@surface_options
def show(surface: Surface, fixture: str, envelope: bool) -> int:
    """Show what a fixture holds, and its digest."""
    from secondtake.cli.render.fixture import envelope_fields, envelope_rows, shown_fields, shown_lines
    from secondtake.harness.fixture import load

    found = load(fixture, surface.store())
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**shown_fields(found), **({"envelope": envelope_fields(found.envelope)} if envelope else {})}))
        return 0
    if envelope:
        from secondtake.cli.render.tables import print_table

        print_table(["layer", "field", "recorded"], envelope_rows(found.envelope))
        return 0
    for line in shown_lines(found):
        print(line)
    return 0


@command.command("export")
@fixture_argument()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@surface_options
def export(surface: Surface, fixture: str, file: Path, force: bool) -> int:
    """Write a fixture and its cassette as one file (a zip, same content same bytes)."""
    from secondtake.cli.render.progress import working
    from secondtake.cli.render.words import size
    from secondtake.harness.fixture import EXPORTED, load
    from secondtake.harness.fixture.packing import pack

    if file.exists() and not force:
        raise Unusable(f"{file} exists", hint=f"secondtake fixture export {fixture} {file} --force")
    if not file.absolute().parent.is_dir():
        raise Unusable(f"no directory {file.absolute().parent} to write {file.name} into", hint=f"mkdir -p {file.absolute().parent}")
    found = load(fixture, surface.store())
    with working(surface, f"exporting {found.name}"):
        pack(found, file)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"fixture": found.name, "digest": found.digest, "file": str(file), "bytes": file.stat().st_size}))
    else:
        surface.say(f"wrote {file} ({size(file.stat().st_size)}), digest {found.digest}")
        if file.suffix != EXPORTED:
            surface.say(f"hint: FIXTURE arguments know an exported file by its ending {EXPORTED}")
    return 0


@command.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--as", "as_name", metavar="NAME", help="Keep it under this name instead of its own.")
@surface_options
def import_(surface: Surface, file: Path, as_name: str | None) -> int:
    """Take an exported fixture into the store. It is checked first; a damaged one leaves nothing behind."""
    from secondtake.cli.render.progress import working
    from secondtake.harness.fixture.packing import take_in

    if not file.is_file():
        hint = "secondtake fixture export FIXTURE FILE makes one"
        raise Unusable(f"no file {file}" if not file.exists() else f"{file} is not a file", hint=hint)
    with working(surface, f"importing {file.name}"):
        try:
            taken = take_in(file, surface.store(), as_name)
        except NameTaken as error:
            hint = f"secondtake fixture import {shlex.quote(str(file))} --as NAME{surface.again}"
            raise NameTaken(str(error), hint=hint) from error
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"fixture": taken.name, "digest": taken.digest, "file": str(file)}))
    else:
        surface.say(f"imported as {taken.name}, digest {taken.digest}\n\nnext: secondtake fixture check {taken.name}{surface.again}")
    return 0


@command.command("ls")
@surface_options
def ls(surface: Surface) -> int:
    """List the fixtures in the store."""
    from secondtake.cassettes.errors import RecordedError
    from secondtake.cli.render.fixture import shown_fields
    from secondtake.cli.render.objects import as_line
    from secondtake.harness.fixture import listed, load

    store = surface.store()
    rows: list[list[str]] = []
    for name in listed(store):
        try:
            found = load(str(store.root / "fixtures" / name), store)
        except RecordedError as error:
            if surface.json:
                print(as_line({"fixture": name, "trouble": str(error)}))
            rows.append([name, "", "", "", str(error)])
            continue
        if surface.json:
            print(as_line(shown_fields(found)))
        checks = len(found.failure.check) + len(found.acceptance.check)
        rows.append([name, found.digest[:12], str(checks), shlex.join(found.command), ""])
    if surface.json:
        return 0
    if not rows:
        surface.say(f"no fixtures in {surface.place.root}\n\nhint: secondtake fixture create NAME --from CASSETTE")
        return 0
    from secondtake.cli.render.tables import print_table

    print_table(["fixture", "digest", ">checks", "command", "trouble"], rows)
    return 0
