"""From a plain process to a sealed agent: namespaces, network, files, self-test, and the processes that stay. Standard library only.

Three processes stand below the one that launched us. The *outer* one is it; it stays outside of the process namespace, has the agent's
exit status in the end, and passes on signals that were meant for the agent. *init* is process 1 inside: what is orphaned comes to it, and
with it everything inside ends. The third becomes the agent. If the outer one dies, so does init, and the kernel ends all the rest.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from secondtake.harness.seal import checks, kernel, layer, mounts, network
from secondtake.harness.seal.confinement import confine
from secondtake.harness.seal.inside import NOT_SEALED
from secondtake.harness.seal.processes import Outer, become, init

_MESSAGE_BYTES = 1 << 20


class Refused(Exception):
    """The kernel does not allow a step; the message names it."""


class Control:
    """The socket to the gateway: one message a packet, JSON."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE_BYTES)
        self.socket.connect(_short(path))
        self.given: list[int] = []
        """Descriptors that came with the last answer."""

    def ask(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Say something and wait for the answer. The end of the gateway is the end of us."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())] if descriptors else []
        self.socket.sendmsg([json.dumps(message).encode()], ancillary)
        data, self.given, _, _ = socket.recv_fds(self.socket, _MESSAGE_BYTES, 2)
        if not data:
            sys.exit(NOT_SEALED)
        answer: dict[str, Any] = json.loads(data)
        return answer


def _short(path: str) -> str:
    """A path of a socket may be 107 bytes long; a longer one is reached through its folder."""
    if len(os.fsencode(path)) < 108:
        return path
    folder = os.open(os.path.dirname(path), os.O_PATH)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"


def main(arguments: Sequence[str]) -> int:
    """Make the seal and become the agent, or its keeper. Returns an exit status."""
    path, tier, *command = arguments
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        control = Control(path)
    except OSError as error:
        return _told(f"no gateway: {error.strerror}")
    order = control.ask({"tier": tier, "pid": os.getpid(), "trial": not command})
    try:
        if tier == "fenced":
            return _fenced(control, order, command)
        return _sealed(control, order, command, tier)
    except Refused as refused:
        control.ask({"refused": str(refused)})
        return _told(str(refused)) if command else NOT_SEALED


def _told(text: str) -> int:
    sys.stderr.write(f"secondtake: not sealed: {text}\n")
    return NOT_SEALED


def _step[T](what: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except OSError as error:
        raise Refused(f"{what}: {error.strerror or error}{f' ({error.filename})' if error.filename else ''}") from error


def _fenced(control: Control, order: dict[str, Any], command: Sequence[str]) -> int:
    version = kernel.landlock_version()
    if version < 4:
        raise Refused(f"Landlock: {'not in this kernel' if version == 0 else f'version {version} knows no network rules, 4 does'}")
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    _step("Landlock", lambda: kernel.landlock_tcp(order["port"], version))
    confine(capabilities=False)
    verdict = control.ask({"problems": checks.fenced_checks(order), "holes": _stream_holes()})
    if not verdict["go"]:
        return NOT_SEALED
    if not command:
        return 0
    control.socket.close()
    return become(command)


def _stream_holes() -> list[str]:
    names = ("standard input", "standard output", "standard error")
    return [f"{name} is a network connection" for number, name in enumerate(names) if checks.network_connection(number)]


def _sealed(control: Control, order: dict[str, Any], command: Sequence[str], tier: str) -> int:
    own_processes = order["own_processes"]
    start = Start(control, order, command, tier)
    _namespaces(own_processes, control.given)
    made = _step("loopback network", lambda: network.open_sockets(order["port"]))
    control.ask({"roles": [role for role, _ in made], "holes": _stream_holes()}, [each.fileno() for _, each in made])
    for _, each in made:
        each.close()
    outer = _step("pidfd", Outer)
    pid = os.fork()
    if pid:
        control.socket.close()
        return outer.run(pid)
    try:
        status = start.inner(outer)
    except Refused as refused:
        control.ask({"refused": str(refused)})
        status = NOT_SEALED
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as a second outer one
        with contextlib.suppress(OSError):
            control.ask({"refused": repr(error)})
        status = NOT_SEALED
    outer.report(status << 8)
    os._exit(status)


def _namespaces(own_processes: bool, given: Sequence[int]) -> None:
    """Enter them: as root directly, else, or where that is refused, with a user namespace, in which the user is who they are outside.

    `given` are those of an earlier start, whose view of the files is had by this one too: a copy of its mounts is what is entered then.
    """
    wanted = kernel.CLONE_NEWNET | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | (kernel.CLONE_NEWPID if own_processes else 0)
    user, group = os.geteuid(), os.getegid()
    if given:
        for descriptor, kind in zip(given, (kernel.CLONE_NEWUSER, kernel.CLONE_NEWNS)[-len(given) :], strict=True):
            _step("the layer of an earlier start", lambda descriptor=descriptor, kind=kind: kernel.setns(descriptor, kind))  # type: ignore[misc]
            os.close(descriptor)
        _step("the layer of an earlier start", lambda: kernel.unshare(wanted))
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    if user == 0:
        with contextlib.suppress(OSError):
            kernel.unshare(wanted)
            return
    _step("user namespace", lambda: kernel.unshare(wanted | kernel.CLONE_NEWUSER))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        _step("user namespace", lambda name=name, text=text: _say(f"/proc/self/{name}", text))  # type: ignore[misc]
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of credentials clears it


def _say(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class Start:
    """One start, from its order to its agent. Made where we were started, and before its namespaces are entered."""

    def __init__(self, control: Control, order: dict[str, Any], command: Sequence[str], tier: str) -> None:
        self.control = control
        self.order = order
        self.command = command
        self.tier = tier
        self.sockets = mounts.host_sockets()
        self.here = os.getcwd()
        self.joins = bool(control.given)
        """It has the view of an earlier start."""

    def inner(self, outer: Outer) -> int:
        """What process 1 does: the rest of the seal, its test, and then the agent."""
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        outer.up.close()
        order = self.order
        own_user = self.tier == "sealed" and os.geteuid() == 0 and not layer.mapped()
        program = [os.path.dirname(self.command[0])] if self.command and self.command[0].startswith("/") else []
        kind = layer.Layered if order["discard"] else mounts.View
        view = kind(order, os.environ, [*self.sockets, order["control"]], program)
        _step("mounts", view.join if self.joins else view.build)
        if isinstance(view, layer.Layered) and not self.joins:
            self._share(view)
        if order["own_processes"]:
            _step("/proc", lambda: mounts.own_proc(root=os.geteuid() == 0))
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # root may listen on any port
                _say("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        _step("working directory", lambda: os.chdir(view.standing(self.here)))
        told = _tested(order, self.sockets, own_user=own_user)
        verdict = self.control.ask(told)
        for path in told["written"]:
            with contextlib.suppress(OSError):
                os.unlink(path)
        if not verdict["go"]:
            return NOT_SEALED
        if self.command:
            gate = _Gate(own_user=own_user)
            init(outer, self.control.socket, self.command, prepared=gate.pass_through, started=gate.open)
            os._exit(0)
        return 0

    def _share(self, view: layer.Layered) -> None:
        """Later starts see what this one leaves behind: they get its mounts as they are now, and this one goes on in a copy of its own."""
        names = ["user", "mnt"] if layer.mapped() else ["mnt"]
        made = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
        self.control.ask({"layer": names, "holes": [*_stream_holes(), *view.holes()]}, made)
        for each in made:
            os.close(each)
        _step("mounts", lambda: kernel.unshare(kernel.CLONE_NEWNS))


class _Gate:
    """The agent's last step: as root, into a user namespace of its own, in which it is root over files and nothing else.

    The namespaces of the seal belong to another one, so that no capability in this reaches them. Only a process outside can say that
    all users are the same there as here; the agent's process waits for it.
    """

    def __init__(self, *, own_user: bool) -> None:
        self.own_user = own_user
        self.ours, self.theirs = socket.socketpair()

    def pass_through(self) -> None:
        """In the agent's process."""
        self.ours.close()
        if self.own_user:
            kernel.unshare(kernel.CLONE_NEWUSER)
            self.theirs.send(b"?")
            if self.theirs.recv(1) != b"!":
                raise PermissionError("no user namespace")
        confine()

    def open(self, pid: int) -> None:
        """In process 1."""
        self.theirs.close()
        if self.own_user and self.ours.recv(1):
            for name in ("uid_map", "gid_map"):
                _say(f"/proc/{pid}/{name}", "0 0 4294967295")
            self.ours.send(b"!")
        self.ours.close()


def _tested(order: dict[str, Any], sockets: Sequence[str], *, own_user: bool) -> dict[str, Any]:
    """Run the self-test in a process that stands where the agent will stand. Returns what is told outside."""
    gate = _Gate(own_user=own_user)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            gate.pass_through()
            kernel.close_from(writing + 1)
            for number in range(3, writing):
                with contextlib.suppress(OSError):
                    os.close(number)
            said: dict[str, Any] = {
                "problems": checks.sealed_checks(order, sockets, (writing,)),
                "written": checks.written(order, os.environ.get("HOME", "")) if order["discard"] else [],
            }
        except OSError as error:
            said = {"refused": f"{'user namespace' if own_user else 'confinement'}: {error.strerror}"}
        except BaseException as error:  # noqa: BLE001 - it is told
            said = {"refused": f"self-test: {error!r}"}
        with contextlib.suppress(OSError):
            os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    gate.open(pid)
    with open(reading, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    told: dict[str, Any] = json.loads(data) if data else {"refused": "self-test: it was killed"}
    if "refused" in told:
        raise Refused(told["refused"])
    return told
