"""AWS's SDK: Bedrock's invoke, with Claude's own bodies."""

from __future__ import annotations

import json

import boto3
from common import SCHEMAS, failure, plain, play, used

CLIENT = boto3.client("bedrock-runtime")
MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOLS = [{"name": name, "description": f"{name} it", "input_schema": schema} for name, schema in SCHEMAS.items()]


def asked(messages):
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 512,
        "system": "You are a test.",
        "tools": TOOLS,
        "messages": messages,
    }
    return {"modelId": MODEL, "body": json.dumps(body)}


def assembled(stream, said):
    """The content that a stream's chunks make."""
    content = []
    for event in stream:
        data = json.loads(event["chunk"]["bytes"])
        said.append(data)
        match data["type"]:
            case "content_block_start":
                content.append(data["content_block"] | ({"input": ""} if data["content_block"]["type"] == "tool_use" else {}))
            case "content_block_delta" if data["delta"]["type"] == "text_delta":
                content[data["index"]]["text"] += data["delta"]["text"]
            case "content_block_delta":
                content[data["index"]]["input"] += data["delta"]["partial_json"]
            case "content_block_stop" if content[data["index"]]["type"] == "tool_use":
                content[data["index"]]["input"] = json.loads(content[data["index"]]["input"])
    return content


def converse(task, streamed):
    messages = [{"role": "user", "content": f"Please: {task}."}]
    said = []
    try:
        while True:
            if streamed:
                answer = CLIENT.invoke_model_with_response_stream(**asked(messages))
                said.append(plain({key: value for key, value in answer.items() if key != "body"}))
                content = assembled(answer["body"], said)
            else:
                answer = CLIENT.invoke_model(**asked(messages))
                body = json.loads(answer.pop("body").read())
                said.append(plain({**answer, "body": body}))
                content = body["content"]
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return said
            messages.append({"role": "assistant", "content": content})
            results = []
            for call in calls:
                text, failed = used(call["name"], call["input"])
                results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed})
            messages.append({"role": "user", "content": results})
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    answer = CLIENT.invoke_model_with_response_stream(**asked([{"role": "user", "content": f"Please: {task}."}]))
    for event in answer["body"]:
        data = json.loads(event["chunk"]["bytes"])
        said.append(data)
        if data["type"] == "message_stop" if at_the_end else len(said) == 3:
            break
    answer["body"].close()
    return said


def counted():
    messages = [{"role": "user", "content": "Please: count."}]
    content = json.loads(CLIENT.invoke_model(**asked(messages))["body"].read())["content"]
    later = [*messages, {"role": "assistant", "content": content}, {"role": "user", "content": "Go on."}]
    bodies = [asked(told)["body"] for told in (messages, later)]
    return [CLIENT.count_tokens(modelId=MODEL, input={"invokeModel": {"body": body}}) for body in bodies]


def listed():
    return boto3.client("bedrock").list_foundation_models()


play(converse, leave, counted, listed)
