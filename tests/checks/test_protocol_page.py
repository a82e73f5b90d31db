"""The protocol and what the programs promise, against the code: tables and worked examples, cell by cell."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from eth_utils import keccak

from hearth.base import errors
from hearth.jobfile import FUEL_PER_SECOND, ResolvedSpec, image_config
from hearth.market import profiles
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network, NodeParameters
from hearth.protocol import formulas, gpu_tiers, reasons, reputation, words
from hearth.protocol import wasi as preview1
from hearth.protocol.runtimes import DOCKER
from hearth.protocol.types import (
    SENTINEL,
    Billing,
    Gate,
    Needs,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Policy,
    State,
    Terms,
    Unit,
)
from hearth.protocol.units import Asset
from hearth.storage import unixfs
from hearth.storage.canonical import MAX_DOCUMENT_BYTES
from tests.kit import refusals
from tests.kit import world as w
from tests.kit.evm import Evm, Reverted
from tests.stateful.test_market import ALLOWED
from tools.lanes import OF_TERMS
from worker.attempt import results
from worker.runtimes import wasi, wasm
from worker.runtimes.base import RunResult, RunStatus
from worker.runtimes.profiles import DOCKER_PROFILE, WASM_PROFILE
from worker.runtimes.wasi_files import MAX_LISTED

ROOT = Path(__file__).parents[2]
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for name in ("protocol", "commands", "page", "worker", "keeper-program", "GLOSSARY", "threats")
    for path in [ROOT / "docs" / f"{name}.md"]
}
"""The pages that say what must be so."""
PROTOCOL = PAGES["protocol.md"]
CODE = ("hearth", "keeper", "worker", "contracts", "tools", "bench", "scripts", "tests")
VECTORS = json.loads((ROOT / "tests" / "data" / "job_ids.json").read_text(encoding="utf-8"))
Rows = list[list[str]]


def section(title: str, level: int = 2, page: str = "protocol.md") -> str:
    """Return the text under one heading, up to the next of its level or above."""
    mark = "#" * level
    found = re.search(rf"^{mark} {re.escape(title)}$(.*?)(?=^#{{1,{level}}} |\Z)", PAGES[page], re.M | re.S)
    assert found is not None, f"{page} has no section {title}"
    return found[1]


def tables(text: str) -> list[Rows]:
    """Return the body rows of every table in a text, each without its head."""
    found: list[Rows] = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.M):
        lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.strip().splitlines()]
        assert set("".join(lines[1])) <= {"-"}, lines[1]
        assert all(len(line) == len(lines[0]) for line in lines), block
        found.append(lines[2:])
    return found


def bare(cell: str) -> str:
    """Return a cell without its code marks."""
    return cell.strip("`")


def number(cell: str) -> int:
    """Return a figure written with commas."""
    return int(cell.replace(",", ""))


def by_name(rows: Rows) -> dict[str, int]:
    """Return quantity -> value of a worked example."""
    return {row[0]: number(row[-1]) for row in rows}


def constant(name: str, contract: str) -> int:
    """Return a constant of a contract's source."""
    source = (ROOT / "contracts" / f"{contract}.vy").read_text(encoding="utf-8")
    found = re.search(rf"^{name}: constant\(uint256\) = ([0-9* ]+?)(?:  #.*)?$", source, re.M)
    assert found is not None, name
    product = 1
    for factor in found[1].split("*"):
        product *= int(factor)
    return product


# ---- headings ----


def test_sections__cited_by_the_code__exist() -> None:
    headings = {page: set(re.findall(r"^#+ (.+)$", text, re.M)) for page, text in PAGES.items()}
    # The contracts' comments are a part of what their artifacts hash: they call the protocol SPEC.
    named = re.compile(r'\b(SPEC(?= section)|[\w-]+\.md)(?: sections?)? ((?:"[^"]+"(?: \([^)]*\))?(?:, | and )?)+)')
    cited: dict[tuple[str, str], str] = {}
    for path in _texts():
        text = re.sub(r"\s*\n\s*(?:#|//)?\s*", " ", path.read_text(encoding="utf-8"))
        for page, names in named.findall(text):
            page = "protocol.md" if page == "SPEC" else page
            if page in PAGES:
                titles = re.findall(r'"([^"]+)"', names)
                cited.update({(page, title): str(path.relative_to(ROOT)) for title in titles})
    assert len(cited) > 30
    assert {one: path for one, path in cited.items() if one[1] not in headings[one[0]]} == {}


def test_pages__named_by_their_names__are_there() -> None:
    """Each `page.md` that code or a page names without a folder lies in docs/, or at the top."""
    known = {path.name for folder in (ROOT / "docs", ROOT, ROOT / "docs" / "decisions") for path in folder.glob("*.md")}
    assert set(PAGES) <= known and not any((ROOT / "docs").glob("SPEC*"))
    lower = [path.name.lower() for path in (ROOT / "docs").glob("*")]
    assert sorted(lower) == sorted(set(lower)), "two names that differ in case alone are one file on some machines"


def _texts() -> Iterator[Path]:
    """Yield every file of code, and every page, that may name a section."""
    suffixes = (".py", ".vy", ".vyi", ".ts", ".tsx", ".md")
    for folder in (*CODE, "docs", "web/src"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes and path.is_file())
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))


def test_comments__name_no_document__that_is_not_here() -> None:
    absent = re.compile(r"\b(PRODUCT|PROTOCOL|SAFETY|LAYOUT|TRUST|WORK|WEB|CHAIN|ROOMS|MENDS|STYLE),? sections? ")
    found = []
    for folder in (*CODE, "docs", "examples", "networks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".vy", ".vyi", ".md", ".yml", ".c") and path.name != "test_protocol_page.py":
                text = re.sub(r"\s*\n\s*#?\s*", " ", path.read_text(encoding="utf-8"))
                found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in absent.finditer(text)]
    assert found == []


def test_contents__links__are_the_sections() -> None:
    links = re.findall(r"\[([^]]+)\]\(#([a-z-]+)\)", PROTOCOL)
    assert [name for name, _ in links] == re.findall(r"^## (.+)$", PROTOCOL, re.M)
    assert all(anchor == name.lower().replace(" ", "-") for name, anchor in links)


# ---- ids ----


def test_ids__shown__are_vectors() -> None:
    shown = re.findall(r"^    (\w+) +(0x[0-9a-f]+|\d+)$", section("Ids"), re.M)
    names = ["submitter", "spec", "needs", "money", "limits", "judge_data", "judge", "policy", "parents_hash"]
    numbers = [int(n) for n in re.findall(r"^Vector (\d+):$", section("Ids"), re.M)]
    expected: list[tuple[str, str]] = []
    for vector in (VECTORS[n] for n in numbers):
        expected += [("chain_id", vector["chain_id"]), ("registry", vector["registry"])]
        expected += [*zip(names, vector["words"], strict=True), ("job_id", vector["job_id"])]
        # By hand: static words one after the other, the address right-aligned.
        plain = int(vector["chain_id"]).to_bytes(32, "big") + bytes(12) + bytes.fromhex(vector["registry"][2:])
        plain += b"".join(bytes.fromhex(word[2:]) for word in vector["words"])
        assert "0x" + keccak(plain).hex() == vector["job_id"]
    assert len(numbers) == 1 and shown == expected
    assert formulas.TERMS_TYPE in section("Ids") and SENTINEL == 2**256 - 1


def test_ids__formulas__are_the_librarys() -> None:
    job, node = w.JobId(b"\x07" * 32), NodeId(9)
    assert formulas.unit_key(job, 0, 1) == job
    assert formulas.unit_key(job, 3, 5) == keccak(job + (3).to_bytes(32, "big"))
    seed = keccak(job + (3).to_bytes(32, "big") + (2).to_bytes(32, "big"))
    assert formulas.seed(job, 3, 2) == seed
    assert formulas.lot(seed, node) == int.from_bytes(keccak(seed + (9).to_bytes(32, "big")), "big") % 2**40


# ---- terms and words ----


def test_terms__fields__stand_where_the_words_have_them() -> None:
    rows = tables(section("Terms"))[0]
    assert sorted(bare(row[0]) for row in rows) == sorted(f.name for f in fields(Terms)) and len(rows) == 23
    lanes = {"money": words.MONEY, "limits": words.LIMITS}
    for name, word, bits, _, _ in rows:
        if word in lanes:
            first = words.shift_of(lanes[word], bare(name))
            assert bits == f"{first}..{first + words.width_of(lanes[word], bare(name)) - 1}", name
    # The rest by packing ones: all bits of the field, and no other, are set.
    zero = Terms(w.ZERO, 0, bytes(32), Needs(runtimes=0), 0, 0, 0, 0, 0, 0, 0, 0, 0, max_attempts=0)  # type: ignore[arg-type]
    ones: dict[str, Any] = {
        "submitter": "0x" + "ff" * 20,
        "salt": 2**96 - 1,
        "spec": b"\xff" * 32,
        "judge_data": 2**256 - 1,
        "judge": "0x" + "ff" * 20,
        "policy": 2**256 - 1,
        "parents_hash": b"\xff" * 32,
    }
    order = ("submitter", "spec", "needs", "money", "limits", "judge_data", "judge", "policy", "parents_hash")
    for name, word, bits, _, _ in rows:
        if bare(name) in ones:
            value = words.pack_terms(replace(zero, **{bare(name): ones[bare(name)]}))[order.index(word)]
            first, last = map(int, bits.split(".."))
            whole = int.from_bytes(value, "big") if isinstance(value, bytes) else value
            assert whole == (1 << last + 1) - (1 << first), name
    lanes_of = {lane.name for name in ("money", "limits") for lane in words.WORDS[name].lanes}
    assert {bare(row[0]) for row in rows if row[1] in lanes} == lanes_of and set(OF_TERMS) == {
        *lanes,
        "submitter",
        "judge",
    }
    needs = next(row for row in rows if bare(row[0]) == "needs")
    assert needs[2] == f"0..{words.NEEDS.bits - 1}"


def _of_units() -> set[str]:
    """Return what Rules says of units, when `top_up` and `rule` ask it."""
    source = (ROOT / "contracts" / "Rules.vy").read_text(encoding="utf-8")
    texts = {reason.name: reason.text for reason in reasons.REASONS.values()}
    bodies = [
        re.search(rf"def {name}\(.*?\n(.*?)(?=\n@|\Z)", source, re.S) for name in ("topped", "ruled", "_with_fields")
    ]
    return {texts[name] for body in bodies if body for name in re.findall(r"_refuse\(reasons\.([A-Z_]+)\)", body[1])}


def test_terms__reasons__are_those_of_post_and_rules() -> None:
    cited = set(re.findall(r"`(jobs: [^`]+)`", section("Terms")))
    # What only post can say is all here: its own refusals, and whatever Rules says of terms.
    source = (ROOT / "contracts" / "JobRegistry.vy").read_text(encoding="utf-8")
    bodies = [
        re.search(rf"def {name}\(.*?\n(.*?)(?=\n@|\Z)", source, re.S) for name in ("post", "_check_submitter", "_fund")
    ]
    texts = {reason.name: reason.text for reason in reasons.REASONS.values()}
    refused = [name for body in bodies if body for name in re.findall(r"_refuse\(reasons\.([A-Z_]+)\)", body[1])]
    own = {texts[name] for name in refused}
    # What it says of units that are topped up or ruled on is no matter of terms.
    of_terms = {text for text in given_by("Rules") if text.startswith("jobs: ")}
    of_terms -= _of_units() - cited
    assert len(own) > 4 and len(of_terms) > 25 and own | of_terms == cited


@pytest.mark.parametrize("name", [name for name in words.WORDS if name not in OF_TERMS])
def test_words__lanes__are_the_librarys(name: str) -> None:
    found = re.search(rf"^### {name.capitalize()}: .*?$(.*?)(?=^##|\Z)", section("Words"), re.M | re.S)
    assert found is not None
    placed = words.WORDS[name].placed
    rows = tables(found[1])[0]
    assert len(rows) == len(placed)
    for (lane, shift), (shown, bit, size, unit, _) in zip(placed, rows, strict=True):
        assert shown == ("(zero)" if lane.is_zero else f"`{lane.name}`")
        assert (int(bit), int(size), unit) == (shift, lane.width, lane.unit)


def test_words__every_layout__is_shown() -> None:
    shown = [name.lower() for name in re.findall(r"^### (\w+):", section("Words"), re.M)]
    assert shown == [name for name in words.WORDS if name not in OF_TERMS]


# ---- states ----


def job_functions() -> dict[str, str]:
    """Return name -> name(arguments) of JobRegistry's calls."""
    abi = json.loads((ROOT / "hearth" / "market" / "artifacts" / "JobRegistry.json").read_text(encoding="utf-8"))["abi"]
    return {
        item["name"]: f"{item['name']}({', '.join(i['name'] for i in item['inputs'])})"
        for item in abi
        if item["type"] == "function" and item["stateMutability"] != "view"
    }


def test_states__table__is_what_the_state_machine_allows() -> None:
    rows = tables(section("States"))[0]
    moves = {(State[row[0]], State[row[1]]) for row in rows}
    assert moves == ALLOWED
    assert {bare(row[2]) for row in rows} == set(job_functions())
    # Whoever vanishes, a stranger has a way out of every state that is not an end.
    for state in {new for _, new in moves if not new.terminal}:
        assert any(row[0] == state.name and row[3] == "anyone" and row[1] != state.name for row in rows), state


def test_states__calls__are_job_registrys() -> None:
    rows = tables(section("Calls", 3))[0]
    assert sorted(bare(row[0]) for row in rows) == sorted(job_functions().values())


def test_states__boundaries__are_the_references() -> None:
    terms, policy = TERMS, profiles.PUBLIC.policy
    unit = Unit(State.OPEN, mark=1_000, started=500)
    assert formulas.proposable(terms, unit, 999) and not formulas.proposable(terms, unit, 1_000)
    best = w.Best(node=NodeId(7))
    end = 1_000 + policy.ack_time
    assert formulas.with_lapse(terms, unit, best, end - 1) == unit
    assert formulas.with_lapse(terms, unit, best, end).lapses == 1
    bare_unit = replace(unit, mark=0)
    opens = 500 + policy.open_claim_after
    assert not formulas.claimable(terms, bare_unit, opens - 1)
    assert formulas.claimable(terms, bare_unit, opens)
    assert formulas.claims_from(replace(terms, match_window=0), bare_unit) == 500
    straddling = replace(unit, mark=opens)
    assert formulas.claims_from(terms, straddling) == opens + policy.ack_time
    assert formulas.claims_from(terms, unit) == max(opens, end)
    assert formulas.claims_from(terms, replace(unit, mark=600, lapses=1)) == 600 + policy.ack_time
    last = terms.deadline - formulas.lease_seconds(terms) - formulas.grace(terms)
    assert formulas.has_time(terms, last) and not formulas.has_time(terms, last + 1)
    assert formulas.expirable_from(terms) == last + 1
    running = Unit(State.RUNNING, mark=5_000, started=1_000)
    assert formulas.reclaimable_from(running, 1_200, 900) == 2_100
    assert formulas.reclaimable_from(running, 0, 900) == 1_900
    assert formulas.reclaimable_from(running, 4_900, 900) == 5_000


# ---- worked examples ----

TERMS = Terms(
    submitter="0x" + "11" * 20,
    salt=0,
    spec=b"\x33" * 32,
    needs=Needs(),
    ceiling=333_333_333,
    max_seconds=61,
    deadline=10**9,
    keeper_fee=1_001,
    policy=words.pack_policy(profiles.PUBLIC.policy),
    match_window=12,
    max_attempts=3,
    billing=Billing.FUEL,
)


def test_money__worked_example__is_what_the_reference_computes() -> None:
    policy = profiles.PUBLIC.policy
    unit = Unit(
        State.SUBMITTED, Outcome.OK, NodeId(1), 250_000_001, started=100, mark=200, seconds=17, attempts=1, tips=1
    )
    closing = replace(unit, state=State.CLOSING, mark=107)
    slash = formulas.slash_of(TERMS)
    dear = replace(TERMS, bond_bps=10_000_000)
    voided = formulas.pay_at_void(TERMS, unit)
    pay = formulas.pay_at_settle(TERMS, unit)
    fee = formulas.fee_of(pay, policy)
    settler = formulas.settle_reward(TERMS, 0)
    expected = {
        "p'": formulas.unit_price(TERMS),
        "budget": formulas.lease_budget(TERMS),
        "tip": formulas.tip(TERMS),
        "holds after one tip": formulas.unit_holds(TERMS, unit),
        "grace": formulas.grace(TERMS),
        "bond": formulas.bond(TERMS),
        "slash": slash,
        "reclaimer at once": formulas.reclaim_reward(TERMS, slash, 0),
        "reclaimer after 200 s": formulas.reclaim_reward(TERMS, slash, 200),
        "reclaimer after 600 s": formulas.reclaim_reward(TERMS, slash, 600),
        "expirer after 10 s": formulas.expire_reward(TERMS, None, 10),
        "pay": pay,
        "fee": fee,
        "owner": pay - fee,
        "settler": settler,
        "submitter": formulas.unit_holds(TERMS, unit) - pay - settler,
        "pay at close, started 7 s before the notice's end": formulas.pay_at_close(TERMS, closing),
        "pay when voided": voided,
        "submitter when voided": formulas.unit_holds(TERMS, unit) - voided,
        "unproven, settled at once, burnt": slash - formulas.reclaim_reward(TERMS, slash, 0),
        "bond of a thousand prices": formulas.bond(dear),
        "its slash all the same": formulas.slash_of(dear),
        "most that a judge may give of it": formulas.bond(dear) * formulas.MOST_SHARED // 10_000,
    }
    shown = by_name(tables(section("Worked example", 3))[0])
    assert shown == expected
    assert shown["owner"] + fee + settler + shown["submitter"] == shown["holds after one tip"]


def test_matching__worked_example__is_what_the_reference_computes() -> None:
    needs = Needs(tier=400, vram_gib=10, ram_gib=16, cores=4, zone_mask=1 << 4, home=5)
    offer = Offer(tier=450, vram_gib=24, ram_gib=64, cores=12, zone=4, slots=3, ask=400_000)
    hot = NodeState(r=3 * reputation.ONE, s=reputation.ONE, busy=1)
    score = formulas.score(needs, 1_000_000, 400_000, offer, hot)
    shown = by_name(tables(section("Matching"))[2])
    assert shown["R"] == reputation.reputation(hot.r, hot.s)
    assert shown["S"] == score
    seed = formulas.seed(w.JobId(bytes(32)), 0, 0)
    assert shown["bucket"] == formulas.key(score, seed, NodeId(1)) >> 40
    # Each part alone: what the score loses where the part is 0 (or the load is).
    assert shown["P"] * 4_000 == score - formulas.score(needs, 1_000_000, 1_000_000, offer, hot)
    idle = formulas.score(needs, 1_000_000, 400_000, offer, replace(hot, busy=0))
    assert shown["load"] == idle - score
    anywhere = formulas.score(replace(needs, zone_mask=0), 1_000_000, 400_000, offer, hot)
    assert (10_000 - shown["G"]) * 1_000 == anywhere - score
    rest = score + shown["load"] - 4_000 * shown["P"] - 3_000 * shown["R"] - 1_000 * shown["G"]
    assert shown["H"] * 2_000 == rest
    assert set(shown) == {"P", "R", "H", "G", "load", "S", "bucket"}


def test_open_claims__worked_example__is_what_the_reference_computes() -> None:
    terms = replace(TERMS, ceiling=1_000_000)
    rises = {f"risen after {waited} s": formulas.claim_ceiling(terms, waited) for waited in (0, 7, 8, 30)}
    waits = {f"wait({ask:,})": formulas.claim_wait(terms, ask) for ask in (250_000, 425_001, 1_000_000)}
    assert by_name(tables(section("Matching"))[1]) == rises | waits


def test_reputation__worked_example__is_what_the_reference_computes() -> None:
    one, day = reputation.ONE, 86_400
    failed = [NodeState()]
    for _ in range(4):
        failed.append(reputation.observe(failed[-1], False, one, 0))
    third, thirds = reputation.fee_weight(100, 300), [NodeState()]
    for _ in range(3):
        thirds.append(reputation.observe(thirds[-1], False, third, 0))
    success = reputation.observe(NodeState(), True, one, 0)
    full = reputation.observe(NodeState(r=50 * one), False, one, 0)
    expected = {
        "decay(2^20, 15 d)": reputation.decay(one, 15 * day // reputation.STEP),
        "decay(2^20, 30 d)": reputation.decay(one, 30 * day // reputation.STEP),
        "decay(2^20, 45 d)": reputation.decay(one, 45 * day // reputation.STEP),
        "decay(2^20, 960 d)": reputation.decay(one, 960 * day // reputation.STEP),
        "score of a new node": reputation.reputation(0, 0),
        "score after one success": reputation.reputation(success.r, success.s),
        "score after three failures": reputation.reputation(failed[3].r, failed[3].s),
        "quarantine after three failures in one second": failed[3].quarantine,
        "quarantine after a fourth": failed[4].quarantine,
        "r at 50 x 2^20 after a failure": full.r,
        "cusum after a failure of a third": thirds[1].cusum,
        "cusum after two failures of a third": thirds[2].cusum,
        "cusum after three failures of a third": thirds[3].cusum,
        "cusum after a failure and a success of a third": reputation.observe(failed[1], True, third, 0).cusum,
        "cusum after a failure and a success of a seventeenth": reputation.observe(failed[1], True, one // 17, 0).cusum,
        "weight of a fee of half the reference": reputation.fee_weight(50, 100),
        "weight of a fee of a third of the reference": third,
        "weight of a reclaim above the ration, fee of a third": reputation.reclaim_weight(
            NodeState(), 100, 300, dead=False, rationed=True
        ),
    }
    assert by_name(tables(section("Reputation"))[1]) == expected
    assert failed[2].quarantine == 0


def test_matching__gates__are_the_enum_and_its_reasons() -> None:
    rows = tables(section("Matching"))[0]
    assert [(int(row[0]), row[1]) for row in rows] == [(int(gate), gate.name) for gate in Gate]
    meanings = {int(row[0]): row[2] for row in tables(section("NodeRegistry", 3))[0]}
    source = (ROOT / "contracts" / "NodeRegistry.vy").read_text(encoding="utf-8")
    block = source[source.index("# The gates of SPEC") : source.index("ESCROW: public")]
    gates = {name: int(code) for name, code in re.findall(r"^([A-Z_]+): constant\(uint256\) = (\d+)$", block, re.M)}
    assert gates == {
        reason.name.removeprefix("NODES_"): number - reasons.GATE
        for number, reason in reasons.REASONS.items()
        if reasons.GATE < number < reasons.GATE + 100
    }
    assert len(gates) == 16
    for code in gates.values():
        assert meanings[reasons.GATE + code].startswith(f"gate {code}"), code


# ---- parameters ----


def parameter_rows() -> dict[str, list[str]]:
    """Return name -> (kind, unit, public, devnet, bounds)."""
    return {bare(row[0]): row[1:] for row in tables(section("Parameters"))[0]}


def test_parameters__profiles__are_the_codes() -> None:
    rows = parameter_rows()
    for column, profile in ((2, profiles.PUBLIC), (3, profiles.DEVNET)):
        expected = {f.name: getattr(profile.policy, f.name) for f in fields(Policy)}
        expected |= {f.name: getattr(profile.node_parameters, f.name) for f in fields(NodeParameters)}
        expected["beat_every"] = profile.beat_every
        assert {name: number(row[column]) for name, row in rows.items()} == expected
    assert profiles.PUBLIC.node_parameters.dead_after >= 3 * profiles.PUBLIC.beat_every
    assert profiles.DEVNET.node_parameters.dead_after >= 3 * profiles.DEVNET.beat_every


def bounds(cell: str, others: dict[str, int]) -> tuple[int, int] | None:
    """Return the first and the last allowed value; a name stands for the value of another parameter."""
    if ".." not in cell:
        return (number(cell), number(cell)) if cell.isdigit() else None
    low, high = cell.split("..")
    if high.endswith(" fee_reference"):
        return number(low), number(high.split()[0]) * profiles.PUBLIC.node_parameters.fee_reference
    if high == "2^80-1":
        return number(low), 2**80 - 1
    return number(low), others[high] if high in others else number(high)


def test_parameters__policy_bounds__are_the_contracts() -> None:
    world = w.World()
    values = {f.name: getattr(w.POLICY, f.name) for f in fields(Policy)}
    tried = 0
    for name, row in parameter_rows().items():
        limit = bounds(row[4], values) if row[0] == "policy" else None
        if limit is None:
            continue
        lane = 1 << words.width_of(words.POLICY, name)
        for value, taken in ((limit[0], True), (limit[1], True), (limit[0] - 1, False), (limit[1] + 1, False)):
            if not 0 <= value < lane:
                continue
            changed = replace(w.POLICY, **{name: value})
            # With probation the fee has bounds of its own (test_set_policy).
            changed = replace(changed, probation_price=0) if name == "fee_bps" else changed
            tried += 1
            if taken:
                world.evm.warp(w.DAY)
                world.rules.send.set_policy(words.pack_policy(changed), sender=world.deployer)
            else:
                with pytest.raises(Reverted) as refusal:
                    world.rules.send.set_policy(words.pack_policy(changed), sender=world.deployer)
                assert refusal.value.reason == "rules: policy out of range", (name, value)
    assert tried > 40


def test_parameters__node_bounds__are_the_contracts() -> None:
    evm = Evm()
    escrow = evm.deploy("Escrow", w.NATIVE)
    values = {f.name: getattr(profiles.PUBLIC.node_parameters, f.name) for f in fields(NodeParameters)}

    def deploy(changed: dict[str, int]) -> None:
        evm.deploy("NodeRegistry", escrow, evm.account("jobs"), *changed.values(), w.NATIVE)

    for name, row in parameter_rows().items():
        if row[0] != "node":
            continue
        limit = bounds(row[4], values)
        assert limit is not None, name
        for value in limit:
            # A minimum of 1 leaves room for no liveness fee.
            deploy(values | {name: value} | ({"liveness_fee": 0} if name == "minimum_stake" else {}))
        for value in (limit[0] - 1, limit[1] + 1):
            if value >= 0:
                with pytest.raises(Reverted) as refusal:
                    deploy(values | {name: value})
                assert refusal.value.reason.startswith("nodes: "), (name, value)


def test_parameters__fixed_figures__are_the_contracts() -> None:
    text = " ".join(section("Parameters").replace("\n- ", "\n").split())
    assert (
        f"batches of {constant('MAX_BATCH', 'JobRegistry')} (settle), {constant('MAX_BATCH', 'NodeRegistry')} (beats, "
        f"liveness), {constant('MAX_PAGE', 'Lens')} (Lens pages); policy grace "
        f"{constant('POLICY_GRACE', 'Rules'):,} s; pauses {constant('PAUSE_TIME', 'Rules'):,} s, at most one in "
        f"{constant('PAUSE_EVERY', 'Rules'):,} s; slash "
        f"1/{constant('SLASH_DIVISOR', 'leases')} of the base bond; {constant('MAX_LAPSES', 'leases')} lapses, "
        f"{constant('MAX_EXTENSIONS', 'JobRegistry')} extensions; bucket {constant('BUCKET', 'leases'):,}; accusations "
        f"{constant('ACCUSATION_TIME', 'JobRegistry'):,} s; challenge windows at most "
        f"{constant('MAX_CHALLENGE_WINDOW', 'Rules'):,} s, a dispute stale {constant('STALE_TIME', 'leases'):,} s "
        f"after its own; shares at most {constant('MOST_SHARED', 'NodeRegistry'):,} bps of a bond, a verdict's "
        f"quarantine {constant('VERDICT_TIME', 'NodeRegistry'):,} s."
    ) in text
    for name in ("PAUSE_TIME", "PAUSE_EVERY"):
        assert constant(name, "NodeRegistry") == constant(name, "Rules")
    assert constant("STALE_TIME", "leases") == formulas.STALE_SECONDS
    assert constant("MOST_SHARED", "NodeRegistry") == formulas.MOST_SHARED
    assert constant("VERDICT_TIME", "NodeRegistry") == reputation.QUARANTINE_MAX


# ---- errors and events ----


def given_by(contract: str) -> set[str]:
    """Return the texts of every reason that a contract's source names."""
    return {reasons.REASONS[number].text for number in refusals.reasons_in(contract)}


@pytest.mark.parametrize("contract", list(CONTRACTS))
def test_errors__reverts__are_the_tables_and_the_sources(contract: str) -> None:
    rows = tables(section(contract, 3))[0]
    shown = [(int(row[0]), bare(row[1])) for row in rows]
    prefix = f"{CONTRACTS[contract]}: "
    assert shown == [
        (number, reason.text) for number, reason in reasons.REASONS.items() if reason.text.startswith(prefix)
    ]
    assert all(row[2] for row in rows)
    # Rules says of terms what `post` refuses them for.
    given = given_by(contract) | (given_by("Rules") if contract == "JobRegistry" else set())
    assert {text for _, text in shown} == {text for text in given if text.startswith(prefix)}


def test_errors__modules__refuse_nothing_of_their_own() -> None:
    listed = {*CONTRACTS, "reasons"}
    others = [path.stem for path in (ROOT / "contracts").glob("*.vy") if path.stem not in listed]
    assert {name: given for name in others if (given := refusals.reasons_in(name))} == {}


def test_lens__tables__are_its_functions_and_what_an_overview_tells() -> None:
    abi = json.loads((ROOT / "hearth" / "market" / "artifacts" / "Lens.json").read_text(encoding="utf-8"))["abi"]
    functions = {item["name"]: item for item in abi if item["type"] == "function" and not item["name"].isupper()}
    shown, fields = tables(section("Lens"))
    assert {bare(row[0]): row[1] for row in shown} == {
        name: ", ".join(parameter["name"] for parameter in item["inputs"]) for name, item in functions.items()
    }
    assert len(shown) == len(functions) and all(row[2] for row in shown)
    views = [name for name, item in functions.items() if item["stateMutability"] != "view"]
    assert views == ["performUpkeep"]

    def told(name: str) -> list[str]:
        return [part["name"] for part in functions[name]["outputs"][0]["components"]]

    assert [bare(row[0]) for row in fields] == told("overview")
    text = " ".join(section("Lens").split())
    assert "five fields: `job`, the job's word; `word`, `second` and `accused`," in text and "`kept`, the words" in text
    assert told("status") == ["job", "word", "second", "accused", "kept"]
    assert f"A page has {constant('MAX_PAGE', 'Lens')} entries at most" in text
    most = constant("MAX_RESUMED", "Lens")
    assert f"resumed from, {most} at most." in text
    assert most == constant("MAX_RESUMED", "JobRegistry") == formulas.MAX_RESUMED
    assert f"names the gates {Gate.NOT_LIVE} to {Gate.PROBATION} alone" in text


def test_errors__selector__is_the_errors() -> None:
    assert f"`0x{keccak(b'Refused(uint256)')[:4].hex()}`" in section("Errors")


def test_errors__classes__are_the_librarys() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.HearthError)
    }
    rows = tables(section("Commands", page="commands.md"))[0]
    assert {bare(row[2]): (int(row[0]), bare(row[1])) for row in rows} == {
        name: (value.exit_code, value.code) for name, value in classes.items()
    }
    assert all(a[0] <= b[0] for a, b in pairwise([(int(row[0]),) for row in rows]))


def codes_in(tree: ast.Module) -> set[tuple[int, str]]:
    """Return the exit status and code of every error that a module makes, by its class or by a function of its own.

    A function that passes its parameter `code` on to what makes an error makes one too; a job file's faults become its
    SpecError. A class's own code is left out.
    """
    makers: dict[str, tuple[type[errors.HearthError], int]] = {
        name: (value, 99) for name, value in vars(errors).items() if hasattr(value, "exit_code")
    }
    makers |= {"Problem": (errors.SpecError, 3), "refusal": (errors.SpecError, 2)}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        names = [argument.arg for argument in function.args.args if argument.arg != "self"]
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            passed = [one.id for one in _codes(call, makers) if isinstance(one, ast.Name)]
            if "code" in names and passed == ["code"]:
                makers[function.name] = (makers[_called(call)][0], names.index("code"))
    found = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in makers):
        kind = makers[function.name][0]
        given = zip(reversed(function.args.args), reversed(function.args.defaults), strict=False)
        found |= {(kind.exit_code, value.value) for name, value in given if name.arg == "code"} - {
            (kind.exit_code, kind.code)
        }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        texts = [c.value for one in _codes(call, makers) for c in ast.walk(one) if isinstance(c, ast.Constant)]
        kind = makers[_called(call)][0] if texts else errors.HearthError
        found |= {(kind.exit_code, text) for text in texts if re.fullmatch("[A-Z][A-Z_]+", str(text))} - {
            (kind.exit_code, kind.code)
        }
    return found


def _called(call: ast.Call) -> str:
    """Return the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _codes(call: ast.Call, makers: dict[str, tuple[type[errors.HearthError], int]]) -> list[ast.expr]:
    """Return what a call gives as an error's code, by name or in its place; nothing where it makes no error."""
    if _called(call) not in makers:
        return []
    place = makers[_called(call)][1]
    return [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg == "code")]


def test_errors__narrower_codes__are_raised_with_their_exit_status() -> None:
    raised = set()
    for folder in ("hearth", "worker", "keeper", "scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            raised |= codes_in(ast.parse(path.read_text(encoding="utf-8")))
    shown = {
        (int(row[0]), bare(c)) for row in tables(section("Commands", page="commands.md"))[1] for c in row[1].split(", ")
    }
    assert len(shown) > 50 and shown == raised, (sorted(shown - raised), sorted(raised - shown))


def test_events__table__is_the_artifacts() -> None:
    expected = set()
    for contract in CONTRACTS:
        abi = json.loads((ROOT / "hearth" / "market" / "artifacts" / f"{contract}.json").read_text(encoding="utf-8"))[
            "abi"
        ]
        for event in (item for item in abi if item["type"] == "event"):
            inputs = ", ".join(i["name"] + ("*" if i["indexed"] else "") for i in event["inputs"])
            expected.add((contract, event["name"], inputs))
    assert {(row[0], bare(row[1]), row[2]) for row in tables(section("Events"))[0]} == expected


# ---- files ----


def test_files__constants__are_the_codes() -> None:
    assert MAX_DOCUMENT_BYTES == 1 << 20 and "at most 1 MiB" in section("Job spec")
    for figure in (unixfs.CHUNK_BYTES, unixfs.LINKS_PER_NODE, unixfs.DIRECTORY_BLOCK_BYTES, FUEL_PER_SECOND):
        assert f"{figure:,}" in section("Job spec")
    assert wasi.CLOCK_STEP_NS == 10**6 and wasi.CLOCK_START_NS == 1_577_836_800 * 10**9


def test_worker__bounds_of_webassembly__are_the_codes() -> None:
    text = " ".join(section("What the worker promises", 1, "worker.md").split())
    charges = tables(section("What the worker promises", 1, "worker.md"))[0]
    assert {bare(row[0]): int(row[1].replace(",", "")) for row in charges} == dict(preview1.CHARGES)
    said = {row[0]: row[2] for row in charges}
    assert f"at most {wasi.MAX_TRANSFER >> 20} MiB" in said["`KiB`"]
    assert f"at most {wasi.MAX_IOVS:,}" in said["`buffer`"]
    assert f"at most {wasi.MAX_SUBSCRIPTIONS:,}" in said["`subscription`"]
    assert f"{MAX_LISTED:,} names in all" in text and f"{wasm.ENGINE_BYTES >> 20} MiB for the engine" in text
    assert f"more than {image_config.MAX_VOLUMES} of them" in text
    assert f"a container of less than {DOCKER.least_memory >> 20} MiB" in text


def test_worker__profiles__are_the_codes() -> None:
    (container,) = tables(section("Profile of a container", page="worker.md"))
    assert container == [
        [rule.name, rule.denies, rule.asked, rule.inside, rule.gvisor or "the same"] for rule in DOCKER_PROFILE
    ]
    (module,) = tables(section("Profile of a module", page="worker.md"))
    assert module == [[rule.name, rule.denies, rule.asked, rule.inside] for rule in WASM_PROFILE]
    assert not any(rule.gvisor or rule.keys for rule in WASM_PROFILE)


def test_files__documents__have_the_named_keys() -> None:
    run = RunResult(RunStatus.OK)
    result = results.result_document(spec=bytes(32), index=0, outcome=Outcome.OK, run=run, outputs=None)
    report = results.report_document(
        job=bytes(32),
        index=0,
        attempt=1,
        node=1,
        run=run,
        logs=None,
        began=0,
        ended=0,
        kept_until=0,
        used=0,
        machine={},
    )
    refusal = results.refusal_document(job=bytes(32), index=0, attempt=1, node=1, outcome=Outcome.BAD_INPUT, why="")
    text = " ".join(section("Result and report").split())
    without_note = text.replace(" (CID and size, or null)", "")
    for document in (result, report, refusal):
        assert ", ".join(document) in without_note
    spec = " ".join(section("Job spec").split())
    assert all(name in spec for name in ResolvedSpec.model_fields)


def test_files__gpu_tiers__are_the_table() -> None:
    for vendor, rows in zip(gpu_tiers.VENDORS.values(), tables(section("GPU tiers")), strict=True):
        shown = [
            (int(key), slug) for k in range(0, len(rows[0]), 2) for key, slug in (row[k : k + 2] for row in rows) if key
        ]
        assert shown == [(model.tier, model.slug) for model in vendor.models]


def test_files__network_keys__are_the_librarys() -> None:
    nodes = profiles.PUBLIC.node_parameters
    network = Network("x", 1, bytes(32), dict.fromkeys(CONTRACTS, ""), Asset("ETH", 18), 0, 1, nodes)
    network = replace(network, deployed_chain_id=2)  # the one key that may be left out
    listed = " ".join(section("Network file", page="commands.md").split()).split(": ", 1)[1].split(". ")[0]
    assert listed.split(", ") == list(network.as_dict())


def test_contracts__order__is_that_of_the_list_which_stands_nowhere_else() -> None:
    assert section("Deployment", page="commands.md").split(", in this order")[0].strip().split(", ") == list(CONTRACTS)
    places = [path for folder in (*CODE, "networks") if folder != "tests" for path in (ROOT / folder).rglob("*")]
    again = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in places
        if path.suffix in (".py", ".md", ".vy", ".vyi")
        for line in path.read_text(encoding="utf-8").splitlines()
        if all(name in line for name in CONTRACTS)
    ]
    assert again == []


# ---- invariants ----


def test_invariants__applied_ones__name_tests_that_exist() -> None:
    rows = tables(section("Invariants", page="threats.md"))[0]
    applied = [*range(1, 24), *range(26, 36), *range(37, 41)]
    assert [int(row[0]) for row in rows] == applied
    for nr, _, checked in rows:
        named = re.findall(r"`(tests/[^`]+\.py)`", checked)
        assert named or "the machine" in checked, nr
        assert all((ROOT / path).is_file() for path in named), (nr, named)
    machine = (ROOT / "tests" / "stateful" / "test_market.py").read_text(encoding="utf-8")
    own = {int(n) for line in re.findall(r'"""([\d, ]+):', machine) for n in line.split(",")}
    shown = {int(row[0]) for row in rows if "the machine" in row[2]}
    assert own <= shown, sorted(own - shown)


def test_threats__named_tests__exist() -> None:
    named = re.findall(r"`((?:tests|tools|hearth|docs)/[\w/.-]+\.\w+)`", "\n".join(PAGES.values()))
    assert len(named) > 40
    assert sorted({path for path in named if not (ROOT / path).is_file()}) == []
    assert len(tables(section("Threats", page="threats.md"))[0]) >= 15


def test_compiler__rules__are_the_checkers() -> None:
    source = (ROOT / "tools" / "check_vyper.py").read_text(encoding="utf-8")
    rules = set(re.findall(r'[pP]roblem\((?:\s*[\w.]+,)+\s*"([a-z-]+)",', source)) - {"compile"}
    shown = {rule for row in tables(section("Compiler", page="threats.md"))[0] for rule in row[0].split(", ")}
    assert len(rules) > 10 and shown == rules
