"""Keys from elsewhere: each form gives the key that other tools take from it, and no refusal repeats what was read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from eth_account import Account

from hearth.base.errors import ConfigError
from hearth.chain.key_import import MAX_BYTES, STDIN, read_secret

SECRET = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")  # anvil's first key
SECOND = bytes.fromhex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")  # and its second
PHRASE = "test test test test test test test test test test test junk"


@pytest.fixture
def secret_file(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "secret"
        path.write_bytes(data)
        path.chmod(0o600)
        return path

    return write


def nobody(question: str) -> str:
    raise AssertionError(f"asked: {question}")


def read_hex(path: Path) -> bytes:
    return read_secret(path, password=nobody)


@pytest.mark.parametrize("form", ["{}", "0x{}", "0x{}\n", "{}\r\n"])
def test_read_secret__hex__the_key(secret_file: Callable[[bytes], Path], form: str) -> None:
    assert read_hex(secret_file(form.format(SECRET.hex()).encode())) == SECRET


@pytest.mark.parametrize("raw", [b"", b"0x" + b"00" * 32, b"hunter2", b"ff" * 32, b"ab" * 31, b"ab" * 33, b"zz" * 32])
def test_read_secret__not_a_key__refused_without_repeating_it(secret_file: Callable[[bytes], Path], raw: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hex(secret_file(raw))
    assert caught.value.code == "BAD_SECRET"
    assert not raw or raw.decode() not in str(caught.value.as_dict())


@pytest.mark.parametrize(("index", "key"), [(0, SECRET), (1, SECOND)])
@pytest.mark.parametrize("form", ["{}", " {}\n", "{}"])
def test_read_secret__recovery_phrase__the_account_that_wallets_show(
    secret_file: Callable[[bytes], Path], form: str, index: int, key: bytes
) -> None:
    text = form.format(PHRASE.replace(" ", "  ") if form.startswith(" ") else PHRASE)
    assert read_secret(secret_file(text.encode()), password=nobody, index=index) == key


@pytest.mark.parametrize("phrase", [PHRASE.replace("junk", "test"), PHRASE.replace("junk", "jnuk")])
def test_read_secret__phrase_with_a_wrong_word__refused_without_repeating_it(
    secret_file: Callable[[bytes], Path], phrase: str
) -> None:
    with pytest.raises(ConfigError, match="no BIP-39 phrase") as caught:
        read_hex(secret_file(phrase.encode()))
    assert caught.value.code == "BAD_SECRET" and "jnuk" not in str(caught.value.as_dict())
    assert caught.value.__cause__ is None


def test_read_secret__keystore_of_another_tool__its_own_password_opens_it(
    secret_file: Callable[[bytes], Path],
) -> None:
    path = secret_file(json.dumps(Account.encrypt(SECRET, "other tool", iterations=1 << 10)).encode())
    assert read_secret(path, password=lambda question: "other tool") == SECRET
    with pytest.raises(ConfigError) as caught:
        read_secret(path, password=lambda question: "wrong")
    assert caught.value.code == "WRONG_PASSWORD"


def test_read_secret__keystore_that_asks_for_all_memory__refused_at_once(secret_file: Callable[[bytes], Path]) -> None:
    document = Account.encrypt(SECRET, "other tool", iterations=1 << 10)
    document["crypto"]["kdfparams"]["n"] = 1 << 40
    with pytest.raises(ConfigError, match="out of bounds"):
        read_secret(secret_file(json.dumps(document).encode()), password=lambda question: "other tool")


def test_read_secret__stdin__hex_and_phrase_but_no_keystore(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (SECRET.hex().encode(), PHRASE.encode()):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert read_secret(STDIN, password=nobody) == SECRET
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"{}")))
    with pytest.raises(ConfigError, match="read from a file"):
        read_secret(STDIN, password=nobody)


@pytest.mark.parametrize("data", [SECRET.hex().encode(), PHRASE.encode()])
def test_read_secret__longer_than_is_read__is_refused_whatever_it_begins_with(
    secret_file: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    for size, holds in ((MAX_BYTES, True), (MAX_BYTES + 1, False)):
        raw = data.ljust(size)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(raw)))
        for source in (STDIN, secret_file(raw)):
            if holds:
                assert read_secret(source, password=nobody) == SECRET
            else:
                with pytest.raises(ConfigError, match="holds no key"):
                    read_secret(source, password=nobody)
