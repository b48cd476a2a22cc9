"""Google's SDK: generateContent."""

from __future__ import annotations

from common import SCHEMAS, failure, plain, play, used
from google import genai
from google.genai import types

CLIENT = genai.Client(http_options=types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.05, jitter=0.01)))
MODEL = "gemini-2.5-pro"
TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name=name, description=f"{name} it", parameters_json_schema=schema)
            for name, schema in SCHEMAS.items()
        ]
    )
]
CONFIG = types.GenerateContentConfig(system_instruction="You are a test.", tools=TOOLS, max_output_tokens=512)


def converse(task, streamed):
    contents = [types.Content(role="user", parts=[types.Part(text=f"Please: {task}.")])]
    said = []
    try:
        while True:
            if streamed:
                parts = []
                for piece in CLIENT.models.generate_content_stream(model=MODEL, contents=contents, config=CONFIG):
                    said.append(plain(piece))
                    parts += piece.candidates[0].content.parts or []
            else:
                answer = CLIENT.models.generate_content(model=MODEL, contents=contents, config=CONFIG)
                said.append(plain(answer))
                parts = answer.candidates[0].content.parts
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return said
            contents.append(types.Content(role="model", parts=parts))
            results = []
            for call in calls:
                text, failed = used(call.name, call.args)
                made = types.FunctionResponse(id=call.id, name=call.name, response={"error" if failed else "output": text})
                results.append(types.Part(function_response=made))
            contents.append(types.Content(role="user", parts=results))
    except Exception as error:
        return [*said, failure(error)]


def leave(task, at_the_end):
    said = []
    stream = CLIENT.models.generate_content_stream(model=MODEL, contents=f"Please: {task}.", config=CONFIG)
    for piece in stream:
        said.append(plain(piece))
        if piece.candidates[0].finish_reason if at_the_end else len(said) == 3:
            break
    stream.close()
    return said


def counted():
    contents = [types.Content(role="user", parts=[types.Part(text="Please: count.")])]
    answer = CLIENT.models.generate_content(model=MODEL, contents=contents, config=CONFIG)
    later = [*contents, answer.candidates[0].content, types.Content(role="user", parts=[types.Part(text="Go on.")])]
    return [CLIENT.models.count_tokens(model=MODEL, contents=told) for told in (contents, later)]


def listed():
    return [*CLIENT.models.list(), CLIENT.models.get(model=MODEL)]


play(converse, leave, counted, listed)
