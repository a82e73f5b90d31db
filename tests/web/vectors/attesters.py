"""Files of attesters: the set and its commitment, or why it is none; and what is said of a job that names one."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from eth_utils.address import to_checksum_address

from hearth.base.errors import SpecError
from hearth.client.judges import paid_when
from hearth.client.judges.attested import AskedAttesters, Attested
from hearth.client.judges.attester_files import set_beside
from hearth.protocol.attest import MAX_KEYS, AttesterSet
from hearth.protocol.units import Asset, show_amount
from tests.kit.evm import ROOT
from tests.web.vectors._drawn import drawn_policy, drawn_terms, terms_words

NAME = "keys/attesters.yaml"
ADA, BOB, CID = ("0x" + part * 20 for part in ("a1", "b2", "c3"))
MIXED = to_checksum_address("0x" + "52908400098527886e0f7030069857d2e4169ee7")
BROKEN = MIXED[:-1] + MIXED[-1].swapcase()
REFUSED = (
    "",
    " \t\r\n\v\f",
    "# nothing\n",
    "keys",
    "- a\n",
    f'keys: ["{ADA}"]\n',
    f'keys: ["{ADA}"]\nquorum: 1\nname: x\n',
    f'keys: ["{ADA}"]\nthreshold: 1\n',
    f"keys: [{ADA}]\nquorum: 1\n",
    f'keys: "{ADA}"\nquorum: 1\n',
    f'keys: {{"{ADA}": 1}}\nquorum: 1\n',
    f'keys: ["{ADA}", 7]\nquorum: 1\n',
    f'keys: ["{ADA}", null]\nquorum: 1\n',
    *(
        f'keys: ["{ADA}", "{BOB}"]\nquorum: {quorum}\n'
        for quorum in ("0", "-1", "3", '"1"', "true", "null", "1.0", "[]")
    ),
    f'keys: ["{ADA}", "{BOB}"]\nquorum: 123456789012345678\n',
    "keys: []\nquorum: 0\n",
    "keys: []\nquorum: 1\n",
    f'keys: ["{ADA}", "0x{"00" * 20}"]\nquorum: 1\n',
    f'keys: ["{ADA}", "{BOB}", "0x{ADA[2:].upper()}"]\nquorum: 2\n',
    *(f'keys: ["{ADA}", "{text}"]\nquorum: 1\n' for text in ("", "0x", ADA[2:], ADA[:-1], ADA + "0", "0X" + ADA[2:])),
    *(f'keys: ["{ADA}", "{text}"]\nquorum: 1\n' for text in (BROKEN, " " + ADA, "0x" + "g" * 40, "name.eth")),
    json.dumps({"keys": [f"0x{at:040x}" for at in range(1, MAX_KEYS + 2)], "quorum": 2}),
    json.dumps({"keys": [f"0x{at:040x}" for at in range(1, MAX_KEYS + 2)], "quorum": False}),
    f'keys: ["{ADA}"]\nkeys: ["{BOB}"]\nquorum: 1\n',
    f'keys: ["{ADA}"]\nquorum: ${{COUNT}}\n',
    f'keys: ["{ADA}"]\nquorum: 1\n---\nkeys: ["{BOB}"]\nquorum: 1\n',
)
"""What is no set, each for one reason."""


def cases() -> dict[str, Any]:
    """Return files with their sets or refusals, and sentences of jobs."""
    random = Random("attesters")
    texts = [
        (ROOT / "examples" / "attested" / "attesters.yaml").read_text(encoding="utf-8"),
        f'keys: ["{MIXED}"]\nquorum: 1\n',
        f'quorum: 2\nkeys: ["{CID}", "0x{ADA[2:].upper()}", "{BOB}"]\n',
        f'\ufeff{{"keys": ["{BOB}", "{ADA}"], "quorum": 1}}',
        *(_drawn(random, size) for size in (1, 2, MAX_KEYS)),
    ]
    return {"name": NAME, "files": [_file(text) for text in (*texts, *REFUSED)], "words": _words(random)}


def _drawn(random: Random, size: int) -> str:
    keys = [f"0x{random.getrandbits(160):040x}" for _ in range(size)]
    return json.dumps(
        {"keys": [random.choice((key, to_checksum_address(key))) for key in keys], "quorum": random.randint(1, size)}
    )


def _file(text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / NAME
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8", newline="")
        try:
            found = set_beside(Path(made), NAME)
        except SpecError as error:
            return {"text": text, "code": error.code, "field": error.details["field"]}
    return {"text": text, "keys": list(found.keys), "quorum": found.quorum, "judgeData": f"{found.judge_data:#066x}"}


def _words(random: Random) -> list[dict[str, Any]]:
    """Return what `hearth check` says of who decides, for drawn jobs."""
    found = []
    for size in (0, 1, 2, 3, 16):
        policy = drawn_policy(random)
        asset = random.choice((Asset("ETH", 18, None), Asset("USDX", 6, "0x" + "11" * 20)))
        keys = tuple(sorted(f"0x{random.getrandbits(160):040x}" for _ in range(size)))
        chosen = AttesterSet(keys, random.randint(1, size)) if size else None
        terms = replace(drawn_terms(random, policy), judge_data=chosen.judge_data if chosen else 0)
        asked = AskedAttesters(Attested(), chosen) if chosen else None
        said = paid_when(asked, terms, partial(show_amount, asset=asset))
        quorum = chosen.quorum if chosen else 0
        found.append(
            {"terms": terms_words(terms), "asset": [asset.symbol, asset.decimals], "keys": keys, "quorum": quorum}
        )
        found[-1]["said"] = said
    return found
