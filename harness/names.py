"""A readable name for a recording that was given none: `2026-11-30-quiet-otter`."""

from __future__ import annotations

from collections.abc import Container
from datetime import date
from random import Random

ADJECTIVES = (
    "amber brave brisk calm clear clever cold copper cosy crisp curly dapper deft dusty eager early fair fleet fond fresh gentle glad "
    "grand green handy happy hazel honest humble jolly keen kind late lively lucid lucky mellow merry mild misty modest neat nimble noble "
    "olive patient plain plucky polite proud quick quiet rapid ready rosy royal ruby rustic sharp shiny silent silver simple sleek"
)
NOUNS = (
    "acorn anchor aspen badger beacon beetle birch bison breeze brook canyon cedar cello cliff clover comet coral crane creek curlew daisy "
    "delta dune eagle ember falcon fern finch fjord flint forest fox gale garnet gecko glade grove gull harbor hazel heron hill ibis iris "
    "island jasper juniper kestrel lagoon lake lantern larch lark linden lynx maple marsh meadow mole moss oak orchid osprey otter"
)


def generated_name(today: date, random: Random, taken: Container[str]) -> str:
    """Return a name that is not in `taken`; after a few collisions it ends in a number."""
    adjectives, nouns = ADJECTIVES.split(), NOUNS.split()
    stem = ""
    for _ in range(8):
        stem = f"{today.isoformat()}-{random.choice(adjectives)}-{random.choice(nouns)}"
        if stem not in taken:
            return stem
    number = 2
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
