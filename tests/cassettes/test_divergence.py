"""Where a replay first left the recording."""

from __future__ import annotations

from secondtake.cassettes.differences import Difference
from secondtake.cassettes.divergence import Course
from secondtake.cassettes.exchange import Answer, Answered, Bytes, Channel, Ending, Request
from secondtake.cassettes.misses import Miss, MissKind, Nearest
from secondtake.cassettes.served import Serve

ASK = Request("POST", "https", "api.provider.example", 443, b"/v1/messages")
PLACE = Difference("body", "messages[0].content", "fix it", "break it")


def test_a_run_that_is_answered_by_content_never_left() -> None:
    """Issue 4, item 5: another order is no divergence, nor is what the rules forgive."""
    course = Course()
    for how in (Answered.EXACT, Answered.NORMALISED, Answered.DERIVED, Answered.LOCAL):
        course.answered(Channel.MODEL, how)
    assert course.divergence is None


def test_the_first_miss_is_kept_and_what_follows_is_counted() -> None:
    """Issue 4, item 5: which request, which field, both values, and whether what followed was served or missed."""
    course = Course()
    course.answered(Channel.WEB, Answered.EXACT)
    course.answered(Channel.MODEL, Answered.EXACT)
    for _ in range(2):
        course.answered(Channel.MODEL, Answered.MISS)
        nearest = Nearest(7, "POST", ASK.url, 200, (PLACE,), 2, "ignore = {}")
        course.missed(ASK, Miss(MissKind.MODEL_DIVERGED, nearest, "", Channel.MODEL))
    course.answered(Channel.WEB, Answered.NORMALISED)
    left = course.divergence
    assert left is not None
    assert (left.request, left.call, left.seq, left.first, left.more, left.rule) == (3, 2, 7, PLACE, 2, "ignore = {}")
    assert (left.answered, left.kind) == (Answered.MISS, "model-diverged")
    assert left.followed == {Answered.MISS: 1, Answered.NORMALISED: 1}


def test_a_call_that_was_placed_by_its_position_is_a_divergence() -> None:
    """Issue 4, item 5: whether what followed was still served (positional)."""
    course = Course()
    course.answered(Channel.MODEL, Answered.POSITIONAL)
    course.placed(ASK, Serve(Answer(200), Bytes(b""), Ending.COMPLETE, Answered.POSITIONAL, 4, differences=(PLACE,), channel=Channel.MODEL))
    left = course.divergence
    assert left is not None
    assert (left.request, left.call, left.seq, left.first, left.kind) == (1, 1, 4, PLACE, None)


def test_what_the_client_says_is_shown_on_one_line() -> None:
    """C-17: nothing from a stranger reaches a line of ours raw."""
    course = Course()
    course.answered(Channel.WEB, Answered.MISS)
    asked = Request("GET", "https", "web.example", 443, b"/\x1b[2J" + b"a" * 1000)
    course.missed(asked, Miss(MissKind.NEW_RESOURCE, None, "", Channel.WEB))
    left = course.divergence
    assert left is not None
    assert (left.call, left.seq, left.first, "\x1b" in left.url, len(left.url)) == (None, None, None, False, 300)
