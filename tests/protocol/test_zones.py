"""Zones: the country table, the distance matrix, and the words that the contracts hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import SpecError
from hearth.protocol.zones import (
    ANY_ZONE,
    DISTANCE,
    DISTANCE_WORDS,
    ZONE_COUNT,
    ZONE_OF_COUNTRY,
    ZONES,
    zone_distance,
    zone_mask,
    zone_of,
    zones_in,
)

# Typical round trips in ms of the direct cables between the zones' main exchange points.
HUB_LINKS_MS = {
    (0, 1): 50,  # Chicago - Queretaro
    (0, 2): 75,  # Chicago - Bogota
    (0, 3): 135,  # Chicago - Sao Paulo
    (0, 4): 90,  # Chicago - London
    (0, 13): 150,  # Chicago - Tokyo
    (0, 15): 185,  # Chicago - Sydney
    (1, 2): 60,
    (1, 3): 140,
    (2, 3): 110,
    (3, 4): 185,  # EllaLink, Fortaleza - Sines
    (3, 10): 130,  # SACS, Fortaleza - Luanda
    (4, 5): 15,
    (4, 6): 35,
    (4, 7): 50,
    (4, 9): 40,
    (4, 10): 100,  # London - Lagos
    (4, 11): 160,  # London - Johannesburg
    (5, 6): 25,
    (5, 7): 35,
    (5, 8): 90,  # Frankfurt - Dubai
    (5, 9): 45,
    (5, 12): 120,  # Frankfurt - Mumbai
    (6, 7): 35,
    (7, 8): 80,
    (8, 9): 60,
    (8, 11): 130,
    (8, 12): 40,  # Dubai - Mumbai
    (8, 14): 90,  # Dubai - Singapore
    (10, 11): 90,
    (12, 14): 60,  # Mumbai - Singapore
    (13, 14): 60,
    (13, 15): 115,
    (14, 15): 95,
}
ZONE_NUMBERS = st.integers(0, ZONE_COUNT - 1)


def test_zones__all_of_iso_3166__each_country_once() -> None:
    codes = [country for zone in ZONES for country in zone.countries]
    assert len(codes) == len(set(codes)) == 249 + 1  # and Kosovo
    assert all(len(code) == 2 and code.isalpha() and code.islower() for code in codes)
    assert [zone.number for zone in ZONES] == list(range(ZONE_COUNT))
    assert len({zone.slug for zone in ZONES}) == ZONE_COUNT


@pytest.mark.parametrize(
    ("country", "slug"),
    [
        ("us", "na"),
        ("MX", "carib"),
        ("pe", "sa-north"),
        ("br", "sa-south"),
        ("gb", "eu-west"),
        ("De", "eu-central"),
        ("no", "eu-north"),
        ("ua", "eu-east"),
        ("ae", "me"),
        ("eg", "af-north"),
        ("ng", "af-west"),
        ("za", "af-south"),
        ("in", "as-south"),
        ("jp", "as-east"),
        ("sg", "as-southeast"),
        (" nz ", "oceania"),
    ],
)
def test_zone_of__country_in_either_case__its_zone(country: str, slug: str) -> None:
    assert ZONES[zone_of(country)].slug == slug


@pytest.mark.parametrize(
    ("country", "hint"),
    [
        ("uk", 'did you mean "gb"'),
        ("usa", 'did you mean "us"'),
        ("eu-west", "gb, gg"),
        ("eu", '"eu-west" is'),
        ("dee", "two-letter"),
        ("Germany", "two-letter"),
        ("", "two-letter"),
    ],
)
def test_zone_of__not_a_country__refused_with_the_likely_code(country: str, hint: str) -> None:
    with pytest.raises(SpecError) as refused:
        zone_of(country)
    assert refused.value.code == "BAD_COUNTRY"
    assert hint in refused.value.hint


def test_zone_mask__no_country__any_zone() -> None:
    assert zone_mask([]) == ANY_ZONE == 0xFFFF


def test_zone_mask__two_countries_of_one_zone__one_bit() -> None:
    assert zone_mask(["in", "np"]) == 1 << 12
    assert zone_mask(["in", "de"]) == 1 << 12 | 1 << 5


@given(st.lists(st.sampled_from(sorted(ZONE_OF_COUNTRY)), min_size=1))
def test_zones_in__mask_of_countries__holds_each_country_and_no_other_zone(countries: list[str]) -> None:
    zones = zones_in(zone_mask(countries))
    assert set(countries) <= set().union(*(zone.countries for zone in zones))
    assert all(zone.countries & set(countries) for zone in zones)


@pytest.mark.parametrize("mask", [-1, 1 << 16])
def test_zones_in__mask_too_wide__refused(mask: int) -> None:
    with pytest.raises(ValueError, match="16 bits"):
        zones_in(mask)


def test_distance__shortest_paths_over_the_cables__equal_the_table() -> None:
    far = 10**6
    ms = [[0 if a == b else far for b in range(ZONE_COUNT)] for a in range(ZONE_COUNT)]
    for (a, b), link in HUB_LINKS_MS.items():
        ms[a][b] = ms[b][a] = link
    for via in range(ZONE_COUNT):
        for a in range(ZONE_COUNT):
            for b in range(ZONE_COUNT):
                ms[a][b] = min(ms[a][b], ms[a][via] + ms[via][b])
    assert tuple(tuple(min(15, -(-x // 20)) for x in row) for row in ms) == DISTANCE


@given(ZONE_NUMBERS, ZONE_NUMBERS)
def test_zone_distance__any_pair__symmetric_zero_only_at_home_within_a_nibble(a: int, b: int) -> None:
    assert zone_distance(a, b) == zone_distance(b, a)
    assert (zone_distance(a, b) == 0) == (a == b)
    assert 0 <= zone_distance(a, b) <= 15


@given(ZONE_NUMBERS, ZONE_NUMBERS)
def test_distance_words__any_pair__nibble_is_the_distance(a: int, b: int) -> None:
    assert DISTANCE_WORDS[a // 4] >> ((a % 4 * 16 + b) * 4) & 0xF == zone_distance(a, b)


def test_distance_words__every_nibble__nothing_else_in_the_words() -> None:
    packed = tuple(
        sum(DISTANCE[word * 4 + a][b] << ((a * 16 + b) * 4) for a in range(4) for b in range(16)) for word in range(4)
    )
    assert packed == DISTANCE_WORDS
    assert all(0 < word < 1 << 256 for word in DISTANCE_WORDS)


@pytest.mark.parametrize(("a", "b"), [(-1, 0), (0, 16), (16, 0)])
def test_zone_distance__no_such_zone__refused(a: int, b: int) -> None:
    with pytest.raises(ValueError, match="must be in"):
        zone_distance(a, b)
