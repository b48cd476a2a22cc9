"""The certificate of the scripted provider."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from secondtake.harness.provider import Provider, Reply, Scene, Script, make_identity
from tests.harness.wires import answer, post, request_bytes

ROOT = Path(__file__).resolve().parents[3]
BODY = {"model": "model-1", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
SCRIPT = Script((Scene((Reply("Hello."),)),))


def test_over_tls_only_its_own_authority_is_needed() -> None:
    """The certificate stands up to strict checking, by name and by address, and fails without its CA."""
    identity = make_identity(["127.0.0.1", "api.provider.example"])
    trusting = ssl.create_default_context(cadata=identity.ca_pem.decode())
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT

    async def test() -> None:
        provider = Provider(SCRIPT, identity.context)
        await provider.start()
        assert provider.base_url == f"https://127.0.0.1:{provider.port}"
        for name in ("127.0.0.1", "api.provider.example"):
            reader, writer = await asyncio.open_connection("127.0.0.1", provider.port, ssl=trusting, server_hostname=name)
            writer.write(request_bytes("POST", "/v1/messages", BODY, {"x-api-key": "k"}))
            assert (await answer(reader)).status == 200
            writer.transport.abort()
        with pytest.raises(ssl.SSLCertVerificationError):
            await post(provider.port, "/v1/messages", BODY, tls=ssl.create_default_context())
        await provider.stop()

    asyncio.run(test())
