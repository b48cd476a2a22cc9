"""The `bedrock` adapter."""

from __future__ import annotations

import pytest

from secondtake.cassettes.adapters import read_answer
from secondtake.cassettes.exchange import Answer, Request
from tests.cassettes.adapters.contract import AdapterContract
from tests.cassettes.adapters.formats import forms_of


class TestBedrock(AdapterContract):
    forms = forms_of("bedrock")


@pytest.mark.parametrize("operation", ["converse", "invoke"])
@pytest.mark.parametrize(
    ("status", "name", "infrastructure"),
    [
        (429, "ThrottlingException", True),
        (424, "ModelErrorException", True),
        (400, "ServiceQuotaExceededException", True),
        (400, "ValidationException", False),
        (404, "ResourceNotFoundException", False),
    ],
)
def test_the_name_of_an_error_stands_in_the_head(operation: str, status: int, name: str, infrastructure: bool) -> None:
    """PROVIDERS A2: the body has a message only; an address may follow the name."""
    request = Request("POST", "https", "api.provider.example", 443, f"/model/anthropic.claude-x/{operation}".encode())
    for value in (name, f"{name}:http://api.provider.example/doc/"):
        answer = Answer(status, fields=((b"content-type", b"application/json"), (b"x-amzn-ErrorType", value.encode())))
        for body in (b'{"message":"so it is"}', b""):
            error = read_answer("bedrock", request, answer, body).error
            assert error is not None
            assert (error.type, error.infrastructure) == (name, infrastructure)


def test_a_count_is_a_whole_answer_whichever_body_it_wraps() -> None:
    """T-P4: a live count that came is no failure of the infrastructure."""
    request = Request("POST", "https", "api.provider.example", 443, b"/model/anthropic.claude-x/count-tokens")
    answer = read_answer("bedrock", request, Answer(200, fields=((b"content-type", b"application/json"),)), b'{"inputTokens":12}')
    assert (answer.complete, answer.usage.input, answer.faults, answer.error) == (True, 12, (), None)
