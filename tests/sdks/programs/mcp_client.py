"""An MCP client by the official SDK. Arguments: mode, the order of three calls made at once, and URLs or a server's command."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from typing import Any

from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

warnings.simplefilter("ignore")


async def asked(mode: str, order: str, where: list[str]) -> None:
    """List the tools, call one, then three at once; say what came."""
    heard: list[object] = []

    async def progress(done: float, total: float | None, _message: str | None) -> None:
        heard.append([done, total])

    async def log(message: Any) -> None:
        heard.append(message.data)

    server: Any = where[0]
    if server.endswith("/sse"):
        server = sse_client(server)
    elif not server.startswith("https:"):
        packages = {"PYTHONPATH": os.environ["PYTHONPATH"]}
        server = stdio_client(StdioServerParameters(command=where[0], args=where[1:], env=packages))
    async with Client(server, mode=mode, logging_callback=log) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        one: Any = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=progress)
        calls = [client.call_tool("add", {"a": 10, "b": int(number)}) for number in order]
        many: list[Any] = await asyncio.gather(*calls)
        texts = {number: result.content[0].text for number, result in zip(order, many, strict=True)}
        print(json.dumps({"tools": tools, "one": one.content[0].text, "many": dict(sorted(texts.items())), "heard": heard[:2]}))


async def main() -> None:
    """Ask each server that has a URL, or the one that is started."""
    mode, order, *where = sys.argv[1:]
    for server in [[url] for url in where] if where[0].startswith("https:") else [where]:
        await asked(mode, order, server)


asyncio.run(main())
