# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Attesters
@author Hearth
@license Apache-2.0
@notice A judge: a submitted unit is paid for once enough of the keys that its job commits to have signed its result.
        An attester runs the work again, or holds a key in an enclave, or is somebody whom the submitter believes; it
        signs off chain, and anyone brings the signatures here. It can confirm and nothing else: a unit that nobody
        confirms in time ends as JobRegistry says of a job that asks for a proof.

        A job names its set by judge_data = keccak256(abi_encode(keys, quorum)), with at most 16 keys. What is signed
        is EIP-712 `Result(bytes32 job,uint256 index,bytes32 spec,bytes32 result,uint256 fields)` for the domain
        (Hearth Attesters, 1, chain id, this contract), where `fields` is the outcome and the fuel seconds that the
        node was given (packing.FIELDS_OUTCOME_SHIFT ..): of what is paid for, nothing can change after a signature.
        Signers come in strictly ascending order of their addresses, so one key counts once, whatever a set repeats.
@custom:security Unaudited. Holds no money, has no storage and no owner. The result and its fields are read from
        JobRegistry, never taken from the caller; a signature for another job, unit, result, chain or contract signs
        another digest. A chain that changes its id keeps its jobs' ids, while the domain follows the chain: results
        are signed anew there, and what was signed before counts only where the id stayed.
@custom:kill Cannot be switched off; a job that names it can be accepted by its submitter and settled by time.
"""

from interfaces import IAttesters
from interfaces import IJobRegistry
from interfaces import IJudge

implements: IAttesters
implements: IJudge

import packing
import reasons

MAX_KEYS: constant(uint256) = 16
CONFIRM: constant(uint256) = 1  # JobRegistry's verdict
DOMAIN_TYPE: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
NAME: constant(bytes32) = keccak256("Hearth Attesters")
VERSION: constant(bytes32) = keccak256("1")
RESULT_TYPE: constant(bytes32) = keccak256(
    "Result(bytes32 job,uint256 index,bytes32 spec,bytes32 result,uint256 fields)"
)
# Half of secp256k1's order: of the two signatures (s, n - s) that hold for a digest, the lower one is taken.
MAX_S: constant(uint256) = 57896044618658097711785492504343953926418782139537452191302581570759080747168

JOBS: public(immutable(IJobRegistry))
CHAIN_ID: immutable(uint256)  # part of every job's id, as JobRegistry has it


@deploy
def __init__(jobs: IJobRegistry):
    """
    @param jobs The JobRegistry whose units are judged, deployed on this chain under the same id.
    """
    JOBS = jobs
    CHAIN_ID = chain.id


# ---- ANYONE ----


@external
def confirm(
    terms: IJobRegistry.Terms,
    index: uint256,
    keys: DynArray[address, MAX_KEYS],
    quorum: uint256,
    signatures: DynArray[IAttesters.Signature, MAX_KEYS],
    payee: address,
):
    """
    @notice Pay for a submitted unit whose result enough attesters have signed.
    @param keys The job's attesters, as its judge_data commits to them.
    @param quorum How many of them must have signed.
    @param signatures At least so many, in strictly ascending order of their signers.
    @param payee Who gets the settler's pay; zero means msg.sender.
    """
    if terms.judge_data != convert(keccak256(abi_encode(keys, quorum)), uint256):
        reasons._refuse(reasons.ATTESTERS_OTHER_SET)
    # A set whose quorum is nobody would confirm whatever a node hands in.
    if quorum == 0 or len(signatures) < quorum:
        reasons._refuse(reasons.ATTESTERS_TOO_FEW)
    digest: bytes32 = self._digest(terms, index)
    last: uint256 = 0
    for signature: IAttesters.Signature in signatures:
        if signature.place >= len(keys):
            reasons._refuse(reasons.ATTESTERS_NO_KEY)
        if signature.s > MAX_S or (signature.v != 27 and signature.v != 28):
            reasons._refuse(reasons.ATTESTERS_MALFORMED)
        signer: address = ecrecover(digest, signature.v, signature.r, signature.s)
        if signer != keys[signature.place]:
            reasons._refuse(reasons.ATTESTERS_WRONG_SIGNER)
        # No signer at all is zero, which never ascends.
        if convert(signer, uint256) <= last:
            reasons._refuse(reasons.ATTESTERS_NO_ORDER)
        last = convert(signer, uint256)
    receiver: address = payee
    if payee == empty(address):
        receiver = msg.sender
    extcall JOBS.rule(terms, index, CONFIRM, 0, [0, 0, 0], receiver, skip_contract_check=True)


# ---- VIEWS ----


@view
@external
@reentrant
def takes(terms: IJobRegistry.Terms) -> bool:
    """
    @return Whether these terms can be judged here: unproven units are not paid, a set is named, and no work is done
            twice.
    """
    return (
        terms.limits & packing.LIMITS_PROVEN != 0
        and terms.judge_data != 0
        and (terms.limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK == 1
    )


@view
@external
@reentrant
def may_run(job_id: bytes32, terms: IJobRegistry.Terms, index: uint256, node: uint256) -> bool:
    """
    @return False: no job of replicas is taken here.
    """
    return False


# ---- INTERNAL ----


@view
@internal
def _digest(terms: IJobRegistry.Terms, index: uint256) -> bytes32:
    """
    @return What attesters sign of a unit's result as it stands.
    """
    job_id: bytes32 = keccak256(abi_encode(CHAIN_ID, JOBS.address, terms))
    header: uint256 = 0
    word: uint256 = 0
    result: uint256 = 0
    last_decline: uint256 = 0
    header, word, result, last_decline = staticcall JOBS.load(job_id, index, skip_contract_check=True)
    # A one-lease job has unit 0, however the caller names it.
    at: uint256 = 0
    if header & packing.HEADER_STATE_MASK == packing.STATE_HEADER:
        at = index
    fields: uint256 = ((word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK) | (
        ((word >> packing.UNIT_SECONDS_SHIFT) & packing.UNIT_SECONDS_MASK) << packing.FIELDS_SECONDS_SHIFT
    )
    signed: bytes32 = keccak256(abi_encode(RESULT_TYPE, job_id, at, terms.spec, result, fields))
    domain: bytes32 = keccak256(abi_encode(DOMAIN_TYPE, NAME, VERSION, chain.id, self))
    return keccak256(concat(b"\x19\x01", domain, signed))
