"""Logs under a market's addresses that no contract writes, why the library steps over each, and providers' nonsense."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hearth.base.errors import HearthError
from hearth.chain import answers
from hearth.chain.port import Log
from hearth.market import events
from hearth.market.changes import Change, ChangeOp
from hearth.market.contracts import CONTRACTS
from hearth.market.profiles import DEVNET
from hearth.market.reads import Market
from hearth.market.strays import Strays
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import SENTINEL, JobId, State
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tests.kit.nonsense import nonsense
from tests.web.vectors import _chance
from tests.web.vectors._events import WITH_RESULT, chance_log, chance_unit, every_event, log_of, raw
from tests.web.vectors._plain import plain

HIGH = 2**256 - 1
CHAIN_ID = 31337
JOBS = "0x" + "10" * 20
SUBMITTER = "0x" + "5b" * 20
SPARE = 1 << 255


def cases() -> Any:
    """Return logs with the code that refuses them, what is made of providers' answers, and what is said of strays."""
    draw = _chance.source(12)
    refused = [_case(contract, log) for contract, log in [*_mutilated(draw), *_nonsense(draw)]]
    return {
        "refused": [case for case in refused if case],
        "market": {"jobs": JOBS, "jobChainId": CHAIN_ID},
        "posts": [_post(log) for log in _posts(draw)],
        "answers": [_answer(answer) for answer in _answers(draw)],
        "strays": [_strays(count) for count in (0, 1, 2, 5, 6)],
    }


def _case(contract: str, log: Log) -> dict[str, Any] | None:
    """Return a log with the error that it is refused with, None where it is taken."""
    try:
        events.decode_of(log, contract)
    except HearthError as error:
        return {"contract": contract, "log": _brief(log), "code": error.code}
    except ValueError:
        return {"contract": contract, "log": _brief(log), "code": "BAD_LOG"}
    return None


def _brief(log: Log) -> dict[str, Any]:
    return {"topics": ["0x" + topic.hex() for topic in log.topics], "data": "0x" + log.data.hex(), "at": log.log_index}


def _mutilated(draw: random.Random) -> list[tuple[str, Log]]:
    """Return logs of each event with one thing changed that its contract keeps to."""
    found: list[tuple[str, Log]] = []
    for contract, name in every_event():
        log = chance_log(contract, name, draw)._replace(block_number=7)
        other = draw.choice([one for one in CONTRACTS if one not in events._emitters()[events.EVENTS[name]]])
        changed = [(contract, log._replace(topics=(*log.topics, bytes(32)))), (other, log)]
        changed += [(contract, log._replace(topics=log.topics[:-1]))]
        if log.data:
            changed.append((contract, log._replace(data=log.data[: draw.choice([-1, 0])])))
        # What holds for every event is tried with each in one way.
        found += _chance.some(draw, changed, 1)
        found += [(contract, one) for one in _out_of_bounds(name, log, draw)]
    return found


def _out_of_bounds(name: str, log: Log, draw: random.Random) -> list[Log]:
    cls = events.EVENTS[name]
    found = []
    if issubclass(cls, events.UnitEvent):
        found += [_topic(log, 2, value) for value in _chance.some(draw, (events.MAX_UNITS, SENTINEL), 1)]
        bad = [SPARE, HIGH, words.HEADER_STATE, 11, 9 << 4, words.pack_unit(chance_unit(draw)) | SPARE]
        if name in WITH_RESULT:
            found.append(_topic(_data(log, 0, words.pack(words.UNIT, _lanes(state=State.SUBMITTED))), 2, 1))
        if name != "CheckpointPaid":
            found += [_topic(_data(log, 0, word), 2, 1) for word in _chance.some(draw, bad, 1)]
        if name in ("Cancelled", "Expired", "Unlocked"):
            found += [_topic(_data(log, 0, word), 2, SENTINEL) for word in (0, 14, 15 | 64, 15 | SPARE, HIGH)]
    if "node" in cls.__dataclass_fields__:
        at = 3 if issubclass(cls, events.UnitEvent) else 1
        found.append(_topic(log, at, draw.choice([events.MAX_NODE, HIGH])))
    by_name = {
        "Checkpointed": [(32, events.MAX_SECONDS), (32, HIGH)],
        "CheckpointPaid": [(0, 16), (0, HIGH)],
        "Ruled": [(32, 4), (32, HIGH)],
        "NodeRegistered": [(0, SPARE), (0, 1 << 6)],
        "OfferChanged": [(0, HIGH), (0, 1 << 79)],
        "ChangeQueued": [(0, 1 << 161), (32, 5), (64, events.MAX_TIME + 1)],
        "ChangeExecuted": [(0, HIGH)],
        **{one: [(0, events.MAX_TIME + 1), (0, HIGH)] for one in ("ExitStarted", "Quarantined", "Paused")},
        "AskChanged": [(32, events.MAX_TIME + 1)],
        "PolicyChanged": [(64, events.MAX_TIME + 1)],
        "Rejected": [(128, events.MAX_TIME + 1)],
        "JobPosted": [
            *((32 * at, SPARE) for at in (2, 3, 4, 6)),
            (128, words.pack_terms(build.terms(chunk=0))[4]),
            (96, words.pack_terms(build.terms(ceiling=0))[3]),
            (224, words.pack_policy(replace(DEVNET.policy, claim_ramp=0))),
            *((128, 3 << 180), (288, 2**255), (288, len(log.data) - 16), (288, len(log.data)), (288, 0)),
            *((384, 2**64), (384, HIGH), (384, 6)),
        ],
    }
    found += [_data(log, offset, value) for offset, value in by_name.get(name, [])]
    if name == "ChangeExecuted":
        found += [_topic(log, 2, op) for op in (0, 7, HIGH)]
    if name == "ChangeQueued":
        found += [_topic(log, 2, 7), _topic(log, 1, 5)]
        queued = Change(ChangeOp.SET_POLICY, SPARE, 3)
        found += [_data(_data(_topic(_topic(log, 2, 6), 1, int.from_bytes(queued.id, "big")), 0, SPARE), 32, 3)]
    return found


def _lanes(**values: int) -> dict[str, int]:
    return {lane.name: values.get(lane.name, 0) for lane in words.UNIT.lanes}


def _topic(log: Log, at: int, value: int) -> Log:
    return log._replace(topics=(*log.topics[:at], value.to_bytes(32, "big"), *log.topics[at + 1 :]))


def _data(log: Log, offset: int, value: int) -> Log:
    return log._replace(data=log.data[:offset] + value.to_bytes(32, "big") + log.data[offset + 32 :])


def _nonsense(draw: random.Random) -> list[tuple[str, Log]]:
    """Return what the abuse of a registry's address writes (tests/kit/nonsense.py)."""
    real = [chance_log("JobRegistry", name, draw) for name in ("JobPosted", "Started", "Finished", "Cancelled")]
    said = _chance.some(draw, list(nonsense(b"\x01" * 32, [(list(log.topics), log.data) for log in real], 3)), 15)
    logs = [Log("0x" + "c0" * 20, tuple(topics), data, 7, bytes(32), bytes(32), 3) for topics, data in said]
    return [("JobRegistry", log) for log in logs]


def _posts(draw: random.Random) -> list[Log]:
    """Return posts whose id is that of their terms or not, with lists of parents that are those of the terms or not."""
    found: list[Log] = []

    def post(
        packed: list[bytes], *, said: list[bytes] | None = None, submitter: str | None = None, **wrong: Any
    ) -> None:
        terms = replace(build.terms(submitter=SUBMITTER, salt=len(found)), parents_hash=parents_hash(packed))
        values = {
            "job_id": formulas.job_id(CHAIN_ID, JOBS, terms),
            "submitter": submitter or terms.submitter,
            "terms": words.pack_terms(terms),
            "parents": packed if said is None else said,
            "number": 3,
            "previous": 2,
            **wrong,
        }
        found.append(log_of("JobRegistry", "JobPosted", values, draw))

    one = [Parent(JobId(bytes([7]) * 32), Condition.SUCCESS), Parent(JobId(bytes([8]) * 32), Condition.ALWAYS)]
    two = list(pack_parents(one))
    post([])
    post(two)
    post([], job_id=bytes([9]) * 32)
    post([], terms=words.pack_terms(build.terms(salt=99)))
    post(two, said=[])
    post([], said=two)
    post(two, said=[two[0], two[2], two[1]])
    post([], submitter="0x" + "5c" * 20)
    post([(0).to_bytes(32, "big"), two[1]])
    post([(5).to_bytes(32, "big"), two[1]])
    post(two[:1])
    return found


def _post(log: Log) -> dict[str, Any]:
    network = build.network(FakeChain(), contracts={**build.ADDRESSES, "JobRegistry": JOBS}, chain_id=CHAIN_ID)
    case = {"log": _brief(log)}
    try:
        Market(FakeChain(), network).posted_of(events.decode_of(log, "JobRegistry"))  # type: ignore[arg-type]
    except HearthError as error:
        return {**case, "code": error.code}
    except ValueError:
        return {**case, "code": "BAD_PARENTS"}
    return case


def _answers(draw: random.Random) -> list[Any]:
    """Return what providers may answer to a question for logs: some of it logs."""
    good = raw(chance_log("Escrow", "Withdrawn", draw))
    without = [{key: value for key, value in good.items() if key != left_out} for left_out in good]
    return [
        *(
            [],
            [good],
            [good, {**good, "removed": True}],
            [{**good, "removed": False}],
            None,
            {},
            "0x",
            [None],
            [[]],
            ["0x"],
        ),
        *([one] for one in without),
        [{**good, "address": good["address"].upper().replace("X", "x")}],
        [{**good, "topics": [topic.upper().replace("X", "x") for topic in good["topics"]]}],
        *([{**good, "topics": topics}] for topics in (None, "0x", [], good["topics"] * 2, ["0x00"], [5])),
        *([{**good, "data": data}] for data in ("0x0", "0xzz", None, 5, "0x", good["data"].upper().replace("X", "x"))),
        *([{**good, "blockHash": value}] for value in ("0x", "0x00", None, good["blockHash"] + "00")),
        *([{**good, "blockNumber": value}] for value in ("0x", "", None, "-0x1", hex(2**64), hex(2**53 - 1), "0x0")),
        [{**good, "logIndex": hex(2**64)}],
    ]


def _answer(answer: Any) -> dict[str, Any]:
    try:
        logs = answers.logs(answer)
    except answers.MALFORMED:
        return {"answer": answer, "code": "RPC_BROKEN"}
    return {"answer": answer, "logs": [plain(log) for log in logs]}


def _strays(count: int) -> dict[str, Any]:
    strays = Strays()
    for at in [*range(count), *range(count)]:
        strays.note(Log("", (), b"", 9, bytes(32), bytes(32), at), f"reason {at}")
    return {"count": count, "first": strays.first, "words": strays.in_words()}
