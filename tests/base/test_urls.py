"""hearth.base.urls: which parts of an address are secret, and how they are hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from hearth.base.urls import MIN_SECRET, Secrets, each_text, secrets_of_url


def test_secrets_of_url__words_of_a_path__are_no_secrets() -> None:
    assert secrets_of_url("https://rpc.example.com/v3/mainnet") == []
    assert set(secrets_of_url("https://u:p%20w@h/")) == {"p%20w", "p w"}


@pytest.mark.parametrize(
    "url",
    [
        "https://rpc.example.com/v2/{}",
        "https://rpc.example.com/{}/mainnet",
        "https://rpc.example.com/?apikey={}",
        "https://{}:x@rpc.example.com/",
        "https://me:{}@rpc.example.com/",
    ],
)
@pytest.mark.parametrize("length", [MIN_SECRET - 1, MIN_SECRET, 40])
def test_secrets__part_of_an_address__is_hidden_from_one_length_on(url: str, length: int) -> None:
    """The same length for every part, and for whoever hides it: a provider's words and a bundle have one threshold."""
    part = "k7x2" * 10
    known = Secrets(secrets_of_url(url.format(part[:length])), "...")
    told = known.hide(f"unknown key {part[:length]}!")
    assert told == ("unknown key ...!" if length >= MIN_SECRET else f"unknown key {part[:length]}!")


def test_secrets__one_is_a_part_of_another__both_are_gone() -> None:
    assert Secrets(["first", "first-and-more"], "...").hide("first-and-more, first") == "..., ..."


def test_each_text__facts_of_any_shape__texts_are_changed_and_numbers_are_not() -> None:
    found = each_text({"a": ["b", (Path("c"), 1)], "d": {"e": None, "f": True}}, str.upper)
    assert found == {"A": ["B", ["C", 1]], "D": {"E": None, "F": True}}
