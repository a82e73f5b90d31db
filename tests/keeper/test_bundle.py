"""hearth keeper bundle: what helps is in it, and no password and no RPC token."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from hearth.chain.port import Call
from hearth.chain.tx_journal import TxJournal
from tests.kit.town import hearth

TOKEN, PASSWORD = "tok-canary-of-a-keeper-81", "canary-82-pass"
JOB = "0x" + "ab" * 32


def test_bundle__keeper_that_never_ran__tells_what_there_is_and_no_secret(tmp_path: Path) -> None:
    home = tmp_path / "state"
    home.mkdir(mode=0o700)
    password = tmp_path / "password"
    password.write_text(PASSWORD + "\n")
    journal = TxJournal(
        TxJournal.path_in(home, 1, bytes(32), "0x" + "ee" * 20),
        chain_id=1,
        genesis_hash=bytes(32),
        address="0x" + "ee" * 20,
    )
    intent = journal.intend(f"settle/{JOB[2:]}:0", Call("0x" + "11" * 20, b"\x01", 0, "settle"))
    journal.failed(intent, f"the provider https://rpc.example.com/v3/{TOKEN} said no")
    journal.close()
    log = tmp_path / "log"
    log.write_text(f"url: /v3/{TOKEN} (Caused by x)\nunlocked with {PASSWORD}\nsettled {JOB}\n")
    config = tmp_path / "keeper.toml"
    config.write_text(
        f'network = "devnet"\nhome = "state"\nrpc = ["https://rpc.example.com/v3/{TOKEN}"]\n'
        '[account]\nkeystore = "key.json"\npassword_file = "password"\n'
    )
    out = tmp_path / "bundle.json"
    command = ("keeper", "bundle", "--config", str(config), "--log", str(log))
    told = hearth(tmp_path / "user", *command, "--out", str(out))
    assert told.code == 0, told.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    facts = json.loads(out.read_text())
    assert facts["missing"]["process"].startswith("NO_KEEPER: no keeper has run in ")
    assert facts["settings"]["rpc"] == ["https://rpc.example.com/..."]
    (row,) = facts["transactions"]
    assert (row["key"], row["state"]) == ("settle/abababababab...:0", "failed")
    assert facts["log"][2] == "settled abababababab..."
    printed = hearth(tmp_path / "user", *command, "--json")
    assert printed.code == 0
    for canary in (TOKEN, PASSWORD):
        assert canary not in out.read_text() + printed.out + printed.err + told.out + told.err
