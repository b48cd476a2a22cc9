"""OpenAI's SDK, Chat Completions."""

from __future__ import annotations

import json

import openai
from common import SCHEMAS, failure, plain, play, used

CLIENT = openai.OpenAI()
MODEL = "gpt-5"
TOOLS = [
    {"type": "function", "function": {"name": name, "description": f"{name} it", "parameters": schema, "strict": True}}
    for name, schema in SCHEMAS.items()
]


def asked(messages):
    return {"model": MODEL, "tools": TOOLS, "messages": [{"role": "system", "content": "You are a test."}, *messages]}


def converse(task, streamed):
    messages = [{"role": "user", "content": f"Please: {task}."}]
    said = []
    try:
        while True:
            if streamed:
                with CLIENT.chat.completions.stream(**asked(messages), stream_options={"include_usage": True}) as stream:
                    for event in stream:
                        said.append(plain(event))
                    completion = stream.get_final_completion()
            else:
                completion = CLIENT.chat.completions.create(**asked(messages))
            said.append(plain(completion))
            message = completion.choices[0].message
            if not message.tool_calls:
                return said
            calls = [
                {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
                for call in message.tool_calls
            ]
            messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            for call in message.tool_calls:
                text, _ = used(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    with CLIENT.chat.completions.create(**asked([{"role": "user", "content": f"Please: {task}."}]), stream=True) as stream:
        for chunk in stream:
            said.append(plain(chunk))
            if chunk.choices[0].finish_reason if at_the_end else len(said) == 3:
                break
    return said


def counted():
    return "not counted in this format"


def listed():
    return [*CLIENT.models.list(), CLIENT.models.retrieve(MODEL)]


play(converse, leave, counted, listed)
