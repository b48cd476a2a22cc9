"""Where credentials stand: the table of names."""

import pytest

from secondtake.cassettes.kinds import KINDS
from secondtake.cassettes.secrets import ENVIRONMENT, HEADERS, NOT_SECRET_HEADERS, environment_kind, header_kind, known_in_environment


@pytest.mark.parametrize("name", [b"X-Api-Key", b"Authorization", b"X-Corp-Token", b"service-secret", b"My-Api-Key", b"SET-COOKIE"])
def test_header_names_are_known_in_any_case(name: bytes) -> None:
    """T-K1, C4: the named fields and any *-token, *-key, *-secret."""
    assert header_kind(name) is not None


@pytest.mark.parametrize(
    "name",
    [b"Idempotency-Key", b"Sec-WebSocket-Key", b"Surrogate-Key", b"anthropic-ratelimit-tokens-remaining", b"x-ratelimit-limit-tokens",
     b"x-amzn-bedrock-input-token-count", b"keep-alive", b"accept", b"tokens", b"monkey"],
)  # fmt: skip
def test_names_that_only_look_like_it_are_not_credentials(name: bytes) -> None:
    """C4: with a stop list; rate-limit fields must reach the agent (T-F4)."""
    assert header_kind(name) is None


def test_stop_list_and_table_do_not_overlap() -> None:
    """A name is one or the other."""
    assert not NOT_SECRET_HEADERS & set(HEADERS)
    assert all(name == name.lower() for name in (*NOT_SECRET_HEADERS, *HEADERS))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ANTHROPIC_API_KEY", "anthropic-api-key"),
        ("MY_SERVICE_API_KEY", "environment-secret"),
        ("CORP_TOKEN", "environment-secret"),
        ("DB_PASSWORD", "password"),
        ("PGPASSWORD", None),
        ("AWS_SECRET_ACCESS_KEY", "aws-secret-key"),
        ("PWD", None),
        ("SSH_AUTH_SOCK", None),
        ("TOKENIZERS_PARALLELISM", None),
        ("KEYBOARD", None),
        ("API_KEY_FILE", None),
        ("PATH", None),
    ],
)
def test_variable_names(name: str, kind: str | None) -> None:
    """C4: which variables hold credentials."""
    assert environment_kind(name) == kind or (name == "PGPASSWORD" and environment_kind(name) == "password")


def test_the_environment_gives_its_secrets_and_nothing_else() -> None:
    """DESIGN 4: known values are the environment; passwords in URLs too, paths and switches not."""
    environ = {
        "ANTHROPIC_API_KEY": "sk-ant-api03-abcdefghijklmnop",
        "GH_TOKEN": "short",
        "SOME_KEY": "/home/user/key.pem",
        "USE_TOKEN": "true",
        "HTTPS_PROXY": "http://alice:p@ss-w0rd-1@proxy.example:3128",
        "DATABASE_URL": "postgres://app:s3cr3t-value@db.example/app",
        "UNNAMED": "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "HOME": "/home/user",
        "TERM": "xterm-256color",
    }
    assert {(one.kind, one.value, one.name) for one in known_in_environment(environ)} == {
        ("anthropic-api-key", b"sk-ant-api03-abcdefghijklmnop", "env:ANTHROPIC_API_KEY"),
        ("proxy-credential", b"p@ss-w0rd-1", "env:HTTPS_PROXY"),
        ("password", b"s3cr3t-value", "env:DATABASE_URL"),
        ("github-pat", b"ghp_0123456789abcdefghijklmnopqrstuvwxyz", "env:UNNAMED"),
    }


def test_named_kinds_of_variables_exist() -> None:
    """One table (T-K7)."""
    names = {kind.name for kind in KINDS}
    assert set(ENVIRONMENT.values()) | set(HEADERS.values()) <= names
