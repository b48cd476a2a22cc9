"""The page of a comparison: no script, no request, every text escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from secondtake.cassettes.diff.arms import compare
from secondtake.cassettes.diff.layers import Layer
from secondtake.cassettes.takes import Outcome
from secondtake.cli.render.diff_page import PATCH_LINES, arms_page, diff_page
from tests.cassettes.diff.plays import Act, Turn, edit, played, run, say
from tests.cassettes.diff.test_arms import arm
from tests.cassettes.diff.test_outcome import check, take
from tests.cassettes.diff.test_tree import START
from tests.cli.render.test_diff import diff

EVIL = "</div><script>x()</script><img src=x onerror=y()>\x1b\u202e'\"&{{ 7*7 }}"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Which elements and attributes there are, what is said, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.said: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def everything_evil() -> str:
    a = (run("ls"), Turn((Act(EVIL, {EVIL: EVIL, "path": EVIL}),)), say("x"))
    b = (run("ls"), Turn((Act(EVIL, {EVIL: "b", "path": EVIL}),)), run(EVIL), say("x", stop="max_tokens"))
    ends = take(Outcome.SAME, check(EVIL, held=False), live=(EVIL,), model=EVIL), take(Outcome.PASS, check(EVIL))
    return diff_page(diff(a, b, {**START, EVIL: EVIL.encode()}, ends), tuple(Layer))


def test_recorded_text_is_text_wherever_it_stands() -> None:
    """C-14: strangers' text in a page; nothing of it becomes an element, an attribute, a control character, or a template's expression."""
    text = everything_evil()
    page = Page(text)
    assert page.open == []
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(page.tags)
    assert not any(name.startswith("on") or name == "src" for name in page.attributes)
    assert not {"\x1b", "\u202e"} & set(text)
    assert any("<script>x()</script>" in said for said in page.said)
    assert any("{{ 7*7 }}" in said for said in page.said)


def test_the_page_loads_nothing_and_fits_a_telephone() -> None:
    """Issue 6: no external request, readable at 1280 and at 390 pixels."""
    text = everything_evil()
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert 'content="width=device-width, initial-scale=1"' in text
    assert "@media (max-width: 640px)" in text
    for outside in ("http:", "https:", "url(", "@import", "//cdn"):
        assert outside not in text


def test_each_layer_has_its_section_and_says_whether_it_differs() -> None:
    """Issue 6.4: four layers, separately, in HTML."""
    page = Page(everything_evil())
    assert page.ids == ["decisions", "commands", "tree", "outcome"]
    alone = Page(diff_page(diff((run("ls"),), (run("ls"),)), (Layer.DECISIONS,)))
    assert alone.ids == ["decisions"]
    assert "nav" not in alone.tags


def test_long_stretches_that_are_the_same_are_folded_and_still_there() -> None:
    """The browser's own folding, without a script."""
    many = tuple(run(f"echo {number}") for number in range(40))
    page = Page(diff_page(diff((*many, edit("a")), (*many, edit("b"))), (Layer.DECISIONS,)))
    text = "".join(page.said)
    assert page.tags.count("details") == 1
    assert "38 the same" in text
    assert "run: echo 7" in text


def test_a_very_long_patch_is_bounded_and_says_so() -> None:
    """A page that no browser opens helps nobody."""
    made = diff(final={**START, "foo.py": b"".join(b"%d\n" % n for n in range(PATCH_LINES + 50))})
    assert "more lines" in diff_page(made, (Layer.TREE,))


def test_arms_have_a_page_with_bars() -> None:
    """Counts per arm; the first parting too, where it is another."""
    a = arm(EVIL, *(played(run("ls"), run("pytest")) for _ in range(3)), played(run("id"), run("x")))
    b = arm("B", *(played(run("ls"), edit("foo.py")) for _ in range(4)))
    text = arms_page(compare(a, b))
    page = Page(text)
    assert page.open == []
    assert "script" not in page.tags
    assert page.ids == ["greatest", "earliest"]
    assert "width: 75%" in text
    assert "At decision 2, A ran pytest 3/4, B edit foo.py 4/4" in "".join(page.said)
