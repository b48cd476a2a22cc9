"""The page of a matrix, in a real browser: it asks nobody for anything, it fits a desk and a telephone, and a stranger's text is text."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from secondtake.cassettes.takes import Control, Signature
from secondtake.cli.render.page import MARKS, page
from secondtake.harness.matrix.cells import Named
from secondtake.harness.matrix.design import Arm, Axis, Change, Design
from secondtake.harness.report import report
from tests.harness.matrix.scenes import arm_takes, design

HOSTILE = "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\"'>{{ 7*7 }}\u202e"
LONG = "claude-sonnet-4-5-20250929-" + "x" * 180
ARMS = (
    Arm("old-20260101", "old-20260101", "p", "snapshot", control=True),
    Arm("new-20260601", "new-20260601", "p", "snapshot"),
    Arm("new-20260601 with old prompt", "new-20260601", "p", "snapshot", change=Change(Axis.INSTRUCTIONS, "old prompt", None)),
)

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not on this machine")


def everything(made: Design, names: tuple[str, str, str]) -> str:
    """A matrix in which every column, mark and note occurs."""
    takes = [*arm_takes(names[0], "ssosscsissosssspsssc"), *arm_takes(names[1], "pppppppspppppcpippps")]
    takes += arm_takes(names[2], "pspspspopscpps", control=Control.PARTIALLY, live=("web (2 requests) answered live",), unpinned=True)
    takes[3] = Named(takes[3].name, replace(takes[3].take, invalid="2 calls were answered by another model", mismatches=2))
    return page(report(takes, made, cut=("m-1-2",)))


@pytest.fixture(scope="module")
def ordinary() -> str:
    return everything(design(arms=ARMS, looks=(5, 20)), (ARMS[0].name, ARMS[1].name, ARMS[2].name))


@pytest.fixture(scope="module")
def hostile() -> str:
    arms = (Arm(HOSTILE, HOSTILE, control=True), Arm(LONG, LONG), Arm("b", "b"))
    takes = [*arm_takes(HOSTILE, "ssp"), *arm_takes(LONG, "psp"), *arm_takes("b", "p")]
    signature = Signature.of((("exit", HOSTILE), ("test", LONG)))
    evil = [
        Named(
            f"{HOSTILE}{number}", replace(one.take, signature=one.take.signature and signature, reason=HOSTILE + LONG, live=(HOSTILE, LONG))
        )
        for number, one in enumerate(takes)
    ]
    return page(report(evil, design(arms=arms, looks=(3,), fixture=HOSTILE)))


class Browser:
    """A headless Chromium without a network; what it asked for is in its log all the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def dom(self, html: str) -> tuple[str, set[str]]:
        """Open a page; return the document when it has loaded, and every address that was asked for beside files and data."""
        (self.folder / "page.html").write_text(html, encoding="utf-8")
        log = self.folder / "net.json"
        log.unlink(missing_ok=True)
        ran = subprocess.run(
            [
                "unshare", *(["-r"] if os.geteuid() else []), "-n",
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
                f"--user-data-dir={self.folder / 'profile'}", f"--log-net-log={log}", "--window-size=1400,900",
                "--dump-dom", (self.folder / "page.html").as_uri(),
            ],
            capture_output=True,
            timeout=60,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr.decode(errors="replace")[-2000:]
        given = [event.get("params", {}) for event in json.loads(log.read_text(errors="replace"))["events"]]
        # The browser's own look for updates has no initiator; what a page asks for has its origin.
        pages = [params for params in given if params.get("initiator", "not an origin") != "not an origin"]
        return ran.stdout.decode(), {params["url"] for params in pages if not params["url"].startswith(("file:", "data:", "about:"))}

    def measured(self, pages: list[str], widths: tuple[int, ...]) -> tuple[list[dict[str, object]], set[str]]:
        """Lay pages out in frames of several widths, and return what a script outside of them reads off."""
        frames = "".join(
            f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{escape(one)}"></iframe>' for one in pages for width in widths
        )
        reader = """
        addEventListener('load', () => {
          const told = [...document.querySelectorAll('iframe')].map(frame => {
            const page = frame.contentDocument, width = frame.clientWidth;
            const all = [...page.querySelectorAll('body *')];
            return {
              width, scroll: page.documentElement.scrollWidth, title: page.title, text: page.body.innerText,
              out: all.filter(e => { const box = e.getBoundingClientRect(); return box.width && (box.right > width + 1 || box.left < -1); })
                      .map(e => e.outerHTML.slice(0, 200)),
              small: all.filter(e => e.innerText && !e.children.length && parseFloat(getComputedStyle(e).fontSize) < 11).length,
              foreign: all.filter(e => /^(script|img|iframe|object|embed|link|form)$/i.test(e.tagName) ||
                                       [...e.attributes].some(a => /^on/i.test(a.name) ||
                                       (/^(href|src|xlink:href)$/i.test(a.name) && !a.value.startsWith('#')))).map(e => e.outerHTML),
              clipped: [...page.querySelectorAll('td, .arm, .bar-text, .headline')]
                .filter(e => e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).display !== 'inline')
                .map(e => e.outerHTML.slice(0, 200)),
            };
          });
          document.body.innerHTML = '<pre>' + btoa(unescape(encodeURIComponent(JSON.stringify(told)))) + '</pre>';
        });
        """
        dom, asked = self.dom(f"<!DOCTYPE html><meta charset=utf-8><body style='margin:0'>{frames}<script>{reader}</script></body>")
        found = re.search(r"<pre>([A-Za-z0-9+/=]+)</pre>", dom)
        assert found is not None, dom[-500:]
        return json.loads(base64.b64decode(found[1])), asked


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    return Browser(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def measured(browser: Browser, ordinary: str, hostile: str) -> tuple[list[dict[str, object]], set[str]]:
    return browser.measured([ordinary, hostile], (1280, 768, 390))


def test_the_page_asks_for_nothing(
    browser: Browser, ordinary: str, hostile: str, measured: tuple[list[dict[str, object]], set[str]]
) -> None:
    """Issue 6: no external request, in a real browser; and it is seen when a page does."""
    assert measured[1] == set()
    assert browser.dom(hostile)[1] == set()
    _, asked = browser.dom("<img src='http://127.0.0.1:9/planted.png'>")
    assert asked == {"http://127.0.0.1:9/planted.png"}
    for text in (ordinary, hostile):
        assert "default-src 'none'" in text
        assert "url(" not in text
        assert "@import" not in text


def test_the_page_is_readable_at_a_desk_and_on_a_telephone(measured: tuple[list[dict[str, object]], set[str]]) -> None:
    """Issue 6: at 1280 and at 390 pixels nothing goes out of sight, nothing is cut, and no letter is too small."""
    for told in measured[0]:
        assert told["scroll"] == told["width"], told["out"]
        assert told["out"] == []
        assert told["clipped"] == []
        assert told["small"] == 0
    assert [told["width"] for told in measured[0]] == [1280, 768, 390] * 2


def test_what_a_stranger_wrote_is_text(measured: tuple[list[dict[str, object]], set[str]], hostile: str) -> None:
    """A model's name, a signature and a reason may hold anything: no element, no attribute, no template comes of it."""
    for told in measured[0]:
        assert told["foreign"] == []
    assert measured[0][3]["title"] != "owned"
    text = str(measured[0][3]["text"])
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7*7 }}" in text
    assert "\u202e" not in hostile
    assert "\\u202e" in hostile


def test_the_page_says_what_the_report_says(measured: tuple[list[dict[str, object]], set[str]]) -> None:
    """Headline, how sure, label and what stayed live, every column, the seal of the design."""
    text = str(measured[0][0]["text"])
    for said in (
        "REPRODUCED",
        "partially controlled: web (2 requests) answered live",
        "Comparison study, not proof of a model regression",
        "new-20260601 with old prompt",
        "same model as recorded",
        "unpinned",
        "topped up after results were seen",
        "2 calls were answered by another model",
        "as recorded",
        design(arms=ARMS, looks=(5, 20)).digest,
        *(str(column) for column in MARKS),
    ):
        assert said in text, said


def test_each_outcome_has_a_shape_of_its_own(ordinary: str) -> None:
    """Not by colour alone."""
    shapes = dict(re.findall(r'<symbol id="m-(\w+)"[^>]*>(.*?)</symbol>', ordinary))
    assert set(shapes) == set(MARKS.values())
    assert len(set(shapes.values())) == len(shapes)
    assert set(re.findall(r'href="#m-(\w+)"', ordinary)) == set(shapes)


def test_each_take_is_led_to_by_its_mark(ordinary: str) -> None:
    """Links stay within the page, and each finds its line."""
    targets = set(re.findall(r'id="(take-\d+)"', ordinary))
    assert len(targets) == 54
    assert set(re.findall(r'href="#(take-\d+)"', ordinary)) == targets


def test_a_matrix_that_has_not_begun_has_a_page() -> None:
    """Before the first take has ended."""
    text = page(report([], design(arms=ARMS)))
    assert "NO TAKE COUNTS" in text
    assert "none yet" in text
    assert "nothing is compared" in page(report([], design(arms=ARMS[:1])))
