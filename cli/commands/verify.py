"""`verify`: is a cassette still what was recorded?"""

from __future__ import annotations

import click

from secondtake.cli.exits import Exit
from secondtake.cli.options import Surface, name_argument, surface_options


def _subset(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    part, slash, parts = value.partition("/")
    if not slash or not part.isdecimal() or not parts.isdecimal() or not 1 <= int(part) <= int(parts):
        raise click.BadParameter(f"{value!r} is not N/T with 1 <= N <= T", ctx=context, param=parameter)
    return int(part), int(parts)


@click.command("verify")
@name_argument()
@click.option("--quick", is_flag=True, help="Check the structure, not the bytes of every body.")
@click.option("--subset", metavar="N/T", callback=_subset, help="Read the N-th of T parts of the bodies.")
@click.option("--root", metavar="HEX", help="Fail unless the Merkle root is this one, noted down elsewhere.")
@surface_options
def command(surface: Surface, name: str, quick: bool, subset: tuple[int, int] | None, root: str | None) -> int:
    """Re-read a cassette and name every fault."""
    from secondtake.cli.render.progress import working
    from secondtake.cli.render.words import count

    with working(surface, f"verifying {name}"):
        report = surface.store().verify(name, quick=quick, subset=subset, root=root)
    faults = list(report.faults)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(
            as_line(
                {
                    "name": name,
                    "clean": not report.damaged,
                    "readable": report.readable,
                    "state": None if report.state is None else str(report.state),
                    "exchanges": report.exchanges,
                    "root": report.root,
                    "faults": [
                        {"id": f.name, "severity": str(f.severity), "seq": f.seq, "offset": f.offset, "message": f.message} for f in faults
                    ],
                }
            )
        )
    elif faults:
        from secondtake.cli.render.tables import print_table

        print_table(
            ["fault", "severity", ">exchange", ">offset", "what"],
            (
                [f.name, str(f.severity), "" if f.seq is None else str(f.seq), "" if f.offset is None else str(f.offset), f.message]
                for f in faults
            ),
        )
    if not surface.json and not report.damaged:
        print(f"clean: {count(report.exchanges, 'exchange')}, {report.state}, root {report.root or 'none'}")
    return Exit.STORE if report.damaged else Exit.CLEAN
