"""Key files: private, whole, never overwritten; and one signing process per key."""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hearth.base.errors import ConfigError
from hearth.chain.key_import import read_secret
from hearth.chain.keys import (
    DEVNET_SCRYPT_N,
    SCRYPT_N,
    KeyFile,
    SignerLock,
    create_key,
    find_key,
    list_keys,
    read_key,
    read_password,
    unlock,
)

SECRET = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")  # anvil's first key
ADDRESS = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of secp256k1: a secret lies between 0 and this."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def key(folder: Path) -> KeyFile:
    return create_key(folder, "alice", "swordfish", secret=SECRET, devnet=True)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- writing ----


def test_create_key__import__private_file_of_that_address(key: KeyFile, folder: Path) -> None:
    assert (key.name, key.address, key.path) == ("alice", ADDRESS, folder / "alice.json")
    assert mode_of(key.path) == 0o600
    assert mode_of(folder) == 0o700
    assert [path.name for path in folder.iterdir()] == ["alice.json"]
    assert bytes(unlock(key, "swordfish").key) == SECRET


def test_create_key__file__holds_no_secret_in_the_open(key: KeyFile) -> None:
    text = key.path.read_text()
    assert SECRET.hex() not in text and "swordfish" not in text
    document = json.loads(text)
    assert document["version"] == 3
    assert document["crypto"]["kdf"] == "scrypt"
    assert SECRET.hex() not in repr(key)


def test_create_key__random__each_key_is_its_own(folder: Path) -> None:
    one = create_key(folder, "one", "p", devnet=True)
    two = create_key(folder, "two", "p", devnet=True)
    assert one.address != two.address
    assert str(unlock(one, "p").address).lower() == one.address


@pytest.mark.parametrize("drawn", [0, ORDER, 2**256 - 1])
def test_create_key__number_that_is_no_secret__is_drawn_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, drawn: int
) -> None:
    numbers = [drawn.to_bytes(32, "big"), SECRET]
    real = secrets.token_bytes
    monkeypatch.setattr(secrets, "token_bytes", lambda size: numbers.pop(0) if numbers else real(size))
    assert create_key(folder, "k", "p", devnet=True).address == ADDRESS


@pytest.mark.parametrize(("devnet", "cost"), [(True, DEVNET_SCRYPT_N), (False, SCRYPT_N)])
def test_create_key__devnet_or_not__work_factor(folder: Path, devnet: bool, cost: int) -> None:
    key = create_key(folder, "k", "pass word", devnet=devnet)
    assert json.loads(key.path.read_text())["crypto"]["kdfparams"]["n"] == cost


def test_create_key__seven_characters__refused_and_eight_taken(folder: Path) -> None:
    with pytest.raises(ConfigError, match="7 characters protects little") as caught:
        create_key(folder, "k", "seven77")
    assert caught.value.code == "WEAK_PASSWORD" and not list(folder.glob("*"))
    assert create_key(folder, "k", "eight888").path.is_file()


def test_create_key__file_of_other_tools__reads_with_eth_account_alone(key: KeyFile) -> None:
    assert bytes(Account.decrypt(key.path.read_text(), "swordfish")) == SECRET


def test_create_key__name_taken__refused_and_the_old_key_kept(key: KeyFile, folder: Path) -> None:
    before = key.path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        create_key(folder, "alice", "other", devnet=True)
    assert caught.value.code == "KEY_EXISTS"
    assert caught.value.exit_code == 3
    assert key.path.read_bytes() == before
    assert list(folder.iterdir()) == [key.path]


def test_create_key__address_known_by_another_name__refused(key: KeyFile, folder: Path) -> None:
    with pytest.raises(ConfigError, match="the key alice exists already"):
        create_key(folder, "bob", "other", secret=SECRET, devnet=True)


def test_create_key__many_at_once_with_one_name__exactly_one_wins(folder: Path) -> None:
    results: list[str] = []

    def attempt() -> None:
        try:
            results.append(create_key(folder, "same", "p", devnet=True).address)
        except ConfigError as error:
            results.append(error.code)

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [result for result in results if result != "KEY_EXISTS"]
    assert len(results) == 6 and len(winners) == 1
    assert read_key(folder / "same.json").address == winners[0]
    assert [path.name for path in folder.iterdir()] == ["same.json"]


def test_create_key__disk_full__no_file_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        create_key(folder, "alice", "p", devnet=True)
    assert list(folder.iterdir()) == []


def test_create_key__written__file_then_folder_are_synced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    create_key(folder, "alice", "p", devnet=True)
    assert synced == [False, True]


@pytest.mark.parametrize("name", ["", "../alice", "a/b", ".hidden", "-x", "a b", "a" * 65, "a\n"])
def test_create_key__bad_name__refused(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_key(folder, name, "p", devnet=True)
    assert caught.value.code == "BAD_NAME"
    assert not folder.exists()


def test_create_key__empty_password__refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="protects nothing"):
        create_key(folder, "a", "", devnet=True)


@pytest.mark.parametrize("secret", [b"", bytes(32), b"\xff" * 32, b"\x01" * 31, b"\x01" * 33])
def test_create_key__no_private_key__refused(folder: Path, secret: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        create_key(folder, "a", "p", secret=secret, devnet=True)
    assert caught.value.code == "BAD_SECRET"


def test_create_key__folder_open_to_others__refused_with_chmod(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(ConfigError) as caught:
        create_key(folder, "a", "p", devnet=True)
    assert caught.value.code == "OPEN_FOLDER"
    assert caught.value.hint == f"chmod 700 {folder}"


# ---- listing and finding ----


def test_list_keys__keys_and_other_files__keys_only_and_none_unlocked(
    key: KeyFile, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes.json").write_text('{"version": 3}')
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[]")
    (folder / "readme.txt").write_text("")

    def never(*_: object) -> None:
        raise AssertionError("listing must not unlock")

    monkeypatch.setattr(Account, "decrypt", never)
    assert list_keys(folder) == (key,)


def test_list_keys__no_folder__none(folder: Path) -> None:
    assert list_keys(folder) == ()


def test_find_key__name_address_prefix_or_the_only_one__found(key: KeyFile, folder: Path) -> None:
    for account in ("alice", ADDRESS, ADDRESS.upper().replace("0X", "0x"), "0xf39f", None):
        assert find_key(folder, account) == key


def test_find_key__name_that_looks_like_an_address__name_wins(key: KeyFile, folder: Path) -> None:
    other = create_key(folder, "0xf39f", "p", devnet=True)
    assert find_key(folder, "0xf39f") == other


@pytest.mark.parametrize(
    ("account", "code", "hint"),
    [
        ("bob", "NO_ACCOUNT", "hearth wallet list"),
        ("0x", "NO_ACCOUNT", "hearth wallet list"),
        ("0x00", "NO_ACCOUNT", "hearth wallet list"),
        ("", "NO_ACCOUNT", "hearth wallet list"),
        ("../alice", "NO_ACCOUNT", "hearth wallet list"),
    ],
)
def test_find_key__no_such_key__refused(key: KeyFile, folder: Path, account: str, code: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_key(folder, account)
    assert (caught.value.code, caught.value.hint) == (code, hint)


def test_find_key__empty_folder__refused_with_the_command_that_makes_one(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_key(folder)
    assert (caught.value.code, caught.value.hint) == ("NO_ACCOUNT", "hearth wallet new")


def test_find_key__several_keys__must_be_named(key: KeyFile, folder: Path) -> None:
    create_key(folder, "bob", "p", devnet=True)
    with pytest.raises(ConfigError) as caught:
        find_key(folder)
    assert caught.value.code == "MANY_ACCOUNTS"
    assert "alice" in caught.value.message and "bob" in caught.value.message
    # The first eight are named: a folder of hundreds fills no screen.
    for index in range(7):
        (folder / f"key{index}.json").write_text(key.path.read_text())
    with pytest.raises(ConfigError) as caught:
        find_key(folder)
    assert "holds 9 keys: alice (" in caught.value.message and caught.value.message.count(" (0x") == 8


def test_find_key__start_of_several_addresses__refused(key: KeyFile, folder: Path) -> None:
    document = json.loads(key.path.read_text())
    for index in range(2):
        document["address"] = f"{index:02}".rjust(40, "b")
        (folder / f"fake{index}.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError) as caught:
        find_key(folder, "0xbbb")
    assert caught.value.code == "MANY_ACCOUNTS"


# ---- unlocking ----


def test_unlock__wrong_password__named_and_not_repeated(key: KeyFile) -> None:
    with pytest.raises(ConfigError) as caught:
        unlock(key, "not-swordfish")
    assert caught.value.code == "WRONG_PASSWORD"
    assert caught.value.exit_code == 3
    assert "alice" in caught.value.message
    assert "swordfish" not in str(caught.value.as_dict())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o610])
def test_unlock__file_open_to_others__refused_with_chmod(key: KeyFile, mode: int) -> None:
    key.path.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        unlock(key, "swordfish")
    assert caught.value.code == "OPEN_FILE"
    assert caught.value.hint == f"chmod 600 {key.path}"


def test_unlock__address_rewritten__refused(key: KeyFile) -> None:
    document = json.loads(key.path.read_text())
    document["address"] = "11" * 20
    key.path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="not of 0x1111"):
        unlock(read_key(key.path), "swordfish")


def _with(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], str]:
    def spoil(document: dict[str, Any]) -> str:
        change(document)
        return json.dumps(document)

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: "",
        lambda document: "[" * 100_000,
        lambda document: "null",
        lambda document: json.dumps(document).ljust(1 << 17),
        _with(lambda document: document.update(version=1)),
        _with(lambda document: document.update(address="xyz")),
        _with(lambda document: document.pop("address")),
        _with(lambda document: document.pop("crypto")),
        _with(lambda document: document["crypto"].pop("kdfparams")),
        _with(lambda document: document["crypto"].pop("ciphertext")),
        _with(lambda document: document["crypto"].update(kdf="md5")),
        _with(lambda document: document["crypto"].update(ciphertext="zz")),
        _with(lambda document: document["crypto"]["kdfparams"].update(n=1 << 30)),
        _with(lambda document: document["crypto"]["kdfparams"].update(n=3)),
        _with(lambda document: document["crypto"]["kdfparams"].update(n=True)),
        _with(lambda document: document["crypto"]["kdfparams"].update(p=1 << 20)),
        _with(lambda document: document["crypto"]["kdfparams"].update(dklen=1 << 30)),
        _with(lambda document: document["crypto"]["kdfparams"].update(salt=5)),
        _with(lambda document: document["crypto"].update(kdf="pbkdf2", kdfparams={"c": 10**9, "prf": "hmac-sha256"})),
    ],
)
def test_unlock__damaged_or_hostile_file__refused_by_name(key: KeyFile, spoil: Callable[[dict[str, Any]], str]) -> None:
    key.path.write_text(spoil(json.loads(key.path.read_text())))
    with pytest.raises(ConfigError) as caught:
        unlock(key, "swordfish")
    assert caught.value.code == "BAD_KEY_FILE"
    assert str(key.path) in caught.value.message


@pytest.mark.parametrize(
    ("dearest", "beyond"),
    [
        ({"n": 1 << 20, "r": 8}, {"n": 1 << 21, "r": 8}),
        ({"n": 1 << 18, "r": 8, "p": 16}, {"n": 1 << 18, "r": 8, "p": 17}),
        ({"c": 10_000_000}, {"c": 10_000_001}),
        ({"dklen": 64}, {"dklen": 65}),
        ({}, {"n": 0}),
    ],
)
def test_read_key__derivation_out_of_bounds__refused_before_any_password(
    key: KeyFile, dearest: dict[str, int], beyond: dict[str, int]
) -> None:
    document = json.loads(key.path.read_text())
    document["crypto"]["kdfparams"].update(dearest)
    key.path.write_text(json.dumps(document))
    assert read_key(key.path).address == key.address
    document["crypto"]["kdfparams"].update(beyond)
    key.path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="out of bounds"):
        read_key(key.path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_unlock__any_value_in_any_field__the_key_or_a_config_error(key: KeyFile, data: st.DataObject) -> None:
    original = key.path.read_text()
    document = json.loads(original)
    node: Any = document
    while isinstance(node, dict):
        parent, name = node, data.draw(st.sampled_from(sorted(node)))
        node = node[name]
    parent[name] = data.draw(st.none() | st.booleans() | st.integers(-10, 64) | st.text(max_size=8) | st.just([]))
    key.path.write_text(json.dumps(document))
    try:
        account = unlock(read_key(key.path), "swordfish")
    except ConfigError:
        pass
    else:
        assert bytes(account.key) == SECRET
    finally:
        key.path.write_text(original)


def test_read_key__missing__refused(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_key(folder / "no.json")
    assert caught.value.code == "NO_ACCOUNT"


# ---- password and import files ----


@pytest.fixture
def secret_file(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "secret"
        path.write_bytes(data)
        path.chmod(0o600)
        return path

    return write


@pytest.mark.parametrize(
    ("raw", "password"),
    [(b"pass word\n", "pass word"), (b"x", "x"), (b" x \r\n", " x "), ("\u00e9".encode(), "\u00e9")],
)
def test_read_password__one_line__without_its_newline(
    secret_file: Callable[[bytes], Path], raw: bytes, password: str
) -> None:
    assert read_password(secret_file(raw)) == password


@pytest.mark.parametrize("raw", [b"", b"\n", b"a\nb\n", b"\xff", b"x" * 70_000])
def test_read_password__not_one_line__refused(secret_file: Callable[[bytes], Path], raw: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read_password(secret_file(raw))
    assert caught.value.code == "BAD_PASSWORD_FILE"


@pytest.mark.parametrize("read", [read_password, lambda path: read_secret(path, password=str)])
def test_read_password_and_secret__open_to_others_or_missing__refused(
    secret_file: Callable[[bytes], Path], read: Callable[[Path], object]
) -> None:
    path = secret_file(SECRET.hex().encode())
    path.chmod(0o644)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert (caught.value.code, caught.value.hint) == ("OPEN_FILE", f"chmod 600 {path}")
    with pytest.raises(ConfigError) as caught:
        read(path.parent / "none")
    assert caught.value.code == "NO_FILE"
    with pytest.raises(ConfigError, match="is not a file"):
        read(path.parent)


# ---- one signer per key ----

HOLD = """
import sys, time
from pathlib import Path
from hearth.chain.keys import SignerLock
with SignerLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(key: KeyFile) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(key.lock_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_signer_lock__held_by_another_process__refused_with_its_pid(
    key: KeyFile, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(ConfigError) as caught, SignerLock(key.lock_path):
        pass
    assert caught.value.code == "KEY_IN_USE"
    assert caught.value.details["pid"] == holder.pid
    assert key.address in caught.value.message
    assert str(holder.pid) in caught.value.message


def test_signer_lock__holder_killed__free_at_once(key: KeyFile, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with SignerLock(key.lock_path):
        assert int(key.lock_path.read_text()) == os.getpid()


def test_signer_lock__wait__taken_when_the_holder_ends(key: KeyFile, holder: subprocess.Popen[str]) -> None:
    timer = threading.Timer(0.2, holder.kill)
    timer.start()
    with SignerLock(key.lock_path, wait_seconds=30):
        holder.wait()
    timer.join()


def test_signer_lock__two_in_one_process__second_refused(key: KeyFile) -> None:
    with SignerLock(key.lock_path):
        with pytest.raises(ConfigError) as caught:
            SignerLock(key.lock_path).acquire()
    assert caught.value.details["pid"] == os.getpid()


def test_signer_lock__released__can_be_taken_again(key: KeyFile) -> None:
    lock = SignerLock(key.lock_path)
    for _ in range(2):
        with lock:
            pass
    lock.release()
    assert mode_of(key.lock_path) == 0o600


def test_signer_lock__acquired_twice_by_one_object__a_bug(key: KeyFile) -> None:
    with SignerLock(key.lock_path) as lock, pytest.raises(RuntimeError):
        lock.acquire()


def test_signer_lock__link_in_its_place__not_followed(key: KeyFile, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("data")
    key.lock_path.symlink_to(target)
    with pytest.raises(ConfigError, match="cannot be locked"):
        SignerLock(key.lock_path).acquire()
    assert target.read_text() == "data"


def test_lock_path__two_names_of_one_address__one_lock(key: KeyFile, folder: Path) -> None:
    copy = folder / "copy.json"
    copy.write_bytes(key.path.read_bytes())
    assert read_key(copy).lock_path == key.lock_path
    assert read_key(copy).lock_path not in (path.path for path in list_keys(folder))


def test_import__keys_and_config__need_no_crypto_library() -> None:
    code = (
        "import sys, hearth.chain.keys;"
        "print(sorted(set(sys.modules) & {'eth_account', 'web3', 'pydantic', 'platformdirs'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
