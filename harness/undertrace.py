"""What stands between a launcher and an agent that is traced: it tries the tracer in this very place, and becomes it, or the agent.

A script of its own, standard library only, run with `-I -S`. Whether a process may be traced depends on where it is (another
tracer above it, a seal's filters, a container's, the kernel's settings), so it is tried there and then, on a child. The agent
runs in either case; why it is not traced is left beside the log.

Arguments: the log, the number of the tracer's words, the tracer's words, then the agent's command. `NAME=VALUE` words
between `--` and `--` before the command go into the agent's environment only, not into the tracer's.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

PATIENCE_S = 5.0
"""For a program that does nothing; one that hangs under the tracer is ended, and there is no tracing."""


def main(words: list[str]) -> None:
    """Become the traced agent, or the agent."""
    log, count = words[0], int(words[1])
    tracer, rest = words[2 : 2 + count], words[2 + count :]
    end = rest.index("--", 1)
    given, agent = rest[1:end], rest[end + 1 :]
    reason = refusal(tracer, log)
    if reason is None and found(agent[0]):
        become([*tracer, *(part for word in given for part in ("-E", word)), *agent])
    if reason is not None:
        leave(f"{log}.refused", reason)
    for word in given:
        name, _, value = word.partition("=")
        os.environ[name] = value
    become(agent)


def become(command: list[str]) -> None:
    """Execute `command` in our place; a shell's statuses where that cannot be."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - what this file is for
    except OSError as error:
        os.write(2, f"cannot start `{command[0]}`: {error.strerror}\n".encode(errors="surrogateescape"))
        os._exit(127 if error.errno == errno.ENOENT else 126)


def found(program: str) -> bool:
    """Say whether there is such a program: a tracer says so in words of its own, and exits 1."""
    if "/" in program:
        return os.access(program, os.X_OK)
    return any(os.access(f"{folder}/{program}", os.X_OK) for folder in os.get_exec_path())


def refusal(tracer: list[str], log: str) -> str | None:
    """Say why a process cannot be traced here; None where it can. The log is made, empty, for its owner only."""
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return f"the log cannot be written from here: {error.strerror}"
    try:
        said = tried([*tracer, "/bin/sh", "-c", ":"])
        if said:
            return said
        if os.fstat(descriptor).st_size == 0:
            return "the tracer runs, and sees nothing"
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    return None


def tried(command: list[str]) -> str:
    """Run `command` to its end, and that of what it leaves; return its first complaint, empty for none."""
    complaint, complaint_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.dup2(complaint_end, 2)
            os.execvp(command[0], command)  # noqa: S606 - see above
        except OSError as error:
            os.write(complaint_end, f"{command[0]}: {error.strerror}".encode())
        finally:
            os._exit(127)
    os.close(complaint_end)
    text, deadline = b"", time.monotonic() + PATIENCE_S
    # End of file comes when the tracer, which is nobody's child by then, has written its last line and is gone.
    while True:
        ready, _, _ = select.select([complaint], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            os.killpg(child, signal.SIGKILL)
            text = text or f"a traced program did not end within {PATIENCE_S:.0f} s".encode()
            break
        piece = os.read(complaint, 65536)
        if not piece:
            break
        text = (text + piece)[:65536]
    os.close(complaint)
    _, status = os.waitpid(child, 0)
    if text or status == 0:
        return text.decode(errors="replace").partition("\n")[0].strip()
    return f"a traced program ended with {os.waitstatus_to_exitcode(status)}"


def leave(path: str, text: str) -> None:
    """Write the reason for whoever launched us; where that cannot be, the missing log says it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
