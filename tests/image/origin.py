"""An origin outside, and a name server that answers nothing but notes who asks: what an agent that got out would reach."""

import http.server
import socket
import sys
import threading


class Origin(http.server.BaseHTTPRequestHandler):
    """Says one thing."""

    def do_GET(self) -> None:
        """Answer."""
        body = b"the origin"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print whom the connection came from."""
        print("asked by", self.client_address[0], flush=True)


def names() -> None:
    """Note every datagram to port 53."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("0.0.0.0", 53))
        while True:
            _, sender = listener.recvfrom(2048)
            print("name asked by", sender[0], flush=True)


threading.Thread(target=names, daemon=True).start()
server = http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Origin)
print("ready", flush=True)
server.serve_forever()
