"""The layer: what an agent does to files beside its copy has its result for the agent, and none for anybody else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness.seal import Bind, SealBroken, Wanted, gateway
from secondtake.harness.seal.checks import written
from secondtake.harness.seal.layer import Layered, Mount, mounted
from tests.harness.processes import Pipe
from tests.harness.seal.scenes import ENV, OTHER, PREFIXES, ROOT, Host, agent, as_other, needs, other_user, proxy, run, stand

HERE = Path(__file__).parent


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """All there is to say of each entry below a folder, but when it was read."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, content)
    return found


class Place:
    """A home, a folder beside, and a workspace with its copy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = folder / "world"
        self.home, self.beside, self.work = (self.world / name for name in ("home", "beside", "work"))
        self.copy = folder / "copy"
        for each in (self.home, self.beside / "deep", self.work, self.copy):
            each.mkdir(parents=True)
        (self.home / ".rc").write_text("as it was\n")
        (self.beside / "deep/file").write_text("kept\n")
        (self.beside / "deep/file").chmod(0o640)
        (self.work / "original").write_text("original\n")
        (self.copy / "original").write_text("copy\n")

    def run(self, *codes: str, **options: Any) -> list[str]:
        """Shell commands, each a start of its own on one stage; what each said. Beside the copy, nothing may be written for real."""
        before = state(self.world)

        async def go() -> list[str]:
            said = []
            given = {"discard": True, "binds": [Bind(self.copy, self.work)], "cwd": self.work, **options}
            async with proxy() as standing, stand(self.folder, standing.port, **given) as seal:
                if not seal.layered:
                    pytest.skip(f"no namespaces here: {'; '.join(seal.refused)}")
                assert seal.holes == ()
                for code in codes:
                    env = {"HOME": str(self.home), "TMPDIR": str(self.folder), "W": str(self.world)}
                    _, out = await agent(seal, self.folder, ["/bin/sh", "-c", f"exec 2>&1; {code}"], env=env, cwd=self.copy)
                    said.append(out)
            return said

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self.home))
            said = asyncio.run(go())
        assert state(self.world) == before
        return said


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestBesideTheCopy:
    def test_what_is_done_has_its_result_for_this_start_and_the_next_and_for_nobody_else(self, place: Place) -> None:
        """Issue 5, "a replay cannot hurt": removed, overwritten, renamed, made executable by full path; the checks that follow see it."""
        look = "ls $W $W/beside2; cat $W/home/.rc $W/work/original; stat -c %a $W/home/.rc"
        act = "rm -r $W/beside/deep; mv $W/beside $W/beside2; echo other > ~/.rc; chmod 755 ~/.rc; echo changed > original"
        first, second = place.run(f"cat $W/beside/deep/file; {act}; {look}", look)
        assert first == f"kept\n{second}"
        assert second == f"{place.world}:\nbeside2\nhome\nwork\n\n{place.world}/beside2:\nother\nchanged\n755\n"
        assert (place.copy / "original").read_text() == "changed\n"

    def test_what_one_seal_discards_the_next_does_not_see(self, place: Place) -> None:
        """Each take begins from the machine as it is."""
        for _ in range(2):
            assert place.run("cat ~/.rc; echo other > ~/.rc; touch $TMPDIR/new; ls $TMPDIR | grep -c new") == ["as it was\n1\n"]

    def test_a_push_to_a_folder_beside_arrives_there_for_the_agent_only(self, place: Place) -> None:
        """Issue 5: "a tool call that deletes files and pushes"."""
        git = needs("git")
        upstream = place.world / "upstream.git"
        subprocess.run([git, "init", "--quiet", "--bare", upstream], check=True)
        commit = "git init -q . && git add -A && git -c user.name=a -c user.email=a@mail.example commit -qm Fix"
        said = place.run(f"{commit} && git push -q {upstream} HEAD:main", f"git -C {upstream} log --format=%s main", cwd=place.work)
        assert said == ["", "Fix\n"]

    def test_a_package_is_installed_and_imported_and_is_not_there(self, place: Place) -> None:
        """What `pip install` does: files in a folder of the system's as root, else of the user's own."""
        name = f"secondtake_layer_{os.getpid()}"
        site = "/usr/local/lib/" if os.geteuid() == 0 else "$HOME/lib/"
        use = f"PYTHONPATH={site}{name} {sys.executable} -S -c 'import {name}; print({name}.__file__)'"
        _, used = place.run(f"mkdir -p {site}{name} && echo 1 > {site}{name}/{name}.py", use)
        assert used.endswith(f"lib/{name}/{name}.py\n")
        assert not Path(f"/usr/local/lib/{name}").exists()

    def test_root_changes_owners_and_the_root_itself_and_nothing_is_changed(self, place: Place) -> None:
        """Root may do anything to files: in the layer. `/dev` can only be read, and no disk in it."""
        if os.geteuid() != 0:
            pytest.skip("root is not who runs the tests")
        name = f"/secondtake-layer-{os.getpid()}"
        hosts = hashlib.sha256(Path("/etc/hosts").read_bytes()).hexdigest()
        code = f"chown 1234 ~/.rc && stat -c %u ~/.rc; mkdir {name} && ls -d {name}; echo x >> /etc/hosts && rm /etc/hosts && echo gone"
        disks = "for each in /dev/*; do [ -b $each ] && echo $each; done"
        devices = f"{disks}; rm /dev/null; echo > /dev/null && echo writable; touch /sys/fs/cgroup/x"
        moved = f"import os; os.rename('{place.beside}/deep', '{place.beside}/other')"  # not mv, which copies where it must
        rename = f'{sys.executable} -S -c "{moved}" && cat {place.beside}/other/file'
        said = place.run(f"{code}; {rename}; {devices}")[0].splitlines()
        assert said[:4] == ["1234", name, "gone", "kept"]
        assert [line.rpartition(": ")[2] for line in said[4:]] == ["Read-only file system", "writable", "Read-only file system"]
        assert not Path(name).exists()
        assert hashlib.sha256(Path("/etc/hosts").read_bytes()).hexdigest() == hosts
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)

    def test_what_may_not_be_written_outside_may_not_inside(self, place: Place) -> None:
        """A refusal that was recorded is one again: of folders that belong to others, which the layer must own as an ordinary user."""
        if os.geteuid() == 0:
            pytest.skip("root may write anything")
        said = place.run("for each in / /etc /usr /usr/share /var/lib; do mkdir $each/x; done; touch /var/tmp/x && ls /var/tmp/x")[0]
        assert said.count("Permission denied") == 5
        assert said.endswith("/var/tmp/x\n")
        assert not Path("/var/tmp/x").exists()

    def test_what_is_named_is_written_for_real_where_it_is(self, place: Place) -> None:
        """A tracer's log: by its own path, in a folder of memory too."""
        logs = place.folder / "logs"
        logs.mkdir()
        assert place.run(f"echo line > {logs}/log; touch {place.folder}/other", writable=(logs,)) == [""]
        assert [path.name for path in logs.iterdir()] == ["log"]
        assert not (place.folder / "other").exists()

    def test_files_of_tmp_are_there_but_none_of_ours_or_of_services(self, place: Place) -> None:
        """The recorded agent found what it had put in `/tmp`. The run directory holds the key of its authority."""
        (place.folder / "run").mkdir(mode=0o700)
        (place.folder / "run/key").write_text("secret")
        assert place.run(f"cat {place.beside}/deep/file; ls -A {place.folder}/run; ls /run | grep -v -e lock -e resolv.conf -e user") == [
            "kept\n"
        ]

    def test_a_link_in_a_copy_leads_to_nothing_that_is_real(self, place: Place) -> None:
        """A copy is a stranger's: where it has a link in the way of what must stay readable, nothing is made where the link leads."""
        program = place.work / "tools/program"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho ran\n")
        (place.copy / "tools").symlink_to(place.beside)
        place.run("true", readable=(*PREFIXES, program))

    def test_an_ordinary_user_has_the_layer_as_root_has(self) -> None:
        """Issue 5: root and unprivileged both. Most of the same tests, as another user of this machine."""
        chosen = "nobody_else or package or may_not_inside or where_it_is or none_of_ours"
        with other_user() as folder:
            tests = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder}/t", "-rs", "-k", chosen, f"{__file__}::TestBesideTheCopy"]
            done = as_other(folder, "-m", "pytest", *tests)
        assert done.returncode == 0, done.stdout
        assert " passed" in done.stdout
        assert "no namespaces" not in done.stdout


LOOK = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from tests.harness.seal.scenes import *
folder = Path(sys.argv[1])
names = ["disk/file", "disk.conf", "home/file", "others/deep/own/file", "top", "disk/deep/file"]
code = "cd $0; for each in $*; do echo new > $each; cat $each; done"
ran = run(folder, "/bin/sh", "-c", code, str(folder), *names, discard=True, cwd=folder, tier=None)
print(ran.seal.layered, ran.out, "".join((folder / name).read_text() for name in names), *ran.seal.holes, sep="|")
"""


class TestMounts:
    @pytest.mark.parametrize("user", [0, OTHER])
    def test_what_cannot_be_layered_can_only_be_read_and_is_named(self, user: int) -> None:
        """Fail closed. What can: a disk of its own, a mounted file, and all that lies beside them, though folders above are root's."""
        with other_user() as folder:
            (folder / "disk.conf").write_text("mounted\n")
            own = folder / "others/deep/own"
            own.mkdir(parents=True)
            for each in (folder / "home", folder / "disk"):
                each.mkdir()
            for each in (folder / "home/file", own / "file", folder / "top"):
                each.write_text("as it was\n")
            for each in (folder / "home", folder / "home/file", own, own / "file", folder / "disk.conf", folder / "top"):
                os.chown(each, OTHER, OTHER)
            code = LOOK.format(paths=[str(ROOT / ".src"), str(ROOT)])
            done = as_other(folder, "-c", code, str(folder), disk=folder / "disk", user=user)
            assert done.returncode == 0, done.stderr
            layered, said, left, *holes = done.stdout.removesuffix("\n").split("|")
            assert layered == "True"
            assert left == "on the disk\nmounted\n" + "as it was\n" * 3 + "on the disk\n"
            assert said.startswith("new\n" * 5 + f"{folder}: ")
            assert said.endswith(": Read-only file system\non the disk\n")
            assert holes == [f"{folder}/disk/deep can only be read"]

    def test_a_mount_is_read_from_the_kernels_table(self) -> None:
        """The last one at a place is what is seen there; names have escapes."""
        lines = [
            b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard",
            b"30 27 0:27 / /a\\040b rw master:1 - tmpfs tmpfs rw",
            b"31 30 0:28 / /a\\040b ro - squashfs none rw",
            b"32 27 0:29 / /net rw shared:3 - autofs none rw",
        ]
        assert mounted(lines) == {
            "/": Mount("ext4", closed=False),
            "/a b": Mount("squashfs", closed=True),
            "/net": Mount("autofs", closed=True),
        }

    def test_folders_of_others_that_lead_to_the_users_own_are_found(self, tmp_path: Path) -> None:
        """The kernel copies up nothing of another user's, so these are made in the layer beforehand."""
        if os.geteuid() != 0:
            pytest.skip("root is not who runs the tests: folders of two users are needed")
        for name in ("a/b/mine", "a/open", "a/shut", "mine/inner"):
            (tmp_path / name).mkdir(parents=True)
        for name in ("a/b/mine", "mine", "mine/inner"):
            os.chown(tmp_path / name, OTHER, OTHER)
        (tmp_path / "a/open").chmod(0o777)
        view = Layered({"binds": [], "readable": [], "writable": [], "private": [], "cwd": "/"}, {}, [])
        view.mounts, view.uid, view.looked = {}, OTHER, 0
        assert view._own("/x", str(tmp_path)) == ["/x/a/open", "/x/a/b"]


class TestSelfTest:
    def test_a_layer_that_lets_something_through_is_broken(self, place: Place) -> None:
        """D-02: a file made in HOME and above the working directory must not be there outside; it is taken away again."""

        class Leaking(gateway.Gateway):
            def _obey(self, started: gateway.Started, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
                for path in message.get("written", ()):
                    if Path(path).parent != Path("/"):
                        Path(path).touch()
                return super()._obey(started, message, descriptors)

        place.run("true")  # or skips
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("secondtake.harness.seal.sealing.Gateway", Leaking)
            with pytest.raises(SealBroken, match=f"what is written in {place.home} is written for real"):
                place.run("true")
        assert [path.name for path in place.home.iterdir()] == [".rc"]

    def test_what_is_written_for_real_by_order_is_not_tried(self, tmp_path: Path) -> None:
        """A scratch HOME stays as it was restored."""
        home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
        for each in (home, elsewhere / "work"):
            each.mkdir(parents=True)
        order = {"binds": [{"target": str(home)}], "writable": [], "cwd": f"{elsewhere}/work", "nonce": "n"}
        for given, expected in ((order, {elsewhere}), ({**order, "writable": [str(tmp_path)]}, set())):
            made = list(map(Path, written(given, str(home))))
            for path in made:
                path.unlink()
            assert {path.parent for path in made} - {Path("/")} == expected

    def test_without_namespaces_it_is_told_that_nothing_is_discarded(self, tmp_path: Path) -> None:
        """Degraded by name."""
        ran = run(tmp_path, "/bin/true", wanted=Wanted.OFF, discard=True, tier=None)
        assert "what is written outside the scratch copy is written for real" in ran.seal.holes
        assert not ran.seal.layered


def test_killed_it_leaves_nothing_and_changed_nothing(tmp_path: Path) -> None:
    """D-05: no mount, no namespace, no process, no file."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_text("as it was")
    run_dir = tmp_path / "run"
    run_dir.mkdir(mode=0o700)
    before, seen = Host.now(), state(home)
    namespaces = _mount_namespaces()
    pipe = Pipe()
    env = {**os.environ, **ENV, "HOME": str(home), "DISCARD": "1", "PYTHONPATH": f"{ROOT / '.src'}:{ROOT}"}
    command = [sys.executable, str(HERE / "driver.py"), str(run_dir), "0.1", "/bin/sh", "-c", "echo other > ~/file; cat ~/file; sleep 300"]
    process = subprocess.Popen(command, env=env, stdout=pipe.writer, stderr=pipe.writer, stdin=subprocess.DEVNULL, cwd=home)
    pipe.close_writer()
    try:
        pipe.until(b"other")
        process.send_signal(signal.SIGKILL)
        process.wait()
        pipe.rest()  # nobody holds it any more
    finally:
        process.kill()
        pipe.close()
    assert state(home) == seen
    assert Host.now() == before
    assert _mount_namespaces() == namespaces
    shutil.rmtree(run_dir)


def _mount_namespaces() -> set[str]:
    """Those of processes that could be ours: of the same user, started from this folder's driver."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if b"driver.py" in (each / "cmdline").read_bytes():
                found.add(str((each / "ns/mnt").readlink()))
        except OSError:
            continue
    return found
