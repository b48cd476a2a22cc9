"""The machine as an agent finds it: system, container, locale, time zone, limits. Read from the kernel's own files; runs nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import UNKNOWN

TIMEOUTS = (
    "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "STREAM_TIMEOUT_MS",
)  # fmt: skip
"""Variables that set a time limit of a tool or a call (documented by the agents that read them)."""

_LIMITS = {
    "open_files": resource.RLIMIT_NOFILE,
    "processes": getattr(resource, "RLIMIT_NPROC", None),
    "file_bytes": resource.RLIMIT_FSIZE,
    "memory_bytes": resource.RLIMIT_AS,
    "stack_bytes": resource.RLIMIT_STACK,
}
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the kernel's files are; another root in tests."""

    root: Path = Path("/")

    def environment(self, environ: Mapping[str, str], *, open_files: int | None = None) -> dict[str, Json]:
        """Return the fields that need no program to be run. `open_files`: the soft limit an agent gets, where ours differs."""
        return {
            "os": platform.system() or UNKNOWN,
            "distribution": self.distribution(),
            "architecture": platform.machine() or UNKNOWN,
            "kernel": platform.release() or UNKNOWN,
            "container": self.container(environ),
            "locale": locale(environ),
            "time_zone": self.time_zone(environ),
            "umask": self.umask(),
            "cpus": cpus(),
            "limits": {**limits(open_files), "memory_cgroup_bytes": self.memory()},
        }

    def text(self, path: str) -> str | None:
        """The beginning of a small file, or None."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(_LONGEST).decode("utf-8", "replace")
        except OSError:
            return None

    def distribution(self) -> Json:
        """Name and version by os-release(5)."""
        for path in ("/etc/os-release", "/usr/lib/os-release"):
            lines = dict(line.partition("=")[::2] for line in (self.text(path) or "").splitlines())
            name = lines.get("PRETTY_NAME", "").strip("\"'")
            if name:
                return name
        return UNKNOWN

    def container(self, environ: Mapping[str, str]) -> Json:
        """Kind and image of the container we are in. podman writes the image into `/run/.containerenv`; docker tells none inside."""
        podman = self.text("/run/.containerenv")
        if podman is not None:
            said = dict(line.partition("=")[::2] for line in podman.splitlines())
            image = said.get("imageid", "").strip('"') or said.get("image", "").strip('"')
            return {"kind": "podman", "image": image or UNKNOWN}
        if "KUBERNETES_SERVICE_HOST" in environ:
            return {"kind": "kubernetes", "image": UNKNOWN}
        if (self.root / ".dockerenv").exists():
            return {"kind": "docker", "image": UNKNOWN}
        groups = self.text("/proc/1/cgroup")
        found = re.search(r"docker|libpod|kubepods|lxc|containerd", groups or "")
        if found is not None:
            return {"kind": found[0], "image": UNKNOWN}
        return UNKNOWN if groups is None else None

    def time_zone(self, environ: Mapping[str, str]) -> Json:
        """TZ, else the zone that /etc/localtime names, else what it holds."""
        if "TZ" in environ:
            return environ["TZ"] or "UTC"
        place = self.root / "etc/localtime"
        try:
            if place.is_symlink():
                return str(place.readlink()).rpartition("zoneinfo/")[2] or UNKNOWN
            named = (self.text("/etc/timezone") or "").strip()
            return named or f"sha256:{hashlib.sha256(place.read_bytes()).hexdigest()}"
        except FileNotFoundError:
            return "UTC"
        except OSError:
            return UNKNOWN

    def umask(self) -> Json:
        """As the kernel says it; asking the C library would change it for a moment."""
        found = re.search(r"^Umask:\s*([0-7]+)$", self.text("/proc/self/status") or "", re.MULTILINE)
        return UNKNOWN if found is None else found[1]

    def memory(self) -> Json:
        """The memory limit of our control group (v2, as a container sees it); null where there is none."""
        said = self.text("/sys/fs/cgroup/memory.max") or self.text("/sys/fs/cgroup/memory/memory.limit_in_bytes")
        if said is None:
            return None
        value = said.strip()
        return int(value) if value.isdigit() and int(value) < 1 << 60 else None


def locale(environ: Mapping[str, str]) -> Json:
    """LANG, LANGUAGE and LC_*; empty means the C locale."""
    return {name: value for name, value in sorted(environ.items()) if name in ("LANG", "LANGUAGE") or name.startswith("LC_")}


def cpus() -> Json:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or UNKNOWN


def limits(open_files: int | None) -> dict[str, Json]:
    """Soft limits; null is none."""
    found: dict[str, Json] = {}
    for name, number in _LIMITS.items():
        if number is None:
            found[name] = UNKNOWN
            continue
        soft = open_files if name == "open_files" and open_files is not None else resource.getrlimit(number)[0]
        found[name] = None if soft == resource.RLIM_INFINITY else soft
    return found


def timeouts(environ: Mapping[str, str]) -> Json:
    """Time limits the environment sets; an empty object where it sets none."""
    return {name: environ[name][:40] for name in TIMEOUTS if name in environ}
