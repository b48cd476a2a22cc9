"""Requests to tell apart: one or more per row of PROVIDERS A1, and over two hundred that are no model call (A-01)."""

from __future__ import annotations

import json
from typing import Any

from secondtake.cassettes.exchange import Request

TURNS = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "m", "messages": TURNS}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": TURNS}
RESPONSES: dict[str, Any] = {"model": "m", "input": [{"role": "user", "content": "hi"}]}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CONVERSE: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
CLAUDE: dict[str, Any] = {"anthropic_version": "x", "max_tokens": 9, "messages": TURNS}
EMBED: dict[str, Any] = {"model": "m", "input": "hi"}

_V = "/v1/projects/p/locations/us-east5"
_BEDROCK = "bedrock-runtime.us-east-1.amazonaws.com"

MODEL_CALLS: tuple[tuple[str, str, dict[str, Any], str, str], ...] = (
    ("api.anthropic.com", "/v1/messages?beta=true", MESSAGES, "anthropic", "completion"),
    ("api.anthropic.com", "/v1/messages/count_tokens", {"model": "m", "messages": TURNS}, "anthropic", "count"),
    ("api.anthropic.com", "/v1/messages/batches", {"requests": [{"params": MESSAGES}]}, "anthropic", "batch"),
    ("api.anthropic.com", "/v1/complete", {"model": "m", "prompt": "x", "max_tokens_to_sample": 9}, "anthropic", "completion"),
    ("aws-external-anthropic.us-east-1.api.aws", "/v1/messages", MESSAGES, "anthropic", "completion"),
    ("res.services.ai.azure.com", "/anthropic/v1/messages", MESSAGES, "anthropic", "completion"),
    ("bedrock-mantle.us-east-1.api.aws", "/anthropic/v1/messages", MESSAGES, "anthropic", "completion"),
    ("bedrock-mantle.us-east-1.api.aws", "/openai/v1/responses", RESPONSES, "openai-responses", "completion"),
    (_BEDROCK, "/model/anthropic.claude-x-v1%3A0/invoke", CLAUDE, "bedrock", "completion"),
    (_BEDROCK, "/model/anthropic.claude-x-v1%3A0/invoke-with-response-stream", CLAUDE, "bedrock", "completion"),
    (_BEDROCK, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprompt-router%2Fr/converse", CONVERSE, "bedrock", "completion"),
    ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "/model/a.b/converse-stream", CONVERSE, "bedrock", "completion"),
    ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "/model/a.b/count-tokens", {"input": {"converse": CONVERSE}}, "bedrock", "count"),
    (_BEDROCK, "/model/amazon.titan-embed-text-v2%3A0/invoke", {"inputText": "x"}, "bedrock", "embedding"),
    (_BEDROCK, "/async-invoke", {"modelId": "m", "modelInput": {}}, "bedrock", "batch"),
    (_BEDROCK, "/openai/v1/chat/completions", CHAT, "openai-chat", "completion"),
    (
        "us-east5-aiplatform.googleapis.com",
        f"{_V}/publishers/anthropic/models/claude-x@20250101:rawPredict",
        CLAUDE,
        "vertex",
        "completion",
    ),
    ("aiplatform.googleapis.com", f"{_V}/publishers/anthropic/models/claude-x:streamRawPredict", CLAUDE, "vertex", "completion"),
    ("aiplatform.eu.rep.googleapis.com", f"{_V}/publishers/anthropic/models/count-tokens:rawPredict", MESSAGES, "vertex", "count"),
    ("us-east5-aiplatform.googleapis.com", f"{_V}/publishers/google/models/gemini-x:generateContent", GEMINI, "vertex", "completion"),
    (
        "us-east5-aiplatform.googleapis.com",
        f"{_V}/publishers/google/models/gemini-x:streamGenerateContent?alt=sse",
        GEMINI,
        "vertex",
        "completion",
    ),
    ("us-east5-aiplatform.googleapis.com", f"{_V}/publishers/google/models/gemini-x:countTokens", GEMINI, "vertex", "count"),
    ("us-east5-aiplatform.googleapis.com", f"{_V}/publishers/google/models/imagen-x:predict", {"instances": []}, "vertex", "embedding"),
    ("us-east5-aiplatform.googleapis.com", f"{_V}/endpoints/openapi/chat/completions", CHAT, "vertex", "completion"),
    ("us-east5-aiplatform.googleapis.com", f"{_V}/endpoints/123:streamGenerateContent", GEMINI, "vertex", "completion"),
    ("generativelanguage.googleapis.com", "/v1beta/models/gemini-x:generateContent", GEMINI, "gemini", "completion"),
    ("generativelanguage.googleapis.com", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", GEMINI, "gemini", "completion"),
    ("generativelanguage.googleapis.com", "/v1/models/gemini-x:countTokens", GEMINI, "gemini", "count"),
    ("generativelanguage.googleapis.com", "/v1beta/models/x:batchEmbedContents", {"requests": []}, "gemini", "embedding"),
    ("generativelanguage.googleapis.com", "/v1beta/interactions", {"model": "m", "input": "hi"}, "gemini", "completion"),
    ("generativelanguage.googleapis.com", "/v1beta/openai/chat/completions", CHAT, "openai-chat", "completion"),
    ("cloudcode-pa.googleapis.com", "/v1internal:generateContent", {"model": "m", "request": GEMINI}, "gemini", "completion"),
    ("cloudcode-pa.googleapis.com", "/v1internal:streamGenerateContent?alt=sse", {"model": "m", "request": GEMINI}, "gemini", "completion"),
    ("api.openai.com", "/v1/chat/completions", CHAT, "openai-chat", "completion"),
    ("api.openai.com", "/v1/chat/completions", {**CHAT, "max_tokens": 9, "stream": True}, "openai-chat", "completion"),
    ("eu.api.openai.com", "/v1/responses", RESPONSES, "openai-responses", "completion"),
    ("api.openai.com", "/v1/responses", {"model": "m", "previous_response_id": "resp_1"}, "openai-responses", "completion"),
    ("api.openai.com", "/v1/responses", {"prompt": {"id": "pmpt_1"}}, "openai-responses", "completion"),
    ("api.openai.com", "/v1/responses/compact", RESPONSES, "openai-responses", "completion"),
    ("api.openai.com", "/v1/responses/input_tokens", RESPONSES, "openai-responses", "count"),
    ("api.openai.com", "/v1/decisions", {"model": "m", "input": "x", "questions": []}, "openai-responses", "completion"),
    ("api.openai.com", "/v1/completions", {"model": "m", "prompt": "x"}, "openai-chat", "completion"),
    ("api.openai.com", "/v1/embeddings", EMBED, "openai-chat", "embedding"),
    ("api.openai.com", "/v1/moderations", EMBED, "openai-chat", "embedding"),
    ("chatgpt.com", "/backend-api/codex/responses", RESPONSES, "openai-responses", "completion"),
    ("res.openai.azure.com", "/openai/deployments/d/chat/completions?api-version=1", {"messages": TURNS}, "azure-openai", "completion"),
    ("res.cognitiveservices.azure.com", "/openai/deployments/d/completions?api-version=1", {"prompt": "x"}, "azure-openai", "completion"),
    ("res.openai.azure.com", "/openai/deployments/d/embeddings?api-version=1", {"input": "x"}, "azure-openai", "embedding"),
    ("res.openai.azure.com", "/openai/responses?api-version=1", RESPONSES, "azure-openai", "completion"),
    ("res.openai.azure.com", "/openai/v1/chat/completions", CHAT, "azure-openai", "completion"),
    ("openrouter.ai", "/api/v1/chat/completions", {**CHAT, "models": ["a", "b"]}, "gateway", "completion"),
    ("openrouter.ai", "/api/v1/responses", RESPONSES, "openai-responses", "completion"),
    ("openrouter.ai", "/api/v1/messages", MESSAGES, "anthropic", "completion"),
    ("api.atlascloud.ai", "/v1/chat/completions", CHAT, "gateway", "completion"),
    ("ai-gateway.vercel.sh", "/v1/chat/completions", CHAT, "gateway", "completion"),
    ("api.groq.com", "/openai/v1/chat/completions", CHAT, "gateway", "completion"),
    ("vllm.internal.example", "/v1/chat/completions", CHAT, "openai-chat", "completion"),
    ("vllm.internal.example", "/tokenize", CHAT, "openai-chat", "count"),
    ("litellm.internal.example", "/chat/completions", {**CHAT, "fallbacks": ["b"]}, "gateway", "completion"),
    ("litellm.internal.example", "/anthropic/v1/messages", MESSAGES, "anthropic", "completion"),
    ("litellm.internal.example", "/bedrock/model/a.b/invoke", CLAUDE, "bedrock", "completion"),
    ("litellm.internal.example", "/gemini/v1beta/models/g:generateContent", GEMINI, "gemini", "completion"),
    ("litellm.internal.example", f"/vertex_ai{_V}/publishers/google/models/g:generateContent", GEMINI, "vertex", "completion"),
    ("litellm.internal.example", "/azure/openai/deployments/d/chat/completions", {"messages": TURNS}, "azure-openai", "completion"),
    ("api.business.githubcopilot.com", "/chat/completions", CHAT, "gateway", "completion"),
    ("api.githubcopilot.com", "/responses", RESPONSES, "openai-responses", "completion"),
    ("api.individual.githubcopilot.com", "/v1/messages", MESSAGES, "anthropic", "completion"),
    ("localhost", "/api/chat", CHAT, "ollama", "completion"),
    ("localhost", "/api/generate", {"model": "m", "prompt": "x"}, "ollama", "completion"),
    ("localhost", "/api/embed", EMBED, "ollama", "embedding"),
    ("api.mistral.ai", "/v1/chat/completions", CHAT, "gateway", "completion"),
    ("codestral.mistral.ai", "/v1/fim/completions", {"model": "m", "prompt": "x", "suffix": "y"}, "gateway", "completion"),
    ("api.mistral.ai", "/v1/agents/completions", {"agent_id": "ag", "messages": TURNS}, "gateway", "completion"),
    ("api.mistral.ai", "/v1/conversations", {"model": "m", "inputs": "x"}, "gateway", "completion"),
)

_NO_MODEL_HOSTS = (
    "api.anthropic.com", "api.openai.com", "chatgpt.com", "generativelanguage.googleapis.com", "openrouter.ai", "api.githubcopilot.com",
    "index.example", "registry.example", "code.example",
)  # fmt: skip

_GETS = (
    "/v1/models", "/v1/models/m", "/v1/files", "/api/claude_code/settings", "/api/claude_code/policy_limits", "/v1beta/models?pageSize=50",
    "/backend-api/codex/models?client_version=1", "/backend-api/wham/accounts/check", "/simple/requests/", "/lodash", "/v1/messages",
    "/packages/ab/cd/x-1.0-py3-none-any.whl", "/a/b.git/info/refs?service=git-upload-pack", "/v1/responses/resp_1", "/api/tags",
)  # fmt: skip

_POSTS: tuple[tuple[str, str], ...] = (
    ("/api/event_logging/v2/batch", '{"events":[{"event_type":"x","event_data":{"model":"m","messages":[{"role":"user"}]}}]}'),
    ("/api/eval/sdk-abc", '{"attributes":{"deviceID":"x"},"forcedVariations":{}}'),
    ("/oauth/token", "grant_type=refresh_token&refresh_token=x&client_id=y"),
    ("/v1/oauth/token", '{"grant_type":"refresh_token","refresh_token":"x","client_id":"y"}'),
    ("/log?format=json", '[["1",{"model":"m"}]]'),
    ("/otlp/v1/metrics", '{"resourceMetrics":[{"scopeMetrics":[]}]}'),
    ("/v1/traces", '{"resourceSpans":[{"attributes":[{"key":"model","value":"m"},{"key":"messages"}]}]}'),
    ("/batch/", '{"api_key":"x","batch":[{"event":"message_send","properties":{"model":"m","messages":[]}}]}'),
    ("/capture/", '{"event":"prompt","properties":{"model":"m","input":"x"}}'),
    ("/runs", '{"id":"1","name":"llm","inputs":{"model":"m","messages":[{"role":"user","content":"x"}]}}'),
    ("/-/npm/v1/security/advisories/bulk", '{"model":["1.0.0"],"messages":["2.0.0"],"input":["1.0.0"]}'),
    ("/a/b.git/git-upload-pack", "0014command=ls-refs\n0000"),
    ("/a/b.git/git-receive-pack", "0000"),
    ("/graphql", '{"query":"query { model { messages } }","variables":{"input":{"model":"m"}}}'),
    ("/v1/files", "--b\r\ncontent-disposition: form-data\r\n\r\n{}\r\n--b--"),
    ("/v1/predictions", '{"model":"m","input":{"prompt":"x"}}'),
    ("/v1/rerank", '{"model":"m","query":"x","documents":["a"]}'),
    ("/v1/skills", '{"display_title":"x","messages":[]}'),
    ("/v1/threads", '{"messages":[{"role":"user","content":"x"}]}'),
    ("/v1/responses/resp_1/cancel", ""),
    ("/v1/fine_tuning/jobs", '{"model":"m","training_file":"f"}'),
    ("/mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"model":"m","messages":[]}}}'),
    ("/webhook", '{"contents":[{"text":"x"}],"input":"x","prompt":"y"}'),
    ("/api/v1/messages", '{"status":"hello","visibility":"public"}'),
    ("/v1/messages", '{"to":"+1","text":"hello"}'),
    ("/responses", '{"survey":1,"answers":["a"]}'),
    ("/login", '{"user":"a","password":"b"}'),
    ("/v2/rooms/1/messages", '{"model":"m","messages":"none"}'),
)
_FREE_HOSTS = ("telemetry.example", "login.example", "code.example", "index.example", "survey.example")


def post(host: str, path: str, body: Any) -> tuple[Request, bytes]:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Request("POST", "https", host, 443, path.encode()), content


def others() -> list[tuple[Request, bytes]]:
    """Every request here is no model call."""
    gets = [(Request("GET", "https", host, 443, path.encode()), b"") for host in _NO_MODEL_HOSTS for path in _GETS]
    heads = [(Request("HEAD", "https", host, 443, b"/v1/messages"), b"") for host in _NO_MODEL_HOSTS]
    posts = [post(host, path, body) for host in _FREE_HOSTS for path, body in _POSTS]
    return gets + heads + posts
