"""How an attempt and a seal read."""

from __future__ import annotations

from secondtake.harness.seal import Attempt, Seal, Tier


def test_an_attempt_reads_as_what_was_tried() -> None:
    """D-04: with address and port, by name where there is one."""
    assert str(Attempt(1, "tcp", "192.0.2.1", 22, None)) == "tcp 192.0.2.1:22"
    assert str(Attempt(1, "udp", "2001:db8::1", 443, None)) == "udp [2001:db8::1]:443"
    assert str(Attempt(1, "tcp", "198.18.0.1", 22, "git.example")) == "tcp git.example:22"
    assert str(Attempt(1, "dns", "new.example", None, "new.example")) == "dns new.example"


def test_two_seals_share_no_list() -> None:
    """What one run tried is not another's."""
    one, other = Seal(Tier.COOPERATIVE), Seal(Tier.COOPERATIVE)
    one.attempts.append(Attempt(1, "tcp", "192.0.2.1", 22, None))
    assert other.attempts == []
