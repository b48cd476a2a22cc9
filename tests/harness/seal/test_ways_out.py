"""Agents that try to get past the proxy, each in its own way. The whole file runs as the user who runs the tests, and again as another."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.harness.seal.scenes import PREFIXES, PYTHON, needs, run, static_client

TRIES = """
import json, socket, subprocess, sys
said = {}
def tried(name, action):
    try:
        action()
        said[name] = "came through"
    except OSError as error:
        said[name] = error.strerror
def tcp(address, port, family=socket.AF_INET):
    with socket.socket(family) as made:
        made.settimeout(5)
        made.connect((address, port))
def udp(address, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.settimeout(5)
        made.connect((address, port))
        made.send(b"x")
        made.recv(1)
tried("ssh by address", lambda: tcp("192.0.2.7", 22))
tried("git by name", lambda: tcp("git.example", 9418))
tried("six", lambda: tcp("2001:db8::7", 8443, socket.AF_INET6))
tried("quic", lambda: udp("192.0.2.7", 443))
tried("ntp", lambda: udp("2001:db8::7", 123, socket.AF_INET6))
tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
tried("host loopback", lambda: tcp("127.0.0.1", int(sys.argv[1])))
print(json.dumps(said))
"""


def test_what_goes_by_address_or_by_another_protocol_is_refused_and_told(tmp_path: Path) -> None:
    """D-03, D-04, D-09: refused at once, by the kernel; each attempt with address and port, by its name where it has one."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ran = run(tmp_path, *PYTHON, TRIES, str(other.getsockname()[1]))
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()
    said = json.loads(ran.out)
    assert {said[name] for name in ("ssh by address", "git by name", "six", "quic", "ntp", "host loopback")} == {"Connection refused"}
    assert (said["packet"], said["vsock"]) == ("Address family not supported by protocol",) * 2
    assert said["raw"] == "Operation not permitted"
    assert ran.attempts == {
        "tcp 192.0.2.7:22", "tcp git.example:9418", "tcp [2001:db8::7]:8443", "udp 192.0.2.7:443", "udp [2001:db8::7]:123",
    }  # fmt: skip
    assert ran.seal.names == ["git.example"]
    assert ran.lines == []


def test_a_program_without_libraries_is_captured_on_http_ports_and_refused_on_others(tmp_path: Path) -> None:
    """D-03: a static binary reads no variable and loads no library of ours."""
    client = static_client(tmp_path)
    ran = run(tmp_path, "/bin/sh", "-c", f"{client} 192.0.2.9 80; {client} 192.0.2.9 8080; {client} 192.0.2.9 443")
    assert ran.out.count("hi") == 2
    assert "ECONNREFUSED" in ran.out
    assert ran.lines == ["CONNECT 192.0.2.9:80 HTTP/1.1", "CONNECT 192.0.2.9:443 HTTP/1.1"]
    assert ran.attempts == {"tcp 192.0.2.9:8080"}


def test_a_child_written_in_go_is_captured_too(tmp_path: Path) -> None:
    """D-03: Go resolves by itself and is linked statically."""
    needs("go")
    (tmp_path / "main.go").write_text("""package main
import ("io"; "net"; "os")
func main() {
    made, err := net.Dial("tcp", "go.example:80")
    if err != nil { panic(err) }
    made.Write([]byte("GET / HTTP/1.1\\r\\n\\r\\n"))
    io.Copy(os.Stdout, made)
    _, err = net.Dial("tcp", "go.example:8080")
    os.Stdout.WriteString(err.Error())
}
""")
    # The build cache is the person's own, where there is one: the standard library is built once.
    env = {"HOME": str(tmp_path), **os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"}
    subprocess.run([needs("go"), "build", "-o", "client", "main.go"], cwd=tmp_path, env=env, check=True)
    ran = run(tmp_path, "/bin/sh", "-c", f"{tmp_path}/client")
    assert ran.out.startswith("HTTP/1.1 200 OK")
    assert "connection refused" in ran.out
    assert ran.lines == ["CONNECT go.example:80 HTTP/1.1"]
    assert ran.attempts == {"tcp go.example:8080"}


def test_node_which_reads_no_variable_is_captured(tmp_path: Path) -> None:
    """D-03."""
    code = (
        "const http=require('http');http.get('http://node.example/x',r=>{console.log(r.statusCode);"
        "http.get('http://node.example:3128/').on('error',e=>console.log(e.code))})"
    )
    ran = run(tmp_path, needs("node"), "-e", code)
    assert ran.out == "200\nECONNREFUSED\n"
    assert ran.lines == ["CONNECT node.example:80 HTTP/1.1"]
    assert "tcp node.example:3128" in ran.attempts


def test_curl_told_to_use_no_proxy_is_captured_and_one_that_uses_it_goes_as_before(tmp_path: Path) -> None:
    """D-03, D-06: the proxy is where the variables say."""
    needs("curl")
    code = "curl -sS --noproxy '*' http://a.example/x; curl -sS http://b.example/x; curl -sS --noproxy '*' http://c.example:81/ || echo no"
    ran = run(tmp_path, "/bin/sh", "-c", code)
    assert ran.out.startswith("hihicurl: (7)")
    assert ran.lines == ["CONNECT a.example:80 HTTP/1.1", "GET http://b.example/x HTTP/1.1"]
    assert ran.attempts == {"tcp c.example:81"}


def test_what_the_host_offers_is_out_of_sight(tmp_path: Path) -> None:
    """D-07: sockets by path and by abstract name, other processes, files of others in /tmp, descriptors."""
    path = Path(tempfile.mkdtemp()) / "s"  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as abstract:
        service.bind(str(path))
        service.listen()
        abstract.bind(f"\0secondtake-test-{os.getpid()}")
        abstract.listen()
        code = f"""
import os, socket
for name in ({str(path)!r}, "\\0secondtake-test-{os.getpid()}"):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("came through")
    except OSError as error:
        print(error.strerror)
print(os.path.exists("/proc/{os.getpid()}/environ") and open("/proc/{os.getpid()}/environ").read()[:9])
print(sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3], os.listdir("/run/user/7") if os.path.exists("/run/user/7") else None)
print(any(os.path.exists(p) for p in ("/run/docker.sock", "/run/dbus", "/run/systemd", "/var/run/nscd")))
"""
        held = os.dup(service.fileno())
        os.set_inheritable(held, True)
        ran = run(tmp_path, *PYTHON, code, env={"XDG_RUNTIME_DIR": "/run/user/7"}, readable=(*PREFIXES, path.parent))
        os.close(held)
    path.unlink()
    path.parent.rmdir()
    assert ran.out == "Connection refused\nConnection refused\nFalse\n[0, 1, 2] []\nFalse\n"


def test_a_name_that_was_not_recorded_is_an_attempt_in_a_replay(tmp_path: Path) -> None:
    """D-08: every name asked is kept; a new one counts."""
    code = "import socket\nfor name in ('known.example', 'new.example', 'localhost'): print(socket.getaddrinfo(name, 443)[0][4][0])"
    ran = run(tmp_path, *PYTHON, code, known_hosts={"known.example"})
    assert ran.attempts == {"dns new.example"}
    assert ran.seal.names == ["known.example", "new.example"]


def test_hundreds_of_lookups_at_once_are_all_answered(tmp_path: Path) -> None:
    """A lost question costs its program five seconds; package managers ask in bursts."""
    code = """
import socket, threading
found = []
def asks(number):
    try:
        found.append(socket.getaddrinfo("n%d.example" % number, 443)[0][4][0])
    except OSError:
        pass
threads = [threading.Thread(target=asks, args=(number,)) for number in range(300)]
for each in threads: each.start()
for each in threads: each.join()
print(len(found), len(set(found)))
"""
    assert run(tmp_path, *PYTHON, code).out == "300 300\n"


def test_a_server_of_the_agents_own_works_on_loopback(tmp_path: Path) -> None:
    """D-10: and is nobody's business."""
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
opened = urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://localhost:%d/" % server.server_port)
print(opened.status)
"""
    ran = run(tmp_path, *PYTHON, code)
    assert ran.out.splitlines()[-1] == "200"
    assert (ran.seal.attempts, ran.lines) == ([], [])


def test_an_agent_keeps_who_and_where_it_is(tmp_path: Path) -> None:
    """D-06: user, group, directory, environment, status; and no capability over the network."""
    here = tmp_path / "here"
    here.mkdir()
    code = "id -u; id -g; pwd; env | grep -c ^LC_CTYPE; echo $GIVEN; ip link set lo down 2>/dev/null && echo down; exit 9"
    ran = run(tmp_path, "/bin/sh", "-c", code, env={"GIVEN": "a b"}, where=here)
    assert ran.out == f"{os.getuid()}\n{os.getgid()}\n{here}\n0\na b\n"
    assert ran.finished.status == 9
