"""Why a contract refuses: the one table of numbers and texts.

A contract reverts with `Refused(uint256)`; whoever reads that finds the text here. From the same table
`python -m tools.reasons` writes the contracts' constants and what `Lens.reason` answers. Once a contract is deployed,
none of its numbers is ever given to another reason. Source: SPEC section "Errors".
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Reason(NamedTuple):
    """One reason: the name of its constant in contracts/reasons.vy, and its text of at most 32 ASCII characters."""

    name: str
    text: str


GATE: Final = 2000
"""What is added to a gate of NodeRegistry (`hearth.protocol.types.Gate`) to make its reason; gates have 2001..2099."""

REASONS: Final = {
    # JobRegistry
    1000: Reason("JOBS_NOT_SUBMITTER", "jobs: not the submitter"),
    1001: Reason("JOBS_PAUSED", "jobs: paused"),
    1002: Reason("JOBS_POLICY_OLD", "jobs: policy not current"),
    1003: Reason("JOBS_POSTED_BEFORE", "jobs: posted before"),
    1004: Reason("JOBS_SPARE_BITS", "jobs: spare bits set"),
    1005: Reason("JOBS_SPEC_ZERO", "jobs: spec zero"),
    1006: Reason("JOBS_RUNTIME_ZERO", "jobs: no runtime asked"),
    1007: Reason("JOBS_CEILING_ZERO", "jobs: ceiling zero"),
    1008: Reason("JOBS_SECONDS_RANGE", "jobs: max_seconds out of range"),
    1009: Reason("JOBS_DEADLINE_NEAR", "jobs: deadline too near"),
    1010: Reason("JOBS_UNITS_RANGE", "jobs: units out of range"),
    1011: Reason("JOBS_CHUNK_RANGE", "jobs: chunk out of range"),
    1012: Reason("JOBS_NO_CHUNKS", "jobs: no chunks yet"),
    1013: Reason("JOBS_REPLICAS_RANGE", "jobs: replicas out of range"),
    1014: Reason("JOBS_REPLICAS_JUDGE", "jobs: replicas need a judge"),
    1015: Reason("JOBS_QUORUM_RANGE", "jobs: quorum out of range"),
    1016: Reason("JOBS_WINDOW_RANGE", "jobs: match_window out of range"),
    1017: Reason("JOBS_CHALLENGE_RANGE", "jobs: challenge_window range"),
    1018: Reason("JOBS_CHECKPOINT_RANGE", "jobs: checkpoint out of range"),
    1019: Reason("JOBS_ATTEMPTS_RANGE", "jobs: attempts out of range"),
    1020: Reason("JOBS_BILLING_RANGE", "jobs: billing out of range"),
    1021: Reason("JOBS_NO_CONFIDENTIAL", "jobs: no confidential jobs yet"),
    1022: Reason("JOBS_NO_PREEMPTIBLE", "jobs: no preemptible jobs yet"),
    1023: Reason("JOBS_FLAG_UNKNOWN", "jobs: unknown flag"),
    1024: Reason("JOBS_NO_JUDGE", "jobs: no judge named"),
    1025: Reason("JOBS_JUDGE_REFUSES", "jobs: refused by the judge"),
    1026: Reason("JOBS_PARENTS_HASH", "jobs: parents not as hashed"),
    1027: Reason("JOBS_PRICE_LOW", "jobs: price below minimum"),
    1028: Reason("JOBS_KEEPER_FEE_RANGE", "jobs: keeper_fee out of range"),
    1029: Reason("JOBS_BOND_LARGE", "jobs: bond too large"),
    1030: Reason("JOBS_ESCROW_LARGE", "jobs: escrow too large"),
    1031: Reason("JOBS_WRONG_VALUE", "jobs: wrong value sent"),
    1032: Reason("JOBS_TRANSFER_FAILED", "jobs: transfer failed"),
    1033: Reason("JOBS_INDEX_RANGE", "jobs: no such unit"),
    1034: Reason("JOBS_INDEX_LATER", "jobs: not the next unit"),
    1035: Reason("JOBS_JOB_CLOSED", "jobs: closed"),
    1036: Reason("JOBS_NOTHING_LEFT", "jobs: nothing untouched"),
    1037: Reason("JOBS_NOT_OPEN", "jobs: not open"),
    1038: Reason("JOBS_NOT_RUNNING", "jobs: not running"),
    1039: Reason("JOBS_NOT_CLOSING", "jobs: not closing"),
    1040: Reason("JOBS_NOT_SUBMITTED", "jobs: not submitted"),
    1041: Reason("JOBS_CLAIMS_ONLY", "jobs: takes claims only"),
    1042: Reason("JOBS_NO_CLAIMS", "jobs: takes no claims yet"),
    1043: Reason("JOBS_PROPOSAL_LIVE", "jobs: a proposal is live"),
    1044: Reason("JOBS_NO_PROPOSAL", "jobs: no proposal"),
    1045: Reason("JOBS_WINDOW_OVER", "jobs: window over"),
    1046: Reason("JOBS_WINDOW_OPEN", "jobs: window still open"),
    1047: Reason("JOBS_NOT_BETTER", "jobs: not a better key"),
    1048: Reason("JOBS_BEST_ALREADY", "jobs: best already"),
    1049: Reason("JOBS_EXCLUDED", "jobs: node excluded"),
    1050: Reason("JOBS_OWN_JOB", "jobs: operator is the submitter"),
    1051: Reason("JOBS_NO_TIME", "jobs: no time left"),
    1052: Reason("JOBS_NO_CHECKPOINT", "jobs: no such checkpoint"),
    1053: Reason("JOBS_LATE", "jobs: too late to submit"),
    1054: Reason("JOBS_OUTCOME_RANGE", "jobs: outcome out of range"),
    1055: Reason("JOBS_USED_RANGE", "jobs: used out of range"),
    1056: Reason("JOBS_RESULT_ZERO", "jobs: result zero"),
    1057: Reason("JOBS_RECLAIMABLE", "jobs: reclaimable"),
    1058: Reason("JOBS_NOT_RECLAIMABLE", "jobs: not reclaimable yet"),
    1059: Reason("JOBS_NOTICE_RUNNING", "jobs: notice still running"),
    1060: Reason("JOBS_NOT_EXPIRED", "jobs: not expired"),
    1061: Reason("JOBS_NOTHING_DONE", "jobs: nothing to do"),
    1062: Reason("JOBS_NOT_JUDGE", "jobs: not the judge"),
    1063: Reason("JOBS_NOT_DISPUTED", "jobs: not disputed"),
    1064: Reason("JOBS_DISPUTE_LATE", "jobs: too late to dispute"),
    1065: Reason("JOBS_CHAIN_CHANGED", "jobs: chain id has changed"),
    1066: Reason("JOBS_DECLINE_LATE", "jobs: too late to decline"),
    1067: Reason("JOBS_SETTLE_EARLY", "jobs: too early to settle"),
    1068: Reason("JOBS_TREASURY_ZERO", "jobs: treasury zero"),
    1069: Reason("JOBS_VERDICT_RANGE", "jobs: verdict out of range"),
    1070: Reason("JOBS_DEADLINE_FAR", "jobs: deadline too far"),
    1071: Reason("JOBS_PARENTS_RANGE", "jobs: parents out of range"),
    1072: Reason("JOBS_NOT_BLOCKED", "jobs: not blocked"),
    1073: Reason("JOBS_PARENT_RUNS", "jobs: a parent has not ended"),
    1074: Reason("JOBS_NOT_METERED", "jobs: not metered"),
    # NodeRegistry: its gates
    GATE + 1: Reason("NODES_NOT_LIVE", "nodes: not live"),
    GATE + 2: Reason("NODES_NOT_ACTIVE", "nodes: stake below minimum"),
    GATE + 3: Reason("NODES_LEAVING", "nodes: exiting"),
    GATE + 4: Reason("NODES_IN_QUARANTINE", "nodes: quarantined"),
    GATE + 5: Reason("NODES_NO_SLOT", "nodes: no free slot"),
    GATE + 6: Reason("NODES_STAKE_SHORT", "nodes: free stake short"),
    GATE + 7: Reason("NODES_RUNTIME_MISSING", "nodes: runtime missing"),
    GATE + 8: Reason("NODES_TOO_FEW_GPUS", "nodes: too few GPUs"),
    GATE + 9: Reason("NODES_VRAM_SHORT", "nodes: VRAM short"),
    GATE + 10: Reason("NODES_CORES_SHORT", "nodes: cores short"),
    GATE + 11: Reason("NODES_RAM_SHORT", "nodes: RAM short"),
    GATE + 12: Reason("NODES_DISK_SHORT", "nodes: disk short"),
    GATE + 13: Reason("NODES_TIER_LOW", "nodes: GPU tier too low"),
    GATE + 14: Reason("NODES_ZONE_BARRED", "nodes: zone not allowed"),
    GATE + 15: Reason("NODES_PRICE_HIGH", "nodes: ask above ceiling"),
    GATE + 16: Reason("NODES_ON_PROBATION", "nodes: on probation"),
    # NodeRegistry: all else
    2100: Reason("NODES_JOBS_ZERO", "nodes: jobs zero"),
    2101: Reason("NODES_DEAD_AFTER_RANGE", "nodes: dead_after out of range"),
    2102: Reason("NODES_NOTICE_RANGE", "nodes: ask_notice out of range"),
    2103: Reason("NODES_UNBONDING_RANGE", "nodes: unbonding out of range"),
    2104: Reason("NODES_MINIMUM_RANGE", "nodes: minimum out of range"),
    2105: Reason("NODES_REFERENCE_RANGE", "nodes: reference out of range"),
    2106: Reason("NODES_FEE_RANGE", "nodes: fee above minimum"),
    2107: Reason("NODES_RATION_RANGE", "nodes: ration out of range"),
    2108: Reason("NODES_PAUSED", "nodes: paused"),
    2109: Reason("NODES_OPERATOR_ZERO", "nodes: operator zero"),
    2110: Reason("NODES_STAKE_LARGE", "nodes: stake too large"),
    2111: Reason("NODES_NO_IDS", "nodes: no ids left"),
    2112: Reason("NODES_UNKNOWN", "nodes: unknown node"),
    2113: Reason("NODES_OTHER_OWNER", "nodes: node of another owner"),
    2114: Reason("NODES_AMOUNT_ZERO", "nodes: amount zero"),
    2115: Reason("NODES_ASK_APART", "nodes: ask has its own call"),
    2116: Reason("NODES_BUSY", "nodes: busy"),
    2117: Reason("NODES_ASK_PENDING", "nodes: an ask is pending"),
    2118: Reason("NODES_NOT_OFFERED", "nodes: not offered to you"),
    2119: Reason("NODES_NOT_EXITING", "nodes: not exiting"),
    2120: Reason("NODES_UNBONDING", "nodes: still unbonding"),
    2121: Reason("NODES_BOND_LEFT", "nodes: bond outstanding"),
    2122: Reason("NODES_NOT_OPERATOR", "nodes: not the operator"),
    2123: Reason("NODES_NOTHING_DONE", "nodes: nothing to do"),
    2124: Reason("NODES_WRONG_VALUE", "nodes: wrong value sent"),
    2125: Reason("NODES_TRANSFER_FAILED", "nodes: transfer failed"),
    2126: Reason("NODES_SPARE_BITS", "nodes: spare bits set"),
    2127: Reason("NODES_NO_SLOTS", "nodes: no slots"),
    2128: Reason("NODES_NO_RUNTIME", "nodes: no runtime"),
    2129: Reason("NODES_ASK_RANGE", "nodes: ask out of range"),
    2130: Reason("NODES_NOT_OWNER", "nodes: not the owner"),
    2131: Reason("NODES_NOT_JOBS", "nodes: not the job registry"),
    2132: Reason("NODES_NOT_GOVERNOR", "nodes: not the governor"),
    2133: Reason("NODES_PAUSED_LATELY", "nodes: paused lately"),
    2134: Reason("NODES_SHARES_LARGE", "nodes: shares too large"),
    # Escrow
    3000: Reason("ESCROW_NO_ASSET", "escrow: no such asset"),
    3001: Reason("ESCROW_TOO_LARGE", "escrow: too large"),
    3002: Reason("ESCROW_WRONG_VALUE", "escrow: wrong value"),
    3003: Reason("ESCROW_NOT_NATIVE", "escrow: not native"),
    3004: Reason("ESCROW_NOT_FUNDED", "escrow: not funded"),
    3005: Reason("ESCROW_FOR_NOBODY", "escrow: share for nobody"),
    3006: Reason("ESCROW_SHORT", "escrow: short"),
    3007: Reason("ESCROW_BAD_RECEIVER", "escrow: bad receiver"),
    3008: Reason("ESCROW_RECEIVER_REFUSED", "escrow: receiver refused"),
    3009: Reason("ESCROW_TOKEN_REFUSED", "escrow: token refused"),
    # Lens
    4000: Reason("LENS_NOTHING_DONE", "lens: nothing to do"),
    # Rules: what is no matter of a job's terms, whose reasons are those of JobRegistry
    5000: Reason("RULES_NOT_GOVERNOR", "rules: not the governor"),
    5001: Reason("RULES_POLICY_RANGE", "rules: policy out of range"),
    5002: Reason("RULES_NOT_OFFERED", "rules: not offered to you"),
    5003: Reason("RULES_PAUSED_LATELY", "rules: paused lately"),
    5004: Reason("RULES_CHANGED_LATELY", "rules: changed lately"),
    # Attesters
    6000: Reason("ATTESTERS_OTHER_SET", "attesters: wrong keys or quorum"),
    6001: Reason("ATTESTERS_TOO_FEW", "attesters: too few signatures"),
    6002: Reason("ATTESTERS_NO_KEY", "attesters: no such key"),
    6003: Reason("ATTESTERS_MALFORMED", "attesters: malformed signature"),
    6004: Reason("ATTESTERS_WRONG_SIGNER", "attesters: wrong signer"),
    6005: Reason("ATTESTERS_NO_ORDER", "attesters: not in order"),
}
"""Number -> reason. Numbers ascend, and each contract has a thousand of its own."""


def text_of(number: int) -> str:
    """Return a reason's text; of a number that the table does not have, which another version may, that number."""
    reason = REASONS.get(number)
    return reason.text if reason else f"refused with reason {number}"
