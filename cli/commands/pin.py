"""`pin`: what a model ID promises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from secondtake.cli.exits import Exit
from secondtake.cli.options import Surface, surface_options

if TYPE_CHECKING:
    from secondtake.cassettes.pins import Pin


@click.command("pin")
@click.argument("identity", metavar="ID")
@click.option("--provider", metavar="NAME", help="Whose ID it is; without it, guessed by how vendors write theirs.")
@click.option("--on", "day", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Judge retirement on this day instead of today.")
@surface_options
def command(surface: Surface, identity: str, provider: str | None, day: datetime | None) -> int:
    """Explain what holds a model ID fixed: its class, why, and what to take instead.

    Exits 0 when an experiment takes the ID, and 64, as `retake` would, when it is an alias, a router or a deployment.
    """
    from secondtake.cassettes.pins import explain, looks_like

    on = (day or datetime.now(UTC)).date()
    pin = explain(identity, provider or looks_like(identity), on=on)
    code = Exit.CLEAN if pin.held else Exit.USAGE
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**pin_fields(pin), "guessed": provider is None, "on": on.isoformat(), "exit_code": int(code)}))
    else:
        _say(pin, guessed=provider is None)
    return code


def _say(pin: Pin, *, guessed: bool) -> None:
    from secondtake.cli.render.escape import visible_line

    print(visible_line(f"{pin.id}: {pin.pin_class}, {'taken' if pin.held else 'refused without --allow-unpinned'}"))
    print(visible_line(f"  why        {pin.reason}"))
    if pin.retires is not None:
        print(f"  retire{'d ' if pin.retired else 's '}   {pin.retires.isoformat()}")
    if pin.candidates:
        print(visible_line(f"  instead    {', '.join(pin.candidates)}"))
    print(f"  table      {pin.provider} {pin.table}{' (guessed; --provider says which)' if guessed else ''}")


def pin_fields(pin: Pin) -> dict[str, object]:
    """Return a pin as an object."""
    return {
        "id": pin.id,
        "provider": pin.provider,
        "class": str(pin.pin_class),
        "held": pin.held,
        "reason": pin.reason,
        "candidates": list(pin.candidates),
        "retires": pin.retires.isoformat() if pin.retires else None,
        "retired": pin.retired,
        "where": pin.where,
        "table": pin.table,
    }
