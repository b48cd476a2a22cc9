"""Bedrock against botocore: its parser reads the streams, its service description has every member, its signer signs the requests."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import botocore.session
import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.model import ServiceModel, Shape

from secondtake.cassettes.eventstream import EventStreamReader, Message
from secondtake.harness.provider import CutOff, ErrorEvent, Failure, Provider, Reply, Scene, Script, Stop, ToolCall
from secondtake.harness.provider.bedrock import EXCEPTIONS, IN_STREAM, Converse, Count, Invoke, wire_of
from secondtake.harness.provider.wire import BadCall, Call, Wire
from tests.harness.provider.streams import CALL, REPLY, TOOLS
from tests.harness.wires import ask, post, request_bytes

MODEL = "anthropic.claude-x-20260101-v1:0"
TARGET = f"/model/{MODEL.replace(':', '%3A')}"
ASKED = {"messages": [{"role": "user", "content": [{"text": "fix it"}]}]}
CLAUDES = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "fix it"}]}
SCRIPT = Script((Scene((REPLY, Reply("Done.")), MODEL),))
SIGNED = {
    "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00",
    "x-api-key": "",
}


def service() -> ServiceModel:
    return botocore.session.get_session().get_service_model("bedrock-runtime")


def described(value: Any, shape: Shape) -> None:
    """Every member that the answer has is one of the description's, all the way down."""
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        members = shape.members
        for key, inner in value.items():
            assert key in members, (shape.name, key)
            described(inner, members[key])
    elif shape.type_name == "list":
        for inner in value:
            described(inner, shape.member)


def read(pieces: list[bytes]) -> list[Any]:
    """The messages as botocore reads them, after our own reader agreed. Each piece is one message."""
    found = []
    for piece in pieces:
        theirs, ours = EventStreamBuffer(), EventStreamReader()
        theirs.add_data(piece)
        ours.receive(piece)
        (message,) = theirs
        mine = ours.next_event()
        assert isinstance(mine, Message)
        assert (dict(mine.headers), mine.payload) == (message.headers, message.payload)
        found.append(message)
    return found


def said(wire: Wire, reply: Reply) -> list[tuple[str, Any]]:
    return [(m.headers[":event-type"], json.loads(m.payload)) for m in read(list(wire.events(CALL, reply, MODEL)))]


@pytest.mark.parametrize("reply", [Reply("x"), Reply(tools=TOOLS), REPLY, Reply("cut", stop=Stop.LENGTH), Reply(), Reply("abc", pieces=50)])
def test_converse_answers_have_the_members_of_the_service_description(reply: Reply) -> None:
    """Whole and streamed; both say the same, and twice the same bytes."""
    whole = json.loads(json.dumps(Converse().whole(CALL, reply, MODEL)))
    operation = service().operation_model("Converse").output_shape
    assert operation is not None
    described(whole, operation)
    stream = service().shape_for("ConverseStreamOutput")
    content: list[dict[str, Any]] = []
    stop = usage = None
    for kind, body in said(Converse(), reply):
        padding = body.pop("p")
        assert padding
        described({kind: body}, stream)
        match kind:
            case "contentBlockStart":
                content.append({"toolUse": {**body["start"]["toolUse"], "input": ""}})
            case "contentBlockDelta" if "text" in body["delta"]:
                if len(content) == body["contentBlockIndex"]:
                    content.append({"text": ""})
                content[-1]["text"] += body["delta"]["text"]
            case "contentBlockDelta":
                content[body["contentBlockIndex"]]["toolUse"]["input"] += body["delta"]["toolUse"]["input"]
            case "contentBlockStop" if "toolUse" in content[body["contentBlockIndex"]]:
                call = content[body["contentBlockIndex"]]["toolUse"]
                call["input"] = json.loads(call["input"])
            case "messageStop":
                stop = body["stopReason"]
            case "metadata":
                usage = body["usage"]
    assert content == whole["output"]["message"]["content"]
    assert (stop, usage) == (whole["stopReason"], whole["usage"])
    assert Converse().events(CALL, reply, MODEL) == Converse().events(CALL, reply, MODEL)


def test_an_invoked_stream_wraps_the_events_of_messages() -> None:
    """PROVIDERS A2: `{"bytes": base64, "p": padding}`; no pings; metrics of the invocation at the end."""
    messages = said(Invoke(), REPLY)
    assert {kind for kind, _ in messages} == {"chunk"}
    inner = [json.loads(base64.b64decode(body["bytes"])) for _, body in messages]
    assert inner[0]["message"]["model"] == "claude-x-20260101"
    assert inner[0]["message"]["id"].startswith("msg_bdrk_")
    assert [e["type"] for e in inner if e["type"] == "ping"] == []
    assert inner[-1]["type"] == "message_stop"
    assert inner[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] > 0
    whole: Any = Invoke().whole(CALL, REPLY, MODEL)
    starts = [e["content_block"]["id"] for e in inner if e.get("content_block", {}).get("type") == "tool_use"]
    assert starts == [b["id"] for b in whole["content"] if b["type"] == "tool_use"]
    assert all(i.startswith("toolu_bdrk_") for i in starts)


@pytest.mark.parametrize("wire", [Converse(), Invoke()])
@pytest.mark.parametrize("status", [400, 429, 500, 503, 529])
def test_exceptions_in_a_stream_are_those_of_the_description(wire: Wire, status: int) -> None:
    """A2: exceptions arrive inside a 200; one that has no name of its own carries the model's status."""
    shape = service().shape_for("ConverseStreamOutput" if isinstance(wire, Converse) else "ResponseStream")
    (message,) = read([wire.error_event(CALL, Failure(status, "busy"), 3)])
    assert message.headers[":message-type"] == "exception"
    kind = message.headers[":exception-type"]
    described({kind: json.loads(message.payload)}, shape)
    assert kind == IN_STREAM.get(status, "modelStreamErrorException")
    assert json.loads(message.payload).get("originalStatusCode") == (529 if status == 529 else None)


def test_an_error_of_the_stream_itself_has_no_payload() -> None:
    """The framing's own kind of error, which no service describes."""
    (message,) = read([Converse().error_event(CALL, Failure(500, "gone", kind="InternalFailure"), 3)])
    assert message.headers == {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "gone"}
    assert message.payload == b""


def test_error_answers_have_their_names_in_the_header() -> None:
    """botocore takes the class from `x-amzn-errortype`; every name is in the service description."""
    named = {shape.name: shape.metadata["error"]["httpStatusCode"] for shape in service().error_shapes}
    for status, name in EXCEPTIONS.items():
        assert named[name] == (403 if status == 401 else status)
        assert Converse().failed_fields(None, Failure(status))["x-amzn-errortype"] == name


@pytest.mark.parametrize(
    ("wire", "body", "turn"),
    [
        (Converse(), ASKED, 0),
        (Converse(), {"messages": [*ASKED["messages"], {"role": "assistant", "content": [{"text": "y"}]}]}, 1),
        (Invoke(), CLAUDES, 0),
        (Count(), {"input": {"converse": ASKED}}, 0),
        (Count(), {"input": {"invokeModel": {"body": base64.b64encode(json.dumps(CLAUDES).encode()).decode()}}}, 0),
    ],
)
def test_the_model_stands_in_the_path(wire: Wire, body: dict[str, Any], turn: int) -> None:
    """Nothing in the body says which model answers, or whether it streams."""
    assert wire.read(body, MODEL, True, 400) == Call(MODEL, "fix it", turn, True, 400)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (Converse(), {}),
        (Converse(), {"messages": "x"}),
        (Invoke(), CLAUDES | {"model": "x"}),
        (Invoke(), CLAUDES | {"stream": True}),
        (Invoke(), {k: v for k, v in CLAUDES.items() if k != "anthropic_version"}),
        (Count(), {}),
        (Count(), {"input": {"invokeModel": {"body": "!"}}}),
        (Count(), {"input": {"invokeModel": {"body": base64.b64encode(b"[]").decode()}}}),
    ],
)
def test_what_is_no_call_is_complained_of(wire: Wire, body: dict[str, Any]) -> None:
    """400 in the provider's shape; a swapped request that kept `model` in a Claude body is found out."""
    with pytest.raises(BadCall):
        wire.read(body, MODEL, False, 400)


def test_every_operation_is_answered() -> None:
    """Over a socket: the model's `:` percent-encoded as botocore writes it, a signed request, lists, and a failure."""

    async def test() -> Provider:
        async with Provider(SCRIPT, accept=frozenset({"AKIDEXAMPLE"})) as provider:
            for operation, body in (
                ("converse", ASKED),
                ("converse-stream", ASKED),
                ("invoke", CLAUDES),
                ("invoke-with-response-stream", CLAUDES),
            ):
                got = await post(provider.port, f"{TARGET}/{operation}", body, SIGNED)
                assert got.status == 200, got.body
                streams = operation.endswith("-stream")
                assert got.fields["content-type"] == ("application/vnd.amazon.eventstream" if streams else "application/json")
                if streams:
                    assert len(read(got.chunks)) == provider.seen[-1].events
            counted = await post(provider.port, f"{TARGET}/count-tokens", {"input": {"converse": ASKED}}, SIGNED)
            assert counted.json["inputTokens"] > 0
            listed = await ask(provider.port, request_bytes("GET", "/foundation-models", None, SIGNED))
            assert listed.json["modelSummaries"][0]["modelId"] == MODEL
            unknown = await post(provider.port, "/model/other/converse", ASKED, SIGNED)
            assert (unknown.status, unknown.fields["x-amzn-errortype"]) == (404, "ResourceNotFoundException")
            other = await post(provider.port, f"{TARGET}/converse", ASKED, {n: v.replace("AKID", "AKIX") for n, v in SIGNED.items()})
            assert other.status == 401
        return provider

    provider = asyncio.run(test())
    assert {seen.signer for seen in provider.seen} == {"AKIDEXAMPLE", "AKIXEXAMPLE"}


def test_streams_break_where_the_script_says() -> None:
    """An exception after two messages, and a cut after two."""
    broken = Script(
        (
            Scene((Reply("a" * 64, broken=ErrorEvent(2, Failure(429))),), task="error"),
            Scene((Reply("a" * 64, broken=CutOff(2)),), task="cut"),
        )
    )

    async def test() -> None:
        async with Provider(broken) as provider:
            got = await post(provider.port, f"{TARGET}/converse-stream", {"messages": [{"role": "user", "content": [{"text": "error"}]}]})
            assert [m.headers.get(":exception-type") for m in read(got.chunks)] == [None, None, "throttlingException"]
            got = await post(provider.port, f"{TARGET}/converse-stream", {"messages": [{"role": "user", "content": [{"text": "cut"}]}]})
            assert (len(read(got.chunks)), got.whole) == (2, False)

    asyncio.run(test())


def test_operations_have_their_formats() -> None:
    """Two formats, whole and streamed, and the count that wraps either."""
    kinds = {
        "converse": Converse,
        "converse-stream": Converse,
        "invoke": Invoke,
        "invoke-with-response-stream": Invoke,
        "count-tokens": Count,
    }
    assert {operation: type(wire_of(operation)) for operation in kinds} == kinds
    assert not Count().events(CALL, REPLY, MODEL)
    assert Count().whole(CALL, Reply(tools=(ToolCall("t"),)), MODEL) == {"inputTokens": CALL.input_tokens}
