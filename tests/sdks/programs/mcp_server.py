"""An MCP server by the official SDK: one tool that logs and says how far it is. `stdio`, or `http PORT`, or `sse PORT`."""

from __future__ import annotations

import sys
import warnings

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.transport_security import TransportSecuritySettings

warnings.simplefilter("ignore")
server = MCPServer("calculator")


@server.tool()
async def add(a: int, b: int, ctx: Context) -> str:
    """Add two numbers."""
    await ctx.info(f"adding {a} and {b}")
    await ctx.report_progress(1, 2)
    return str(a + b)


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    anywhere = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    transport = "sse" if sys.argv[1] == "sse" else "streamable-http"
    server.run(transport, host="127.0.0.1", port=int(sys.argv[2]), transport_security=anywhere)  # type: ignore[call-overload]  # one of both
