"""hearth.daemon.bundle: what is secret stands nowhere, what helps stays."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hearth.base.errors import ConfigError
from hearth.base.urls import secrets_of_url
from hearth.daemon import bundle
from hearth.daemon.bundle import Sieve

JOB = "ab" * 32
KEY = "5e" * 32
PASSWORD = "canary battery staple"
TOKEN = "tok3n-canary-0123456789"
URLS = (
    f"https://mainnet.example.com/v3/{TOKEN}",
    f"https://user:{TOKEN}@rpc.example.com/",
    f"http://10.0.0.1:8545/?apikey={TOKEN}&x=1",
    f"wss://rpc.example.com/ws/{TOKEN}?a=b",
)


@pytest.mark.parametrize("word", ["a", "1", "a1+", "a."])
def test_sieve__long_word__takes_no_longer_than_words(word: str) -> None:
    """Profit: a stranger's long word in a log would have a provider who wants help wait for an hour."""
    began = time.process_time()
    assert Sieve([]).text(word * (2**15 // len(word)) + " end").endswith(" end")
    assert time.process_time() - began < 3


@pytest.mark.parametrize("scheme", ["https", "a" * 32, "a" * 33, "a" + "1" * 60, "1" * 60, ""])
def test_sieve__url_of_any_scheme__its_key_is_gone(scheme: str) -> None:
    assert TOKEN not in Sieve([]).text(f"at {scheme}://rpc.example.com/{TOKEN} it failed")


@pytest.mark.parametrize(
    "text",
    [
        *URLS,
        *(f"HTTPConnectionPool(host='x', port=1): Max retries exceeded with url: {url}" for url in URLS),
        f"Max retries exceeded with url: /v3/{TOKEN} (Caused by ...)",
        f"Authorization: Basic {TOKEN}",
        f"authorization: bearer {TOKEN}",
        f"Bearer {TOKEN}",
        f'{{"api_key": "{TOKEN}"}}',
        f"token={TOKEN}&more",
        f"the password is {PASSWORD}!",
        f"key 0x{KEY}",
        f"{KEY}",
        f"secret: {KEY.upper()}",
        f"{KEY}{KEY[:8]}",
        f"export AWS_SECRET_ACCESS_KEY={TOKEN}",
        f"HF_TOKEN = '{TOKEN}'",
    ],
)
def test_sieve__secret_in_any_place__is_gone(text: str) -> None:
    sieve = Sieve([PASSWORD, *(one for url in URLS for one in secrets_of_url(url))], [JOB])
    told = json.dumps(sieve.value({"a": [text], text: {"b": text}}))
    for canary in (KEY, KEY.upper(), PASSWORD, TOKEN):
        assert canary not in told


@pytest.mark.parametrize("words", [12, 24])
def test_sieve__recovery_phrase_in_a_log__is_gone_and_the_words_beside_it_stay(words: int) -> None:
    phrase = " ".join(["test"] * (words - 1) + ["junk"])
    told = Sieve([]).text(f"somebody wrote: my words are {phrase} and then he left the house with everything in it")
    assert "junk" not in told and "test test" not in told
    assert told.startswith("somebody wrote: my words") and told.endswith("left the house with everything in it")


@pytest.mark.parametrize(
    "token", ["ghp_SECRETKEY91aa", "github_pat_11ABCDEFG0", "sk-proj-0123456789", "AKIAIOSFODNN7EXAMPLE"]
)
def test_sieve__token_that_says_what_it_is__is_gone(token: str) -> None:
    assert Sieve([]).text(f"cloning with {token} failed") == "cloning with [hidden] failed"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"attempt {JOB}-0-1 starts", "attempt abababababab...-0-1 starts"),
        (f"0x{JOB}", "abababababab..."),
        ("https://rpc.example.com:8545 is slow", "https://rpc.example.com:8545 is slow"),
        ("folder:///home/alice/store is full", "folder:///home/USER/store is full"),
        ("/home/alice/.local/x, /Users/bob/y", "/home/USER/.local/x, /Users/USER/y"),
        ("the token budget, a password file, no secret", "the token budget, a password file, no secret"),
        ("0x" + "c0" * 20, "0x" + "c0" * 20),
        ("node 3 is ACTIVE: stake 0.01 ETH", "node 3 is ACTIVE: stake 0.01 ETH"),
    ],
)
def test_sieve__what_helps__stays(text: str, told: str) -> None:
    assert Sieve([PASSWORD, "ab"], [JOB]).text(text) == told


def test_last_lines__long_log__its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff\n" + b"".join(b"line %d\n" % number for number in range(100_000)))
    lines = bundle.last_lines(log)
    assert len(lines) == bundle.LOG_LINES
    assert lines[-1] == "line 99999"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert bundle.last_lines(Path("-")) == ["a", "b"]


def test_part_of__what_fails__is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    missing: dict[str, str] = {}

    def refuse() -> None:
        raise ConfigError("it is broken", code="BAD_STATUS")

    assert bundle.part_of(refuse, missing, "process") is None
    assert bundle.part_of(lambda: bundle.last_lines(tmp_path / "none"), missing, "log") is None
    assert bundle.part_of(lambda: 1, missing, "one") == 1
    assert missing["process"] == "BAD_STATUS: it is broken"
    assert missing["log"].startswith("FileNotFoundError")
