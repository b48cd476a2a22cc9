"""An MCP server of a few lines, without any SDK: adds, asks its client on the way, says how far it is. Run as a program."""

import json
import sys


def say(**message: object) -> None:
    """One message on standard output."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until standard input ends."""
    sys.stderr.write("calculator: ready\n")
    for line in sys.stdin:
        told = json.loads(line)
        match told.get("method"):
            case "initialize":
                say(id=told["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})
            case "notifications/initialized":
                say(method="notifications/message", params={"level": "info", "data": "hello"})
            case "tools/call":
                arguments = told["params"]["arguments"]
                if token := told["params"].get("_meta", {}).get("progressToken"):
                    say(method="notifications/progress", params={"progressToken": token, "progress": 1})
                if arguments.get("ask"):
                    say(id="s1", method="elicitation/create", params={"message": "really?"})
                    json.loads(sys.stdin.readline())
                if arguments.get("crash"):
                    sys.exit(9)
                text = "x" * arguments["size"] if "size" in arguments else str(arguments["a"] + arguments["b"])
                say(id=told["id"], result={"content": [{"type": "text", "text": text}]})
    sys.exit(4)


main()
