"""The variables that point a process at us, and the way back."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from secondtake.proxy.configs import Tool
from secondtake.proxy.environment import child_environment
from secondtake.proxy.trust import FILE_VARIABLES
from secondtake.proxy.variables import BEFORE, PROXY_VARIABLES, TRUST_VARIABLES, Block, applied, restored, undo

BUNDLE = Path("/run/user/1000/secondtake/bundle.pem")
CORP = "http://user:pa%40ss@proxy.corp.example:3128"


def test_undoing_gives_the_former_proxy_back() -> None:
    """DESIGN 7: `env --unset` in a shell that had a proxy before."""
    before = {"HTTPS_PROXY": CORP, "HTTP_PROXY": "http://other.example:1", "NO_PROXY": "a.example,10.0.0.0/8"}
    shell = child_environment(before, port=1, bundle=BUNDLE, former=True)
    back = restored(shell)
    assert back == before
    del shell["SECONDTAKE_BEFORE"]
    assert restored(shell) == {
        **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), CORP),
        **dict.fromkeys(("HTTP_PROXY", "http_proxy"), "http://other.example:1"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "a.example,10.0.0.0/8"),
    }
    assert restored({"SECONDTAKE_UPSTREAM": CORP}) == dict.fromkeys(PROXY_VARIABLES, CORP)
    assert restored({}) == {}


def test_undoing_is_exact_also_for_trust_and_for_git() -> None:
    """DESIGN 7: after `env --unset` the company's own trust is back, and git finds no count without its values."""
    before = {
        "PATH": "/bin",
        "HTTPS_PROXY": CORP,
        "ALL_PROXY": "http://x.example:1",
        "no_proxy": "",
        "REQUESTS_CA_BUNDLE": "/corp é&=.pem",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "c",
        "npm_config_cafile": "/npm.pem",
    }
    for base in (before, {"PATH": "/bin"}):
        shell = child_environment(base, port=1, bundle=BUNDLE, former=True, overriding=list(Tool))
        twice = child_environment(shell, port=2, bundle=BUNDLE, former=True, overriding=[Tool.PIP])
        for pointed in (shell, twice):
            assert applied(undo(pointed), pointed) == base
        assert twice["GIT_CONFIG_COUNT" if base is before else "PIP_PROXY"] == ("1" if base is before else "http://127.0.0.1:2")
    assert undo(before) == Block({}, ())


def test_an_agent_is_not_shown_what_the_shell_had_before() -> None:
    """T-R13: neither the former proxy nor the former values reach a child of a pointed shell."""
    shell = child_environment({"HTTPS_PROXY": CORP}, port=1, bundle=BUNDLE, former=True)
    assert {"SECONDTAKE_BEFORE", "SECONDTAKE_UPSTREAM"} <= shell.keys()
    assert not {"SECONDTAKE_BEFORE", "SECONDTAKE_UPSTREAM"} & child_environment(shell, port=2, bundle=BUNDLE).keys()


def test_what_we_replace_we_have_read_before() -> None:
    """DESIGN 3: the union holds what the user configured in each variable that our bundle takes the place of."""
    assert set(TRUST_VARIABLES) <= set(FILE_VARIABLES)


@given(
    st.dictionaries(
        st.sampled_from([*PROXY_VARIABLES, *TRUST_VARIABLES[:3], "NO_PROXY", "ALL_PROXY", "PIP_PROXY", "GIT_CONFIG_COUNT", "OTHER"]),
        st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"], include_characters="\udc80\udcff"), max_size=12),
    ),
    st.sets(st.sampled_from(list(Tool))),
)
def test_whatever_a_shell_had_it_has_again(base: dict[str, str], overriding: set[Tool]) -> None:
    """DESIGN 7: `env` and `env --unset` cancel out."""
    shell = child_environment(base, port=1, bundle=BUNDLE, former=True, overriding=overriding)
    assert applied(undo(shell), shell) == base


def test_hostile_former_values_raise_nothing() -> None:
    """Variables anybody may have set to anything."""
    for text in ("%", "a=%ff", "=", "&&", "https=", "x" * 70_000, "&".join("a=b" for _ in range(2000))):
        for name in (BEFORE, "SECONDTAKE_UPSTREAM", "GIT_CONFIG_COUNT"):
            undo({"SECONDTAKE_PROXY": "http://127.0.0.1:1", name: text})
