"""OpenAI's SDK, Responses."""

from __future__ import annotations

import json

import openai
from common import SCHEMAS, failure, plain, play, used

CLIENT = openai.OpenAI()
MODEL = "gpt-5"
TOOLS = [
    {"type": "function", "name": name, "description": f"{name} it", "parameters": schema, "strict": True}
    for name, schema in SCHEMAS.items()
]


def asked(items):
    return {"model": MODEL, "instructions": "You are a test.", "tools": TOOLS, "input": items, "store": False}


def converse(task, streamed):
    items = [{"role": "user", "content": f"Please: {task}."}]
    said = []
    try:
        while True:
            if streamed:
                with CLIENT.responses.stream(**asked(items)) as stream:
                    for event in stream:
                        said.append(plain(event))
                    response = stream.get_final_response()
            else:
                response = CLIENT.responses.create(**asked(items))
            said.append(plain(response))
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return said
            items += [item.model_dump(mode="json", exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
            for call in calls:
                text, _ = used(call.name, json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    with CLIENT.responses.create(**asked([{"role": "user", "content": f"Please: {task}."}]), stream=True) as stream:
        for event in stream:
            said.append(plain(event))
            if event.type == "response.completed" if at_the_end else len(said) == 3:
                break
    return said


def counted():
    messages = [{"role": "user", "content": "Please: count."}]
    response = CLIENT.responses.create(**asked(messages))
    later = [*messages, {"role": "assistant", "content": response.output_text}, {"role": "user", "content": "Go on."}]
    return [CLIENT.responses.input_tokens.count(model=MODEL, input=told) for told in (messages, later)]


def listed():
    return list(CLIENT.models.list())


play(converse, leave, counted, listed)
