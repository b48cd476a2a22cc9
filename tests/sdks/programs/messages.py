"""Anthropic's SDK."""

from __future__ import annotations

import anthropic
from common import SCHEMAS, failure, plain, play, used

CLIENT = anthropic.Anthropic()
MODEL = "claude-sonnet-5"
TOOLS = [{"name": name, "description": f"{name} it", "input_schema": schema} for name, schema in SCHEMAS.items()]


def asked(messages):
    return {"model": MODEL, "max_tokens": 512, "system": "You are a test.", "tools": TOOLS, "messages": messages}


def converse(task, streamed):
    messages = [{"role": "user", "content": f"Please: {task}."}]
    said = []
    try:
        while True:
            if streamed:
                with CLIENT.messages.stream(**asked(messages)) as stream:
                    for event in stream:
                        said.append(plain(event))
                    message = stream.get_final_message()
            else:
                message = CLIENT.messages.create(**asked(messages))
            said.append(plain(message))
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return said
            messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]})
            results = []
            for call in calls:
                text, failed = used(call.name, call.input)
                results.append({"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed})
            messages.append({"role": "user", "content": results})
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    with CLIENT.messages.create(**asked([{"role": "user", "content": f"Please: {task}."}]), stream=True) as stream:
        for event in stream:
            said.append(plain(event))
            if event.type == "message_stop" if at_the_end else len(said) == 3:
                break
    return said


def counted():
    messages = [{"role": "user", "content": "Please: count."}]
    message = CLIENT.messages.create(**asked(messages))
    later = [*messages, {"role": "assistant", "content": message.content[0].text}, {"role": "user", "content": "Go on."}]
    return [CLIENT.messages.count_tokens(model=MODEL, messages=told) for told in (messages, later)]


def listed():
    return [*CLIENT.models.list(), CLIENT.models.retrieve(MODEL)]


play(converse, leave, counted, listed)
