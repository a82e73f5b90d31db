# pragma version 0.4.3
"""
@title Reasons: the numbers that the contracts refuse with
@author Hearth
@license Apache-2.0
@notice Written by `make reasons` from hearth/protocol/reasons.py; SPEC section "Errors" says when each is given, and
        `Lens.reason` what it is in words.
"""

# What is added to a gate of NodeRegistry to make its reason.
GATE: constant(uint256) = 2000

JOBS_NOT_SUBMITTER: constant(uint256) = 1000
JOBS_PAUSED: constant(uint256) = 1001
JOBS_POLICY_OLD: constant(uint256) = 1002
JOBS_POSTED_BEFORE: constant(uint256) = 1003
JOBS_SPARE_BITS: constant(uint256) = 1004
JOBS_SPEC_ZERO: constant(uint256) = 1005
JOBS_RUNTIME_ZERO: constant(uint256) = 1006
JOBS_CEILING_ZERO: constant(uint256) = 1007
JOBS_SECONDS_RANGE: constant(uint256) = 1008
JOBS_DEADLINE_NEAR: constant(uint256) = 1009
JOBS_UNITS_RANGE: constant(uint256) = 1010
JOBS_CHUNK_RANGE: constant(uint256) = 1011
JOBS_NO_CHUNKS: constant(uint256) = 1012
JOBS_REPLICAS_RANGE: constant(uint256) = 1013
JOBS_REPLICAS_JUDGE: constant(uint256) = 1014
JOBS_QUORUM_RANGE: constant(uint256) = 1015
JOBS_WINDOW_RANGE: constant(uint256) = 1016
JOBS_CHALLENGE_RANGE: constant(uint256) = 1017
JOBS_CHECKPOINT_RANGE: constant(uint256) = 1018
JOBS_ATTEMPTS_RANGE: constant(uint256) = 1019
JOBS_BILLING_RANGE: constant(uint256) = 1020
JOBS_NO_CONFIDENTIAL: constant(uint256) = 1021
JOBS_NO_PREEMPTIBLE: constant(uint256) = 1022
JOBS_FLAG_UNKNOWN: constant(uint256) = 1023
JOBS_NO_JUDGE: constant(uint256) = 1024
JOBS_JUDGE_REFUSES: constant(uint256) = 1025
JOBS_PARENTS_HASH: constant(uint256) = 1026
JOBS_PRICE_LOW: constant(uint256) = 1027
JOBS_KEEPER_FEE_RANGE: constant(uint256) = 1028
JOBS_BOND_LARGE: constant(uint256) = 1029
JOBS_ESCROW_LARGE: constant(uint256) = 1030
JOBS_WRONG_VALUE: constant(uint256) = 1031
JOBS_TRANSFER_FAILED: constant(uint256) = 1032
JOBS_INDEX_RANGE: constant(uint256) = 1033
JOBS_INDEX_LATER: constant(uint256) = 1034
JOBS_JOB_CLOSED: constant(uint256) = 1035
JOBS_NOTHING_LEFT: constant(uint256) = 1036
JOBS_NOT_OPEN: constant(uint256) = 1037
JOBS_NOT_RUNNING: constant(uint256) = 1038
JOBS_NOT_CLOSING: constant(uint256) = 1039
JOBS_NOT_SUBMITTED: constant(uint256) = 1040
JOBS_CLAIMS_ONLY: constant(uint256) = 1041
JOBS_NO_CLAIMS: constant(uint256) = 1042
JOBS_PROPOSAL_LIVE: constant(uint256) = 1043
JOBS_NO_PROPOSAL: constant(uint256) = 1044
JOBS_WINDOW_OVER: constant(uint256) = 1045
JOBS_WINDOW_OPEN: constant(uint256) = 1046
JOBS_NOT_BETTER: constant(uint256) = 1047
JOBS_BEST_ALREADY: constant(uint256) = 1048
JOBS_EXCLUDED: constant(uint256) = 1049
JOBS_OWN_JOB: constant(uint256) = 1050
JOBS_NO_TIME: constant(uint256) = 1051
JOBS_NO_CHECKPOINT: constant(uint256) = 1052
JOBS_LATE: constant(uint256) = 1053
JOBS_OUTCOME_RANGE: constant(uint256) = 1054
JOBS_USED_RANGE: constant(uint256) = 1055
JOBS_RESULT_ZERO: constant(uint256) = 1056
JOBS_RECLAIMABLE: constant(uint256) = 1057
JOBS_NOT_RECLAIMABLE: constant(uint256) = 1058
JOBS_NOTICE_RUNNING: constant(uint256) = 1059
JOBS_NOT_EXPIRED: constant(uint256) = 1060
JOBS_NOTHING_DONE: constant(uint256) = 1061
JOBS_NOT_JUDGE: constant(uint256) = 1062
JOBS_NOT_DISPUTED: constant(uint256) = 1063
JOBS_DISPUTE_LATE: constant(uint256) = 1064
JOBS_CHAIN_CHANGED: constant(uint256) = 1065
JOBS_DECLINE_LATE: constant(uint256) = 1066
JOBS_SETTLE_EARLY: constant(uint256) = 1067
JOBS_TREASURY_ZERO: constant(uint256) = 1068
JOBS_VERDICT_RANGE: constant(uint256) = 1069
JOBS_DEADLINE_FAR: constant(uint256) = 1070
JOBS_PARENTS_RANGE: constant(uint256) = 1071
JOBS_NOT_BLOCKED: constant(uint256) = 1072
JOBS_PARENT_RUNS: constant(uint256) = 1073
JOBS_NOT_METERED: constant(uint256) = 1074
NODES_NOT_LIVE: constant(uint256) = 2001
NODES_NOT_ACTIVE: constant(uint256) = 2002
NODES_LEAVING: constant(uint256) = 2003
NODES_IN_QUARANTINE: constant(uint256) = 2004
NODES_NO_SLOT: constant(uint256) = 2005
NODES_STAKE_SHORT: constant(uint256) = 2006
NODES_RUNTIME_MISSING: constant(uint256) = 2007
NODES_TOO_FEW_GPUS: constant(uint256) = 2008
NODES_VRAM_SHORT: constant(uint256) = 2009
NODES_CORES_SHORT: constant(uint256) = 2010
NODES_RAM_SHORT: constant(uint256) = 2011
NODES_DISK_SHORT: constant(uint256) = 2012
NODES_OTHER_TIER: constant(uint256) = 2013
NODES_ZONE_BARRED: constant(uint256) = 2014
NODES_PRICE_HIGH: constant(uint256) = 2015
NODES_ON_PROBATION: constant(uint256) = 2016
NODES_JOBS_ZERO: constant(uint256) = 2100
NODES_DEAD_AFTER_RANGE: constant(uint256) = 2101
NODES_NOTICE_RANGE: constant(uint256) = 2102
NODES_UNBONDING_RANGE: constant(uint256) = 2103
NODES_MINIMUM_RANGE: constant(uint256) = 2104
NODES_REFERENCE_RANGE: constant(uint256) = 2105
NODES_FEE_RANGE: constant(uint256) = 2106
NODES_RATION_RANGE: constant(uint256) = 2107
NODES_PAUSED: constant(uint256) = 2108
NODES_OPERATOR_ZERO: constant(uint256) = 2109
NODES_STAKE_LARGE: constant(uint256) = 2110
NODES_NO_IDS: constant(uint256) = 2111
NODES_UNKNOWN: constant(uint256) = 2112
NODES_OTHER_OWNER: constant(uint256) = 2113
NODES_AMOUNT_ZERO: constant(uint256) = 2114
NODES_ASK_APART: constant(uint256) = 2115
NODES_BUSY: constant(uint256) = 2116
NODES_ASK_PENDING: constant(uint256) = 2117
NODES_NOT_OFFERED: constant(uint256) = 2118
NODES_NOT_EXITING: constant(uint256) = 2119
NODES_UNBONDING: constant(uint256) = 2120
NODES_BOND_LEFT: constant(uint256) = 2121
NODES_NOT_OPERATOR: constant(uint256) = 2122
NODES_NOTHING_DONE: constant(uint256) = 2123
NODES_WRONG_VALUE: constant(uint256) = 2124
NODES_TRANSFER_FAILED: constant(uint256) = 2125
NODES_SPARE_BITS: constant(uint256) = 2126
NODES_NO_SLOTS: constant(uint256) = 2127
NODES_NO_RUNTIME: constant(uint256) = 2128
NODES_ASK_RANGE: constant(uint256) = 2129
NODES_NOT_OWNER: constant(uint256) = 2130
NODES_NOT_JOBS: constant(uint256) = 2131
NODES_NOT_GOVERNOR: constant(uint256) = 2132
NODES_PAUSED_LATELY: constant(uint256) = 2133
NODES_SHARES_LARGE: constant(uint256) = 2134
ESCROW_NO_ASSET: constant(uint256) = 3000
ESCROW_TOO_LARGE: constant(uint256) = 3001
ESCROW_WRONG_VALUE: constant(uint256) = 3002
ESCROW_NOT_NATIVE: constant(uint256) = 3003
ESCROW_NOT_FUNDED: constant(uint256) = 3004
ESCROW_FOR_NOBODY: constant(uint256) = 3005
ESCROW_SHORT: constant(uint256) = 3006
ESCROW_BAD_RECEIVER: constant(uint256) = 3007
ESCROW_RECEIVER_REFUSED: constant(uint256) = 3008
ESCROW_TOKEN_REFUSED: constant(uint256) = 3009
LENS_NOTHING_DONE: constant(uint256) = 4000
RULES_NOT_GOVERNOR: constant(uint256) = 5000
RULES_POLICY_RANGE: constant(uint256) = 5001
RULES_NOT_OFFERED: constant(uint256) = 5002
RULES_PAUSED_LATELY: constant(uint256) = 5003
RULES_CHANGED_LATELY: constant(uint256) = 5004
ATTESTERS_OTHER_SET: constant(uint256) = 6000
ATTESTERS_TOO_FEW: constant(uint256) = 6001
ATTESTERS_NO_KEY: constant(uint256) = 6002
ATTESTERS_MALFORMED: constant(uint256) = 6003
ATTESTERS_WRONG_SIGNER: constant(uint256) = 6004
ATTESTERS_NO_ORDER: constant(uint256) = 6005
STEWARD_NOT_COUNCIL: constant(uint256) = 7000
STEWARD_NOT_SEATED: constant(uint256) = 7001
STEWARD_OP_RANGE: constant(uint256) = 7002
STEWARD_WORD_RANGE: constant(uint256) = 7003
STEWARD_QUEUED: constant(uint256) = 7004
STEWARD_UNKNOWN: constant(uint256) = 7005
STEWARD_DROPPED: constant(uint256) = 7006
STEWARD_EXECUTED: constant(uint256) = 7007
STEWARD_EARLY: constant(uint256) = 7008
STEWARD_LATE: constant(uint256) = 7009
STEWARD_NOTHING_NAMED: constant(uint256) = 7010
STEWARD_NOT_OFFERED: constant(uint256) = 7011
STEWARD_COUNCIL_ZERO: constant(uint256) = 7012
STEWARD_DELAY_RANGE: constant(uint256) = 7013


@pure
@internal
def _refuse(reason: uint256):
    """
    @dev Revert with the error `Refused(uint256)`, which people and programs read by the table.
    """
    raw_revert(abi_encode(reason, method_id=method_id("Refused(uint256)")))
