"""What `hearth job explain` says of a call: by its data alone, whole, and of nothing that it does not know."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
from eth_utils.crypto import keccak

from hearth.base.errors import RefusedError, UsageError
from hearth.client.explain.calldata import CALLS, OTHERS, addresses, four_words, read_call
from hearth.client.explain.explaining import MOST_CALLS, explain
from hearth.client.prepared import Prepared
from hearth.market.abi import codec
from hearth.market.calls import Calls
from hearth.market.changes import Change, ChangeOp
from hearth.market.profiles import DEVNET
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import JobId, NodeId, Terms, TermsFlag
from hearth.protocol.units import format_amount
from tests.web.vectors import _drawn, prepared
from tests.web.vectors.calls import TOKEN
from tests.web.vectors.network import NETWORK

ME, OTHER = prepared.OWNER, prepared.OTHER
CALLED = Calls(NETWORK)
IN_TOKEN = replace(NETWORK, asset=TOKEN)


def drawn(seed: str = "explain", parents: tuple[bytes, ...] = ()) -> Terms:
    random = Random(seed)
    terms = _drawn.drawn_terms(random, _drawn.drawn_policy(random))
    more: dict[str, Any] = {"parents_hash": parents_hash(parents), "ceiling": max(1, terms.ceiling)}
    return replace(terms, replicas=1, flags=TermsFlag(0), **more)


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def document(call: Any, **changes: Any) -> str:
    return json.dumps({**Prepared("call", ME, call, 0, "key").document(NETWORK), **changes})


def refusal(text: str, network: Any = NETWORK) -> str:
    with pytest.raises(UsageError) as caught:
        explain(text, network)
    assert caught.value.code == "BAD_TX"
    return caught.value.message


def test_four_words__of_an_id__are_its_last_44_bits_in_elevens() -> None:
    """Somebody else's page computes the same words. BIP-39 counts from 0: abandon, ability, able, ..., zoo."""
    last = 1 << 22 | 2 << 11 | 2047
    assert four_words(b"\xff" * 26 + last.to_bytes(6, "big")) == "abandon ability able zoo"


def test_explain__a_post__says_job_words_hash_terms_and_money() -> None:
    terms = drawn()
    call = CALLED.post(terms, ())
    (one,) = explain(hexed(call.data), NETWORK)["calls"]
    job = formulas.job_id(NETWORK.job_chain_id, NETWORK.jobs, terms)
    escrow = formulas.escrow_at_post(terms)

    assert (one["contract"], one["function"], one["address"]) == ("JobRegistry", "post", NETWORK.jobs)
    assert one["data_hash"] == hexed(keccak(call.data))
    assert (one["job"], one["four_words"]) == (hexed(job), four_words(job))
    assert one["value"] == str(escrow) == str(call.value)
    assert one["approve"] == "0" and one["approve_text"] is None
    assert format_amount(escrow, NETWORK.asset) in one["what"] and terms.submitter in one["moves"]
    assert one["terms"] is not None and len(one["terms"]) == len(Terms.__dataclass_fields__)
    assert one["terms"]["salt"] == str(terms.salt) and one["terms"]["spec"] == hexed(terms.spec)
    assert one["from"] is None


def test_explain__a_post_in_a_token__is_paid_by_an_approval() -> None:
    terms = drawn()
    (one,) = explain(hexed(Calls(IN_TOKEN).post(terms, ()).data), IN_TOKEN)["calls"]

    assert (one["value"], one["approve"]) == ("0", str(formulas.escrow_at_post(terms)))


def test_explain__each_field_of_the_terms__changes_hash_and_job() -> None:
    terms = drawn()
    ways = [
        terms,
        replace(terms, salt=terms.salt ^ 1),
        replace(terms, ceiling=terms.ceiling + 10**9),
        replace(terms, submitter=OTHER),
        replace(terms, spec=bytes(32)),
        replace(terms, deadline=terms.deadline + 1),
    ]
    found = [explain(hexed(CALLED.post(one, ()).data), NETWORK)["calls"][0] for one in ways]

    assert len({one["data_hash"] for one in found}) == len({one["job"] for one in found}) == len(ways)


def test_explain__a_withdrawal_to_another__says_whole_to_whom() -> None:
    (one,) = explain(hexed(CALLED.withdraw(OTHER, 10**17).data), NETWORK)["calls"]

    assert OTHER in one["moves"] and "to the account itself" not in one["what"]
    assert "withdraws to" in refusal(document(CALLED.withdraw(OTHER, 10**17)))


def test_explain__an_offer_that_is_replaced__says_nothing_of_an_ask_that_stays() -> None:
    offer = _drawn.drawn_node(Random("offer")).offer
    new, changed = CALLED.register(OTHER, offer, bytes(32), 5), CALLED.update_offer(NodeId(3), offer, bytes(32))
    first, second = (explain(hexed(call.data), NETWORK)["calls"][0] for call in (new, changed))

    assert "its ask stays" in second["what"]
    assert {row["name"] for row in first["rows"]} - {row["name"] for row in second["rows"]} == {"operator", "ask"}


def test_explain__a_change__says_all_that_it_does() -> None:
    stake = Change(ChangeOp.SET_MINIMUM_STAKE, 2 * 10**18, 3)
    policy = Change(ChangeOp.SET_POLICY, words.pack_policy(DEVNET.policy), 3)
    for prepare in (CALLED.queue, CALLED.execute):
        first, second = (explain(hexed(prepare(one).data), NETWORK)["calls"][0] for one in (stake, policy))
        assert first["what"].endswith(f": new nodes stake at least {format_amount(2 * 10**18, NETWORK.asset)}")
        assert first["rows"] == [{"name": "change", "text": hexed(stake.id)}]
        named, *values = second["rows"]
        assert named == {"name": "change", "text": hexed(policy.id)}
        assert [row["name"] for row in values] == list(asdict(DEVNET.policy))
        assert {"name": "fee_bps", "text": "500 (5 %)"} in values


def test_explain__a_post_whose_parents_are_not_its_terms__is_refused() -> None:
    listed = pack_parents([Parent(JobId(bytes(31) + b"\1"), Condition.SUCCESS)])
    (one,) = explain(hexed(CALLED.post(drawn(parents=listed), listed).data), NETWORK)["calls"]
    assert ["waits for", f"0x{'00' * 31}01 (success)"] in [[row["name"], row["text"]] for row in one["rows"]]
    structure = words.pack_terms(drawn())

    assert "waits for other jobs" in refusal(hexed(codec("JobRegistry").encode("post", structure, list(listed))))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0x", "no hex of whole bytes"),
        ("0x123", "no hex of whole bytes"),
        ("0xzz345678", "no hex of whole bytes"),
        ("0x12345678", "calls nothing of a contract of this market"),
        ("", "Expecting value"),
        ("{}", "schema is not hearth.tx/1"),
        ("[]", "holds 0 calls"),
        ("[[[[", "Expecting value"),
        ('{"prepared": 5}', "schema is not hearth.tx/1"),
        ("{" * 5_000, "nested deeper"),
        ("0x" + "00" * (1 << 20), "more than 1048576 characters"),
    ],
)
def test_explain__what_is_no_call__is_refused(text: str, why: str) -> None:
    assert why in refusal(text)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"value": "1"}, "it pays 1 and approves 0"),
        ({"approve": "1"}, "it pays 0 and approves 1"),
        ({"value": "-1"}, "value is of no form"),
        ({"value": 0}, "value is of no form"),
        ({"action": "Pay\u202eme"}, "action is of no form"),
        ({"key": 5}, "key is no name"),
        ({"chain_id": True}, "chain_id is no chain's id"),
        ({"more": "x"}, "and nothing else"),
        ({"from": OTHER}, "it is of a job of"),
        ({"data": "0x00"}, "data is of no form"),
    ],
)
def test_explain__a_file_that_the_page_refuses__is_refused(changes: dict[str, Any], why: str) -> None:
    terms = replace(drawn(), submitter=ME)
    call = CALLED.cancel(words.pack_terms(terms), 0)
    assert explain(document(call), NETWORK)["calls"][0]["from"] == ME

    assert why in refusal(document(call, **changes))


def test_explain__a_file_of_another_market__is_refused() -> None:
    call = CALLED.withdraw(ME, 1)
    for changes in ({"chain_id": NETWORK.chain_id + 1}, {"to": OTHER}):
        with pytest.raises(RefusedError) as caught:
            explain(document(call, **changes), NETWORK)
        assert caught.value.code == "WRONG_MARKET"


def test_explain__many_calls_or_several_senders__are_refused() -> None:
    one = json.loads(document(CALLED.exit_start(NodeId(1))))

    assert "holds 17 calls" in refusal(json.dumps([one] * (MOST_CALLS + 1)))
    assert "several accounts" in refusal(json.dumps([one, {**one, "from": OTHER}]))


def test_explain__data_that_the_abi_writes_otherwise_or_with_more_behind__is_refused() -> None:
    data = CALLED.withdraw(ME, 10**17).data

    assert "something else behind its arguments" in refusal(hexed(data + b"\0"))
    refusal(hexed(data[:4] + b"\1" + data[5:]))  # an address of more than 160 bits
    refusal(hexed(data[:-1]))


def test_explain__calls_of_ours_that_nobody_prepares__are_refused() -> None:
    for call in (CALLED.propose(drawn(), 0, NodeId(1)), CALLED.beat(NodeId(1)), CALLED.offer_governor("Rules", OTHER)):
        assert "calls nothing of a contract of this market" in refusal(hexed(call.data))


def test_explain__altered_data_of_any_call__is_told_or_refused_and_never_more() -> None:
    random = Random("altered")
    terms = drawn()
    calls = [
        CALLED.post(terms, ()),
        CALLED.cancel(words.pack_terms(terms), 0),
        CALLED.register(OTHER, _drawn.drawn_node(random).offer, bytes(32), 5),
        CALLED.perform_upkeep([]),
    ]
    for _ in range(1_500):
        data = bytearray(random.choice(calls).data)
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(4, len(data))] = random.choice((0, 1, 255, random.randrange(256)))
        try:
            (one,) = explain(hexed(bytes(data)), NETWORK)["calls"]
        except UsageError as error:
            assert error.code == "BAD_TX"
        else:
            assert one["data_hash"] == hexed(keccak(bytes(data)))


def test_read_call__selectors__are_of_one_contract_each() -> None:
    named = [
        (name, function) for table in (CALLS, OTHERS) for name in table if name != "token" for function in table[name]
    ]
    selectors = {codec(name).selector(function) for name, function in named}

    assert len(selectors) == len(named)
    assert set(addresses(IN_TOKEN)) == {*CALLS, *OTHERS} and set(addresses(NETWORK)) == {*CALLS, *OTHERS} - {"token"}
    with pytest.raises(ValueError, match="calls nothing"):
        read_call(Calls(IN_TOKEN).approve(OTHER, 1).data, NETWORK)


def test_explain__an_approval__is_of_just_what_the_next_call_takes() -> None:
    calls, takes = Calls(IN_TOKEN), 10**18
    stake = Prepared("call", ME, calls.add_stake(NodeId(7), ME, takes), takes, "key").document(IN_TOKEN)

    def approval(spender: str, amount: int) -> Any:
        return Prepared("call", ME, calls.approve(spender, amount), 0, "key").document(IN_TOKEN)

    report = explain(json.dumps({"prepared": [approval(IN_TOKEN.nodes, takes), stake]}), IN_TOKEN)
    assert [one["function"] for one in report["calls"]] == ["approve", "add_stake"]
    for wrong in (
        [approval(IN_TOKEN.nodes, takes + 1), stake],
        [approval(OTHER, takes), stake],
        [approval(IN_TOKEN.nodes, takes)],
        [stake, approval(IN_TOKEN.nodes, takes)],
    ):
        assert "which no call behind it takes" in refusal(json.dumps(wrong), IN_TOKEN)
    # Of data alone nobody knows what comes after it: whom it lets take what stands there whole.
    (one,) = explain(hexed(calls.approve(OTHER, takes).data), IN_TOKEN)["calls"]
    assert "another account" in one["what"] and OTHER in one["moves"]
