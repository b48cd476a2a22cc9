"""AWS's SDK: Bedrock Converse."""

from __future__ import annotations

import json

import boto3
from common import SCHEMAS, failure, plain, play, used

CLIENT = boto3.client("bedrock-runtime")
MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOLS = [{"toolSpec": {"name": name, "description": f"{name} it", "inputSchema": {"json": schema}}} for name, schema in SCHEMAS.items()]


def asked(messages):
    return {
        "modelId": MODEL,
        "system": [{"text": "You are a test."}],
        "messages": messages,
        "toolConfig": {"tools": TOOLS},
        "inferenceConfig": {"maxTokens": 512},
    }


def assembled(events, said):
    """The message that a stream's events make."""
    content = {}
    for event in events:
        said.append(plain(event))
        for kind, body in event.items():
            index = body.get("contentBlockIndex")
            if kind == "contentBlockStart":
                content[index] = {"toolUse": {**body["start"]["toolUse"], "input": ""}}
            elif kind == "contentBlockDelta" and "text" in body["delta"]:
                block = content.setdefault(index, {"text": ""})
                block["text"] += body["delta"]["text"]
            elif kind == "contentBlockDelta":
                content[index]["toolUse"]["input"] += body["delta"]["toolUse"]["input"]
    for block in content.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return {"role": "assistant", "content": [content[index] for index in sorted(content)]}


def converse(task, streamed):
    messages = [{"role": "user", "content": [{"text": f"Please: {task}."}]}]
    said = []
    try:
        while True:
            if streamed:
                answer = CLIENT.converse_stream(**asked(messages))
                said.append(plain(answer["ResponseMetadata"]))
                message = assembled(answer["stream"], said)
            else:
                answer = CLIENT.converse(**asked(messages))
                said.append(plain(answer))
                message = answer["output"]["message"]
            calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            if not calls:
                return said
            messages.append(message)
            results = []
            for call in calls:
                text, failed = used(call["name"], call["input"])
                status = "error" if failed else "success"
                results.append({"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": text}], "status": status}})
            messages.append({"role": "user", "content": results})
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    answer = CLIENT.converse_stream(**asked([{"role": "user", "content": [{"text": f"Please: {task}."}]}]))
    for event in answer["stream"]:
        said.append(plain(event))
        if "metadata" in event if at_the_end else len(said) == 3:
            break
    answer["stream"].close()
    return said


def counted():
    messages = [{"role": "user", "content": [{"text": "Please: count."}]}]
    answer = CLIENT.converse(**asked(messages))
    later = [*messages, answer["output"]["message"], {"role": "user", "content": [{"text": "Go on."}]}]
    return [CLIENT.count_tokens(modelId=MODEL, input={"converse": {"messages": told}}) for told in (messages, later)]


def listed():
    return boto3.client("bedrock").list_foundation_models()


play(converse, leave, counted, listed)
