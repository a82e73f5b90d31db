"""Countries and zones: every code, what is none, masks, and every distance."""

from __future__ import annotations

from random import Random
from typing import Any

from hearth.base.errors import HearthError
from hearth.protocol import zones
from tests.web.vectors import _chance
from tests.web.vectors._plain import outcome


def cases() -> dict[str, Any]:
    """Return countries with their zone or refusal, lists with their mask, masks with their zones, and distances."""
    random = _chance.source("zones")
    codes = sorted(zones.ZONE_OF_COUNTRY)
    lists = [
        [],
        ["us"],
        ["de", "FR", " in "],
        ["de", "xx"],
        ["us", "us"],
        codes,
        *(_some(random, codes) for _ in range(20)),
    ]
    masks = [0, 1, 0x8000, 0xFFFF, 0x10000, -1, *(random.getrandbits(16) for _ in range(15))]
    pairs = [(a, b) for a in range(16) for b in range(16)] + [(16, 0), (0, 16), (-1, 0), (0, -1)]
    odd = [
        "DE",
        "De",
        "\tde\n",
        "uk",
        "UK",
        "el",
        "usa",
        "UAE",
        "na",
        "me",
        "eu",
        "west",
        "eu-west",
        "as-east",
        "south",
    ]
    odd += ["carib", "zz", "xx", "d", "deu", "1", "\uff44\uff45", "\u212ar"]
    odd += [
        "",
        " ",
        "d e",
        "\x1cde\x1f",
        "\ufeffde",
        "de\x00",
        "\u0130n",
        "\u0131n",
        "__proto__",
        "constructor",
        "toString",
    ]
    odd += ["\ud800", "d\u0435", "-", "eu-", "\u2003de\u3000", "de\u200b", "\u017fe"]
    return {
        "countries": [_country(code) for code in [*codes, *odd]],
        "masks": [{"in": countries, **outcome(lambda one=countries: zones.zone_mask(one))} for countries in lists],
        "zones": [
            {"in": mask, **outcome(lambda mask=mask: [zone.number for zone in zones.zones_in(mask)])} for mask in masks
        ],
        "distances": [[a, b, outcome(lambda a=a, b=b: zones.zone_distance(a, b))] for a, b in pairs],
    }


def _some(random: Random, codes: list[str]) -> list[str]:
    return random.sample(codes, random.randrange(1, 6))


def _country(code: str) -> dict[str, Any]:
    try:
        return {"in": code, "out": zones.zone_of(code)}
    except HearthError as refused:
        return {"in": code, "code": refused.code}
