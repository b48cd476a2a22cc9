"""What an exchange is for, by shape."""

from __future__ import annotations

import pytest

from secondtake.cassettes.channels import classify, is_loopback
from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.memory import fields


def ask(path: str, *head: str, method: str = "GET", host: str = "h.example") -> Request:
    return Request(method, "https", host, 443, path.encode(), fields=fields(*head))


JSON, FORM = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("request_", "content", "channel"),
    [
        (ask("/o/r.git/info/refs?service=git-upload-pack"), None, Channel.VCS),
        (ask("/simple/demo/"), None, Channel.INDEX),
        (ask("/demo", "npm-command: install"), None, Channel.INDEX),
        (ask("/v1/metrics", "Content-Type: application/x-protobuf", method="POST"), b"\n\x01", Channel.TELEMETRY),
        (ask("/v1/logs", JSON, method="POST"), b'{"resourceLogs":[]}', Channel.TELEMETRY),
        (ask("/otlp/v1/metrics", JSON, method="POST"), None, Channel.TELEMETRY),
        (ask("/api/event_logging/v2/batch", JSON, method="POST"), None, Channel.TELEMETRY),
        (ask("/log?format=json", JSON, method="POST"), b'[{"log_source_name":"x","log_event":[]}]', Channel.TELEMETRY),
        (ask("/", JSON, method="POST"), b'{"app":{"id":"a"},"session":{"id":1},"events":[{}]}', Channel.TELEMETRY),
        (ask("/batch/", JSON, method="POST"), b'{"api_key":"phc","batch":[]}', Channel.TELEMETRY),
        (ask("/api/42/envelope/", method="POST"), b"{}", Channel.TELEMETRY),
        (ask("/oauth/token", FORM, method="POST"), b"grant_type=refresh_token", Channel.AUTH),
        (ask("/tenant/oauth2/v2.0/token", FORM, method="POST"), None, Channel.AUTH),
        (ask("/login/oauth/access_token", FORM, method="POST"), None, Channel.AUTH),
        (ask("/login/device/code", FORM, method="POST"), None, Channel.AUTH),
        (ask("/v1/token", JSON, method="POST"), b'{"grantType":"urn:x"}', Channel.AUTH),
        (ask("/somewhere", FORM, method="POST"), b"a=1&grant_type=refresh_token&refresh_token=r", Channel.AUTH),
        (ask("/", FORM, method="POST"), b"Action=AssumeRole&Version=2011-06-15", Channel.AUTH),
        (ask("/client/register", JSON, method="POST"), b'{"clientName":"a","clientType":"public"}', Channel.AUTH),
        (ask("/register", JSON, method="POST"), b'{"redirect_uris":["http://localhost/"]}', Channel.AUTH),
        (ask("/register", JSON, method="POST"), b'{"name":"me"}', Channel.WEB),
        (ask("/v1/projects/-/serviceAccounts/a@b:generateAccessToken", JSON, method="POST"), b"{}", Channel.AUTH),
        (ask("/tokeninfo", method="POST"), None, Channel.AUTH),
        (ask("/api/oauth/claude_cli/create_api_key", method="POST"), None, Channel.AUTH),
        (ask("/api/oauth/claude_cli/roles"), None, Channel.CONTROL),
        (ask("/latest/meta-data/iam/security-credentials/role"), None, Channel.AUTH),
        (ask("/-/user/org.couchdb.user:me", method="PUT"), None, Channel.AUTH),
        (ask("/mcp", "Mcp-Session-Id: a", method="DELETE"), None, Channel.MCP),
        (ask("/any", JSON, method="POST"), b'{"jsonrpc":"2.0","id":0,"method":"initialize"}', Channel.MCP),
        (
            ask("/v1/messages", JSON, method="POST"),
            b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}',
            Channel.MODEL,
        ),
        (ask("/v1/responses", "Connection: Upgrade", "Upgrade: websocket"), None, Channel.MODEL),
        (ask("/v1/models"), None, Channel.CONTROL),
        (ask("/backend-api/codex/models?client_version=1"), None, Channel.CONTROL),
        (ask("/api/claude_code/settings"), None, Channel.CONTROL),
        (ask("/api/eval/sdk-x", JSON, method="POST"), b"{}", Channel.CONTROL),
        (ask("/mcp-registry/v0/servers"), None, Channel.CONTROL),
        (ask("/api.json"), None, Channel.CONTROL),
        (ask("/litellm/main/model_prices_and_context_window.json"), None, Channel.CONTROL),
        (ask("/x", host="127.0.0.1"), None, Channel.LOOPBACK),
        (ask("/x", host="::1"), None, Channel.LOOPBACK),
        (ask("/x", host="app.localhost"), None, Channel.LOOPBACK),
        (ask("/simple/demo/", host="127.0.0.1"), None, Channel.INDEX),
        # near misses
        (ask("/log", JSON, method="POST"), b'{"message":"hello"}', Channel.WEB),
        (ask("/v1/logs"), None, Channel.WEB),
        (ask("/v1/metrics", JSON, method="POST"), b'{"cpu":1}', Channel.WEB),
        (ask("/batch", JSON, method="POST"), b'{"operations":[]}', Channel.WEB),
        (ask("/token"), None, Channel.WEB),
        (ask("/", JSON, method="POST"), b'{"events":[]}', Channel.WEB),
        (ask("/rpc", JSON, method="POST"), b'{"jsonrpc":"2.0","id":0,"method":"eth_call"}', Channel.WEB),
        (ask("/"), None, Channel.WEB),
        (ask("/docs/oauth/token-guide"), None, Channel.WEB),
    ],
)
def test_the_channel_is_told_by_shape(request_: Request, content: bytes | None, channel: Channel) -> None:
    """AGENTS 5.8, T-O3, DESIGN 1."""
    assert classify(request_, content)[0] is channel


def test_the_adapter_of_a_model_call_comes_with_it() -> None:
    """DESIGN 5."""
    request = ask("/v1/messages", JSON, method="POST")
    content = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
    assert classify(request, content) == (Channel.MODEL, "anthropic")
    assert classify(request, content, recognise=lambda *_: None) == (Channel.WEB, None)
    assert classify(ask("/x", method="POST"), b"?", recognise=lambda *_: "mine") == (Channel.MODEL, "mine")


@pytest.mark.parametrize(
    ("host", "expected"), [("127.8.8.8", True), ("localhost", True), ("::1", True), ("10.0.0.1", False), ("1.example", False), ("", False)]
)
def test_loopback_is_this_machine(host: str, expected: bool) -> None:
    """DESIGN 1."""
    assert is_loopback(host) is expected
