"""A container engine in namespaces of its own: no daemon, no trace on the host, no network but what a test makes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOOLS = {
    "buildah": "buildah",
    "crun": "crun",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "nsenter": "util-linux",
    "podman": "podman",
    "/usr/lib/podman/netavark": "netavark",
    "uv": "uv, from the Python index",
}
"""What is needed, and where it comes from."""

COMPOSE = "podman-compose==1.6.0"
STAND_IN = "localhost/python-stand-in:3.13"
"""The base image, which .ci/image makes; a test uses it as an image with an agent in it."""


def cache() -> Path:
    """Where base image and wheels are kept between runs: `$SECONDTAKE_IMAGES`, else a folder in the person's cache."""
    if named := os.environ.get("SECONDTAKE_IMAGES"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "secondtake-images"


def found(tool: str) -> str | None:
    return shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)


def missing() -> str:
    """Why no image can be built or run here; empty where one can."""
    if not sys.platform.startswith("linux"):
        return "containers are built and run on Linux only"
    if os.getuid() != 0:
        return "building the base image (mmdebstrap) and making networks needs root"
    lacking = [package for tool, package in TOOLS.items() if found(tool) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


@dataclass(frozen=True, slots=True)
class Engine:
    """Podman and podman-compose, as seen in the namespaces of `holder`."""

    holder: int
    folder: Path
    image: str

    def run(self, *command: str, timeout_s: int = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the namespaces, with the engine's settings."""
        settings = {
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "SECONDTAKE_IMAGE": self.image,
            "AGENT_IMAGE": STAND_IN,
            "WORKSPACE": str(self.folder / "workspace"),
            "PODMAN_COMPOSE_WARNING_LOGS": "false",
        }
        words = ["nsenter", f"--target={self.holder}", "--mount", "--net", f"--wdns={self.folder}", *command]
        env = {**os.environ, **settings, **environment}
        return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)

    def podman(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("podman", *words)

    def compose(self, *words: str) -> subprocess.CompletedProcess[str]:
        """podman-compose on the project's file, and on what the test says beside it."""
        words = ("-f", "compose.yaml", "-f", "beside.yaml", *words)
        return self.run(sys.executable, "-m", "podman_compose", *words, PYTHONPATH=str(podman_compose()), PYTHONSAFEPATH="1")


def podman_compose() -> Path:
    """The folder of podman-compose; fetched when it is first asked for, where there is a network."""
    folder = cache() / COMPOSE.replace("==", "-")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache()) as made:
            uv = [found("uv") or "uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", f"{made}/it", COMPOSE]
            ok(subprocess.run(uv, capture_output=True, text=True, timeout=300))
            Path(made, "it").rename(folder)
    return folder


def ok(ran: subprocess.CompletedProcess[str]) -> str:
    """What a command printed; it must have succeeded."""
    assert ran.returncode == 0, f"{ran.args}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


NAMESPACE = """
mount -t tmpfs none /run && mount -t tmpfs none /dev/shm && mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up && echo ready && read end
"""
"""Files of engines under /run, their locks in shared memory, and a hierarchy of control groups that crun knows, wherever we are."""


@contextmanager
def engine(image: str) -> Iterator[Engine]:
    """Give an engine; ends every container in it."""
    with tempfile.TemporaryDirectory(prefix="secondtake-engine-") as made:
        folder = Path(made)
        (folder / "workspace").mkdir()
        driver = (cache() / "driver").read_text().strip()
        (folder / "storage.conf").write_text(f'[storage]\ndriver="{driver}"\ngraphroot="{cache()}/storage"\nrunroot="/run/containers"\n')
        (folder / "containers.conf").write_text(
            # Limits: a sandbox may hold fewer rights than an engine expects of root.
            '[containers]\ncgroups="disabled"\ndefault_ulimits=["nofile=1024:1024","nproc=1000:1000"]\nlog_driver="k8s-file"\n'
            '[engine]\nruntime="crun"\ncgroup_manager="cgroupfs"\nevents_logger="file"\n'
            f'[network]\nnetwork_backend="netavark"\nnetwork_config_dir="{folder}/networks"\n'
        )
        holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", NAMESPACE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            assert holder.stderr is not None
            pytest.skip(f"no namespaces to run an engine in: {holder.stderr.read().decode().strip()}")
        it = Engine(holder.pid, folder, image)
        try:
            yield it
        finally:
            it.podman("rm", "--all", "--force", "--time", "1")
            it.podman("volume", "prune", "--force")
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()
            if holder.stderr is not None:
                holder.stderr.close()
