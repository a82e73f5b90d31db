"""Map countries to the 16 zones of the chain, and zones to their distance.

A zone is where a node says it is and where a job asks to run; nobody checks it (README.md "Known limits"). A zone is
wider than a country: `regions: ["in"]` also admits a node in Nepal.

Distance is a class of network round trip between the zones' main exchange points (Chicago, Queretaro, Bogota,
Sao Paulo, London, Frankfurt, Stockholm, Warsaw, Dubai, Marseille, Lagos, Johannesburg, Mumbai, Tokyo, Singapore,
Sydney), in steps of 20 ms: 0 is the same zone, n covers (20*(n-1), 20*n] ms, 15 is everything above 280 ms. The
round trips are shortest paths over the cables that carry the traffic, so Lagos to Tokyo goes through Europe; the
table of cables and the sum over it stand in tests/protocol/test_zones.py, which derives this matrix again.

`DISTANCE_WORDS` is the same matrix as the contracts hold it: the nibble of (a, b) is at word a//4, bit
(a%4*16 + b)*4. Source: protocol.md "Matching".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hearth.base.errors import SpecError

ZONE_COUNT = 16
ANY_ZONE = (1 << ZONE_COUNT) - 1
"""The zone mask of a job that names no country."""


@dataclass(frozen=True, slots=True)
class Zone:
    """Name one zone: `number` 0..15 as on chain, `slug` for output, `title` for people, its ISO 3166-1 codes."""

    number: int
    slug: str
    title: str
    countries: frozenset[str]


def _zone(number: int, slug: str, title: str, countries: str) -> Zone:
    return Zone(number, slug, title, frozenset(countries.split()))


ZONES: tuple[Zone, ...] = (
    _zone(0, "na", "United States, Canada, Greenland", "us ca gl pm bm um"),
    _zone(
        1,
        "carib",
        "Mexico, Central America, Caribbean",
        "mx gt bz sv hn ni cr pa cu jm ht do pr bs tc ky tt bb lc vc gd ag dm kn ai ms vg vi aw cw bq sx mf bl gp mq",
    ),
    _zone(2, "sa-north", "Andes and Guianas", "co ve ec pe bo gy sr gf"),
    _zone(3, "sa-south", "Brazil and Southern Cone", "br ar cl uy py fk gs bv aq"),
    _zone(4, "eu-west", "Western Europe", "gb ie fr es pt be nl lu mc ad im je gg gi"),
    _zone(5, "eu-central", "Central Europe", "de at ch li it sm va mt cz sk pl hu si hr"),
    _zone(6, "eu-north", "Nordic and Baltic countries", "se no dk fi is fo ax sj ee lv lt"),
    _zone(
        7,
        "eu-east",
        "Eastern Europe, Caucasus, Central Asia",
        "ru ua by md ro bg gr cy rs ba me mk al xk kz kg uz tm tj ge am az",
    ),
    _zone(8, "me", "Middle East", "tr il ps lb sy jo iq ir sa ae qa bh kw om ye"),
    _zone(9, "af-north", "Northern Africa", "eg ly tn dz ma eh mr sd"),
    _zone(
        10,
        "af-west",
        "Western and Central Africa",
        "sn gm gw gn sl lr ci ml bf gh tg bj ne ng cm td cf gq ga cg cd ao st cv sh",
    ),
    _zone(
        11,
        "af-south",
        "Eastern and Southern Africa",
        "et er dj so ss ke ug rw bi tz mw zm zw mz bw na za ls sz mg mu re yt km sc tf",
    ),
    _zone(12, "as-south", "South Asia", "in pk bd lk np bt mv af io"),
    _zone(13, "as-east", "East Asia", "cn hk mo tw jp kr kp mn"),
    _zone(14, "as-southeast", "Southeast Asia", "sg my id th vn ph kh la mm bn tl cx cc"),
    _zone(
        15,
        "oceania",
        "Australia, New Zealand, Pacific",
        "au nz pg fj sb vu nc pf ws as to tv ki nr mh fm pw gu mp ck nu tk wf pn nf hm",
    ),
)
"""All of ISO 3166-1 (249 codes) and "xk", Kosovo's customary code."""

DISTANCE: tuple[tuple[int, ...], ...] = (
    (0, 3, 4, 7, 5, 6, 7, 7, 10, 7, 10, 13, 12, 8, 11, 10),
    (3, 0, 3, 7, 7, 8, 9, 10, 12, 9, 12, 15, 14, 10, 13, 12),
    (4, 3, 0, 6, 9, 9, 10, 11, 14, 11, 12, 15, 15, 12, 15, 13),
    (7, 7, 6, 0, 10, 10, 11, 12, 15, 12, 7, 11, 15, 15, 15, 15),
    (5, 7, 9, 10, 0, 1, 2, 3, 5, 2, 5, 8, 7, 12, 10, 14),
    (6, 8, 9, 10, 1, 0, 2, 2, 5, 3, 6, 9, 6, 12, 9, 14),
    (7, 9, 10, 11, 2, 2, 0, 2, 6, 4, 7, 10, 8, 14, 11, 15),
    (7, 10, 11, 12, 3, 2, 2, 0, 4, 4, 8, 11, 6, 12, 9, 14),
    (10, 12, 14, 15, 5, 5, 6, 4, 0, 3, 10, 7, 2, 8, 5, 10),
    (7, 9, 11, 12, 2, 3, 4, 4, 3, 0, 7, 10, 5, 11, 8, 13),
    (10, 12, 12, 7, 5, 6, 7, 8, 10, 7, 0, 5, 12, 15, 15, 15),
    (13, 15, 15, 11, 8, 9, 10, 11, 7, 10, 5, 0, 9, 14, 11, 15),
    (12, 14, 15, 15, 7, 6, 8, 6, 2, 5, 12, 9, 0, 6, 3, 8),
    (8, 10, 12, 15, 12, 12, 14, 12, 8, 11, 15, 14, 6, 0, 3, 6),
    (11, 13, 15, 15, 10, 9, 11, 9, 5, 8, 15, 11, 3, 3, 0, 5),
    (10, 12, 13, 15, 14, 14, 15, 14, 10, 13, 15, 15, 8, 6, 5, 0),
)

DISTANCE_WORDS: tuple[int, int, int, int] = (
    115791591011990179359091437303021369747695134853901057961635486664844191822896,
    105740001193556721429311851434829242014945790590958002647421758736734773881205,
    113942239391186978340552839206099580411076375436677144238375641707395828547274,
    2447082185508041999960633072839199160471848498945888538459750667391987089388,
)
"""The matrix in four uint256 words, written in decimal as the contracts need them."""

ALIASES = {"uk": "gb", "el": "gr", "usa": "us", "uae": "ae"}
"""What people write for a country, and the code that they mean: a hint, never read as one."""


def _by_country() -> dict[str, int]:
    return {country: zone.number for zone in ZONES for country in zone.countries}


ZONE_OF_COUNTRY: dict[str, int] = _by_country()


def zone_of(country: str) -> int:
    """Return the zone, 0..15, of a two-letter ISO 3166-1 country code in either case.

    Raises SpecError BAD_COUNTRY, with the likely code as hint, for anything else.
    """
    code = country.strip().lower()
    if code in ZONE_OF_COUNTRY:
        return ZONE_OF_COUNTRY[code]
    hint = 'write two-letter country codes, such as "de" or "in"'
    if code in ALIASES:
        hint = f'did you mean "{ALIASES[code]}"?'
    else:
        for zone in ZONES:
            if code == zone.slug or code in zone.slug.split("-"):
                hint = f'zones are named by their countries: "{zone.slug}" is {", ".join(sorted(zone.countries))}'
                break
    raise SpecError(f'"{country}" is not an ISO 3166-1 country code', hint=hint, code="BAD_COUNTRY", country=country)


def zone_mask(countries: Iterable[str]) -> int:
    """Return the 16-bit mask of the zones that hold these countries; no country at all means any zone."""
    mask = 0
    for country in countries:
        mask |= 1 << zone_of(country)
    return mask or ANY_ZONE


def zones_in(mask: int) -> tuple[Zone, ...]:
    """Return the zones whose bit is set in a 16-bit mask, in order of their number."""
    if not 0 <= mask <= ANY_ZONE:
        raise ValueError(f"zone mask {mask} does not fit in {ZONE_COUNT} bits")
    return tuple(zone for zone in ZONES if mask >> zone.number & 1)


def zone_distance(a: int, b: int) -> int:
    """Return the distance class, 0..15, of two zones (mirrors the nibbles in the scoring module)."""
    if not (0 <= a < ZONE_COUNT and 0 <= b < ZONE_COUNT):
        raise ValueError(f"zones {a} and {b} must be in 0..{ZONE_COUNT - 1}")
    return DISTANCE[a][b]
