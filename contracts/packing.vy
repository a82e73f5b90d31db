# pragma version 0.4.3
"""
@title Bit layouts of every packed word
@author Hearth
@license Apache-2.0
@notice Written by `make lanes` from hearth/protocol/words.py; SPEC section "Words" has the same tables. A lane's shift
        and its mask belong together: tools/check_vyper.py holds every use of them against the table.
"""

# ---- needs: what a job asks of one slot ----
NEEDS_TIER_SHIFT: constant(uint256) = 0  # GPU tier at least
NEEDS_TIER_MASK: constant(uint256) = 1023  # 2**10 - 1
NEEDS_TIER_LANE: constant(uint256) = 1023 << 0
NEEDS_GUARD_TIER: constant(uint256) = 2**10
NEEDS_GPU_COUNT_SHIFT: constant(uint256) = 11  # GPUs at least
NEEDS_GPU_COUNT_MASK: constant(uint256) = 63  # 2**6 - 1
NEEDS_GPU_COUNT_LANE: constant(uint256) = 63 << 11
NEEDS_GUARD_GPU_COUNT: constant(uint256) = 2**17
NEEDS_VRAM_GIB_SHIFT: constant(uint256) = 18  # GiB, of each GPU
NEEDS_VRAM_GIB_MASK: constant(uint256) = 1023  # 2**10 - 1
NEEDS_VRAM_GIB_LANE: constant(uint256) = 1023 << 18
NEEDS_GUARD_VRAM_GIB: constant(uint256) = 2**28
NEEDS_CORES_SHIFT: constant(uint256) = 29
NEEDS_CORES_MASK: constant(uint256) = 1023  # 2**10 - 1
NEEDS_CORES_LANE: constant(uint256) = 1023 << 29
NEEDS_GUARD_CORES: constant(uint256) = 2**39
NEEDS_RAM_GIB_SHIFT: constant(uint256) = 40  # GiB
NEEDS_RAM_GIB_MASK: constant(uint256) = 16383  # 2**14 - 1
NEEDS_RAM_GIB_LANE: constant(uint256) = 16383 << 40
NEEDS_GUARD_RAM_GIB: constant(uint256) = 2**54
NEEDS_DISK_GIB_SHIFT: constant(uint256) = 55  # GiB
NEEDS_DISK_GIB_MASK: constant(uint256) = 131071  # 2**17 - 1
NEEDS_DISK_GIB_LANE: constant(uint256) = 131071 << 55
NEEDS_GUARD_DISK_GIB: constant(uint256) = 2**72
NEEDS_RUNTIMES_SHIFT: constant(uint256) = 73  # all of
NEEDS_RUNTIMES_MASK: constant(uint256) = 4095  # 2**12 - 1
NEEDS_RUNTIMES_LANE: constant(uint256) = 4095 << 73
NEEDS_WASM: constant(uint256) = 2**73
NEEDS_DOCKER: constant(uint256) = 2**74
NEEDS_NVIDIA: constant(uint256) = 2**75
NEEDS_JUROR: constant(uint256) = 2**76
NEEDS_AMD: constant(uint256) = 2**77
NEEDS_ZONE_MASK_SHIFT: constant(uint256) = 85  # one bit per allowed zone, 0 = anywhere
NEEDS_ZONE_MASK_MASK: constant(uint256) = 65535  # 2**16 - 1
NEEDS_ZONE_MASK_LANE: constant(uint256) = 65535 << 85
NEEDS_HOME_SHIFT: constant(uint256) = 101  # zone that distances are measured from; counts where the mask is not 0
NEEDS_HOME_MASK: constant(uint256) = 15  # 2**4 - 1
NEEDS_HOME_LANE: constant(uint256) = 15 << 101
NEEDS_EXACT: constant(uint256) = 2**105  # GPUs of this very tier, and of no higher one
NEEDS_GUARDS: constant(uint256) = 4722384497818179077120
NEEDS_SIZES: constant(uint256) = 4722348467921111350271  # the lanes below the guards
NEEDS_BITS: constant(uint256) = 106

# ---- offer: one slot of a node ----
OFFER_TIER_SHIFT: constant(uint256) = 0  # GPU tier
OFFER_TIER_MASK: constant(uint256) = 1023  # 2**10 - 1
OFFER_TIER_LANE: constant(uint256) = 1023 << 0
OFFER_GUARD_TIER: constant(uint256) = 2**10
OFFER_GPU_COUNT_SHIFT: constant(uint256) = 11  # GPUs
OFFER_GPU_COUNT_MASK: constant(uint256) = 63  # 2**6 - 1
OFFER_GPU_COUNT_LANE: constant(uint256) = 63 << 11
OFFER_GUARD_GPU_COUNT: constant(uint256) = 2**17
OFFER_VRAM_GIB_SHIFT: constant(uint256) = 18  # GiB, of each GPU
OFFER_VRAM_GIB_MASK: constant(uint256) = 1023  # 2**10 - 1
OFFER_VRAM_GIB_LANE: constant(uint256) = 1023 << 18
OFFER_GUARD_VRAM_GIB: constant(uint256) = 2**28
OFFER_CORES_SHIFT: constant(uint256) = 29
OFFER_CORES_MASK: constant(uint256) = 1023  # 2**10 - 1
OFFER_CORES_LANE: constant(uint256) = 1023 << 29
OFFER_GUARD_CORES: constant(uint256) = 2**39
OFFER_RAM_GIB_SHIFT: constant(uint256) = 40  # GiB
OFFER_RAM_GIB_MASK: constant(uint256) = 16383  # 2**14 - 1
OFFER_RAM_GIB_LANE: constant(uint256) = 16383 << 40
OFFER_GUARD_RAM_GIB: constant(uint256) = 2**54
OFFER_DISK_GIB_SHIFT: constant(uint256) = 55  # GiB
OFFER_DISK_GIB_MASK: constant(uint256) = 131071  # 2**17 - 1
OFFER_DISK_GIB_LANE: constant(uint256) = 131071 << 55
OFFER_GUARD_DISK_GIB: constant(uint256) = 2**72
OFFER_RUNTIMES_SHIFT: constant(uint256) = 73  # any of
OFFER_RUNTIMES_MASK: constant(uint256) = 4095  # 2**12 - 1
OFFER_RUNTIMES_LANE: constant(uint256) = 4095 << 73
OFFER_WASM: constant(uint256) = 2**73
OFFER_DOCKER: constant(uint256) = 2**74
OFFER_NVIDIA: constant(uint256) = 2**75
OFFER_JUROR: constant(uint256) = 2**76
OFFER_AMD: constant(uint256) = 2**77
OFFER_ZONE_SHIFT: constant(uint256) = 85  # 0..15, self-declared
OFFER_ZONE_MASK: constant(uint256) = 15  # 2**4 - 1
OFFER_ZONE_LANE: constant(uint256) = 15 << 85
OFFER_SLOTS_SHIFT: constant(uint256) = 89  # 1..63 identical slots
OFFER_SLOTS_MASK: constant(uint256) = 63  # 2**6 - 1
OFFER_SLOTS_LANE: constant(uint256) = 63 << 89
OFFER_PENDING: constant(uint256) = 2**95  # a newer ask waits in next_ask
OFFER_ASK_SHIFT: constant(uint256) = 96  # base units x 1e6 per second
OFFER_ASK_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
OFFER_ASK_LANE: constant(uint256) = 1208925819614629174706175 << 96
OFFER_GUARDS: constant(uint256) = 4722384497818179077120
OFFER_SIZES: constant(uint256) = 4722348467921111350271  # the lanes below the guards
OFFER_BITS: constant(uint256) = 176

# ---- next_ask: a node's newer ask ----
NEXT_ASK_ASK_SHIFT: constant(uint256) = 0  # base units x 1e6 per second
NEXT_ASK_ASK_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
NEXT_ASK_ASK_LANE: constant(uint256) = 1208925819614629174706175 << 0
NEXT_ASK_AT_SHIFT: constant(uint256) = 80  # seconds, from which it is in force
NEXT_ASK_AT_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
NEXT_ASK_AT_LANE: constant(uint256) = 1099511627775 << 80
NEXT_ASK_BITS: constant(uint256) = 120

# ---- owner: a node's record of owner and stake ----
OWNER_ACCOUNT_SHIFT: constant(uint256) = 0  # the owner
OWNER_ACCOUNT_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
OWNER_ACCOUNT_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
OWNER_STAKE_SHIFT: constant(uint256) = 160  # base units, locked in Escrow
OWNER_STAKE_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
OWNER_STAKE_LANE: constant(uint256) = 1208925819614629174706175 << 160
OWNER_BITS: constant(uint256) = 240

# ---- operator: a node's record of operator and exit ----
OPERATOR_ACCOUNT_SHIFT: constant(uint256) = 0  # the operator
OPERATOR_ACCOUNT_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
OPERATOR_ACCOUNT_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
OPERATOR_EXIT_AT_SHIFT: constant(uint256) = 160  # seconds, from which an exit may finish, 0 for none begun
OPERATOR_EXIT_AT_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
OPERATOR_EXIT_AT_LANE: constant(uint256) = 1099511627775 << 160
OPERATOR_BITS: constant(uint256) = 200

# ---- hot: the node state, which changes with leases and beats ----
HOT_BEAT_SHIFT: constant(uint256) = 0  # seconds, of the last beat
HOT_BEAT_MASK: constant(uint256) = 4294967295  # 2**32 - 1
HOT_BEAT_LANE: constant(uint256) = 4294967295 << 0
HOT_BUSY_SHIFT: constant(uint256) = 32  # slots taken
HOT_BUSY_MASK: constant(uint256) = 63  # 2**6 - 1
HOT_BUSY_LANE: constant(uint256) = 63 << 32
HOT_BOND_SHIFT: constant(uint256) = 38  # base units, reserved by leases
HOT_BOND_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
HOT_BOND_LANE: constant(uint256) = 1208925819614629174706175 << 38
HOT_R_SHIFT: constant(uint256) = 118  # 1/2^20, successes
HOT_R_MASK: constant(uint256) = 67108863  # 2**26 - 1
HOT_R_LANE: constant(uint256) = 67108863 << 118
HOT_S_SHIFT: constant(uint256) = 144  # 1/2^20, failures
HOT_S_MASK: constant(uint256) = 67108863  # 2**26 - 1
HOT_S_LANE: constant(uint256) = 67108863 << 144
HOT_REP_TIME_SHIFT: constant(uint256) = 170  # seconds, until which r and s have decayed
HOT_REP_TIME_MASK: constant(uint256) = 4294967295  # 2**32 - 1
HOT_REP_TIME_LANE: constant(uint256) = 4294967295 << 170
HOT_CUSUM_SHIFT: constant(uint256) = 202  # 1/16, the breaker's sum
HOT_CUSUM_MASK: constant(uint256) = 255  # 2**8 - 1
HOT_CUSUM_LANE: constant(uint256) = 255 << 202
HOT_QUARANTINE_SHIFT: constant(uint256) = 210  # seconds, its end
HOT_QUARANTINE_MASK: constant(uint256) = 4294967295  # 2**32 - 1
HOT_QUARANTINE_LANE: constant(uint256) = 4294967295 << 210
HOT_TRIPS_SHIFT: constant(uint256) = 242  # how often the breaker tripped
HOT_TRIPS_MASK: constant(uint256) = 15  # 2**4 - 1
HOT_TRIPS_LANE: constant(uint256) = 15 << 242
HOT_STATUS_SHIFT: constant(uint256) = 246
HOT_STATUS_MASK: constant(uint256) = 7  # 2**3 - 1
HOT_STATUS_LANE: constant(uint256) = 7 << 246
HOT_LAPSED: constant(uint256) = 2**246
HOT_EXITING: constant(uint256) = 2**247
HOT_SLASHED: constant(uint256) = 2**248
HOT_SEASONED: constant(uint256) = 2**249  # off probation, for ever
HOT_COUNT_SHIFT: constant(uint256) = 250  # full successes modulo 32
HOT_COUNT_MASK: constant(uint256) = 31  # 2**5 - 1
HOT_COUNT_LANE: constant(uint256) = 31 << 250
HOT_SILENT: constant(uint256) = 2**255  # a reclaim has counted the silence since the last beat

# ---- unit: a lease ----
UNIT_STATE_SHIFT: constant(uint256) = 0
UNIT_STATE_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_STATE_LANE: constant(uint256) = 15 << 0
STATE_NONE: constant(uint256) = 0
STATE_BLOCKED: constant(uint256) = 1
STATE_OPEN: constant(uint256) = 2
STATE_RUNNING: constant(uint256) = 3
STATE_CLOSING: constant(uint256) = 4
STATE_SUBMITTED: constant(uint256) = 5
STATE_DISPUTED: constant(uint256) = 6
STATE_SETTLED: constant(uint256) = 7
STATE_REFUNDED: constant(uint256) = 8
STATE_CANCELLED: constant(uint256) = 9
STATE_EXPIRED: constant(uint256) = 10
UNIT_OUTCOME_SHIFT: constant(uint256) = 4
UNIT_OUTCOME_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_OUTCOME_LANE: constant(uint256) = 15 << 4
OUTCOME_NONE: constant(uint256) = 0
OUTCOME_OK: constant(uint256) = 1
OUTCOME_EXIT: constant(uint256) = 2
OUTCOME_TRAP: constant(uint256) = 3
OUTCOME_OUT_OF_MEMORY: constant(uint256) = 4
OUTCOME_TIMEOUT: constant(uint256) = 5
OUTCOME_BAD_INPUT: constant(uint256) = 6
OUTCOME_BAD_KEY: constant(uint256) = 7
OUTCOME_IMAGE_MISSING: constant(uint256) = 8
UNIT_NODE_SHIFT: constant(uint256) = 8
UNIT_NODE_MASK: constant(uint256) = 4294967295  # 2**32 - 1
UNIT_NODE_LANE: constant(uint256) = 4294967295 << 8
UNIT_RATE_SHIFT: constant(uint256) = 40  # base units x 1e6 per second
UNIT_RATE_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
UNIT_RATE_LANE: constant(uint256) = 1208925819614629174706175 << 40
UNIT_STARTED_SHIFT: constant(uint256) = 120  # seconds
UNIT_STARTED_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
UNIT_STARTED_LANE: constant(uint256) = 1099511627775 << 120
UNIT_MARK_SHIFT: constant(uint256) = 160  # seconds
UNIT_MARK_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
UNIT_MARK_LANE: constant(uint256) = 1099511627775 << 160
UNIT_SECONDS_SHIFT: constant(uint256) = 200  # seconds, of fuel, from submit on; of a metered unit those of its top-ups
UNIT_SECONDS_MASK: constant(uint256) = 16777215  # 2**24 - 1
UNIT_SECONDS_LANE: constant(uint256) = 16777215 << 200
UNIT_ATTEMPTS_SHIFT: constant(uint256) = 224  # leases begun
UNIT_ATTEMPTS_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_ATTEMPTS_LANE: constant(uint256) = 15 << 224
UNIT_TIPS_SHIFT: constant(uint256) = 228  # tips paid
UNIT_TIPS_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_TIPS_LANE: constant(uint256) = 15 << 228
UNIT_LAPSES_SHIFT: constant(uint256) = 232  # proposals dropped since it opened
UNIT_LAPSES_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_LAPSES_LANE: constant(uint256) = 15 << 232
UNIT_FLAGS_SHIFT: constant(uint256) = 236
UNIT_FLAGS_MASK: constant(uint256) = 255  # 2**8 - 1
UNIT_FLAGS_LANE: constant(uint256) = 255 << 236
UNIT_FUEL: constant(uint256) = 2**236
UNIT_STORE: constant(uint256) = 2**237
UNIT_KEYED: constant(uint256) = 2**238
UNIT_NOTICED: constant(uint256) = 2**239
UNIT_ACCUSED: constant(uint256) = 2**240
UNIT_ARRAY: constant(uint256) = 2**241
UNIT_ACKED: constant(uint256) = 2**242
UNIT_FRESH: constant(uint256) = 2**243
UNIT_RESUME_SHIFT: constant(uint256) = 244  # the attempt whose checkpoint this one resumed from, 0 none
UNIT_RESUME_MASK: constant(uint256) = 15  # 2**4 - 1
UNIT_RESUME_LANE: constant(uint256) = 15 << 244
UNIT_RESUMABLE: constant(uint256) = 2**248  # its leases may checkpoint
UNIT_BITS: constant(uint256) = 249

# ---- header: an array ----
HEADER_STATE_SHIFT: constant(uint256) = 0  # which no unit has
HEADER_STATE_MASK: constant(uint256) = 15  # 2**4 - 1
HEADER_STATE_LANE: constant(uint256) = 15 << 0
STATE_HEADER: constant(uint256) = 15
HEADER_CLOSED: constant(uint256) = 2**4  # by cancel or expire of ALL, or by unlock
HEADER_WAITING: constant(uint256) = 2**5  # for its parents' ends
HEADER_TOUCHED_SHIFT: constant(uint256) = 8  # leases opened, in order
HEADER_TOUCHED_MASK: constant(uint256) = 16777215  # 2**24 - 1
HEADER_TOUCHED_LANE: constant(uint256) = 16777215 << 8
HEADER_DONE_SHIFT: constant(uint256) = 32  # ended SETTLED with outcome ok
HEADER_DONE_MASK: constant(uint256) = 16777215  # 2**24 - 1
HEADER_DONE_LANE: constant(uint256) = 16777215 << 32
HEADER_FAILED_SHIFT: constant(uint256) = 56  # touched and ended otherwise
HEADER_FAILED_MASK: constant(uint256) = 16777215  # 2**24 - 1
HEADER_FAILED_LANE: constant(uint256) = 16777215 << 56
HEADER_OPENED_SHIFT: constant(uint256) = 80  # seconds, of the post, or of unlock
HEADER_OPENED_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
HEADER_OPENED_LANE: constant(uint256) = 1099511627775 << 80
HEADER_LEASES_SHIFT: constant(uint256) = 120  # of the terms: whoever waits for the array does not know them
HEADER_LEASES_MASK: constant(uint256) = 16777215  # 2**24 - 1
HEADER_LEASES_LANE: constant(uint256) = 16777215 << 120
HEADER_QUORUM_SHIFT: constant(uint256) = 144  # of the terms, where its leases are replicas of one unit; else 0
HEADER_QUORUM_MASK: constant(uint256) = 15  # 2**4 - 1
HEADER_QUORUM_LANE: constant(uint256) = 15 << 144
HEADER_BITS: constant(uint256) = 148

# ---- best: the best proposal of an OPEN unit ----
BEST_PAYEE_SHIFT: constant(uint256) = 0  # who is tipped
BEST_PAYEE_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
BEST_PAYEE_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
BEST_NODE_SHIFT: constant(uint256) = 160
BEST_NODE_MASK: constant(uint256) = 4294967295  # 2**32 - 1
BEST_NODE_LANE: constant(uint256) = 4294967295 << 160
BEST_KEY_SHIFT: constant(uint256) = 192  # see Key
BEST_KEY_MASK: constant(uint256) = 281474976710655  # 2**48 - 1
BEST_KEY_LANE: constant(uint256) = 281474976710655 << 192
BEST_EXTENSIONS_SHIFT: constant(uint256) = 240  # 0..3
BEST_EXTENSIONS_MASK: constant(uint256) = 15  # 2**4 - 1
BEST_EXTENSIONS_LANE: constant(uint256) = 15 << 240
BEST_BITS: constant(uint256) = 244

# ---- accused: the last decline of a unit that re-opened; counts with the flag ACCUSED ----
ACCUSED_NODE_SHIFT: constant(uint256) = 0
ACCUSED_NODE_MASK: constant(uint256) = 4294967295  # 2**32 - 1
ACCUSED_NODE_LANE: constant(uint256) = 4294967295 << 0
ACCUSED_AT_SHIFT: constant(uint256) = 32  # seconds, of the decline
ACCUSED_AT_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
ACCUSED_AT_LANE: constant(uint256) = 1099511627775 << 32
ACCUSED_BITS: constant(uint256) = 72

# ---- key: what a proposal is ranked by ----
KEY_LOT_SHIFT: constant(uint256) = 0  # of the seed and the node
KEY_LOT_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
KEY_LOT_LANE: constant(uint256) = 1099511627775 << 0
KEY_BUCKET_SHIFT: constant(uint256) = 40  # score // 500,000
KEY_BUCKET_MASK: constant(uint256) = 255  # 2**8 - 1
KEY_BUCKET_LANE: constant(uint256) = 255 << 40
KEY_BITS: constant(uint256) = 48

# ---- kept: the last checkpoint of a lost lease, kept for the next ----
KEPT_SECONDS_SHIFT: constant(uint256) = 0  # seconds, from its start to the checkpoint
KEPT_SECONDS_MASK: constant(uint256) = 16777215  # 2**24 - 1
KEPT_SECONDS_LANE: constant(uint256) = 16777215 << 0
KEPT_RATE_SHIFT: constant(uint256) = 24  # base units x 1e6 per second
KEPT_RATE_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
KEPT_RATE_LANE: constant(uint256) = 1208925819614629174706175 << 24
KEPT_NODE_SHIFT: constant(uint256) = 104
KEPT_NODE_MASK: constant(uint256) = 4294967295  # 2**32 - 1
KEPT_NODE_LANE: constant(uint256) = 4294967295 << 104
KEPT_RESUME_SHIFT: constant(uint256) = 136  # the attempt that it resumed from itself, 0 none
KEPT_RESUME_MASK: constant(uint256) = 15  # 2**4 - 1
KEPT_RESUME_LANE: constant(uint256) = 15 << 136
KEPT_BEFORE_SHIFT: constant(uint256) = 140  # seconds, of the checkpoints that it was made of
KEPT_BEFORE_MASK: constant(uint256) = 268435455  # 2**28 - 1
KEPT_BEFORE_LANE: constant(uint256) = 268435455 << 140
KEPT_BITS: constant(uint256) = 168

# ---- posted: of JobRegistry: where the list of all jobs ends ----
POSTED_BLOCK_SHIFT: constant(uint256) = 0  # of the last post: its JobPosted names the block of the one before it
POSTED_BLOCK_MASK: constant(uint256) = 18446744073709551615  # 2**64 - 1
POSTED_BLOCK_LANE: constant(uint256) = 18446744073709551615 << 0
POSTED_COUNT_SHIFT: constant(uint256) = 64  # jobs posted
POSTED_COUNT_MASK: constant(uint256) = 18446744073709551615  # 2**64 - 1
POSTED_COUNT_LANE: constant(uint256) = 18446744073709551615 << 64
POSTED_BITS: constant(uint256) = 128

# ---- share: a part of Escrow's split ----
SHARE_ACCOUNT_SHIFT: constant(uint256) = 0  # who is credited
SHARE_ACCOUNT_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
SHARE_ACCOUNT_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
SHARE_AMOUNT_SHIFT: constant(uint256) = 160  # base units
SHARE_AMOUNT_MASK: constant(uint256) = 79228162514264337593543950335  # 2**96 - 1
SHARE_AMOUNT_LANE: constant(uint256) = 79228162514264337593543950335 << 160

# ---- book: a lock or a credit as Escrow stores it ----
BOOK_AMOUNT_SHIFT: constant(uint256) = 0  # base units
BOOK_AMOUNT_MASK: constant(uint256) = 57896044618658097711785492504343953926634992332820282019728792003956564819967
BOOK_AMOUNT_LANE: constant(uint256) = 57896044618658097711785492504343953926634992332820282019728792003956564819967 << 0
BOOK_USED: constant(uint256) = 2**255  # from the first amount on: the slot never returns to zero

# ---- fields: what a judge finds instead of what was submitted; 0 where that stands ----
FIELDS_OUTCOME_SHIFT: constant(uint256) = 0  # a unit's
FIELDS_OUTCOME_MASK: constant(uint256) = 15  # 2**4 - 1
FIELDS_OUTCOME_LANE: constant(uint256) = 15 << 0
FIELDS_SECONDS_SHIFT: constant(uint256) = 4  # seconds, of fuel, where fuel is billed
FIELDS_SECONDS_MASK: constant(uint256) = 16777215  # 2**24 - 1
FIELDS_SECONDS_LANE: constant(uint256) = 16777215 << 4
FIELDS_BITS: constant(uint256) = 28

# ---- submitter: a word of the terms ----
SUBMITTER_ACCOUNT_SHIFT: constant(uint256) = 0  # the submitter
SUBMITTER_ACCOUNT_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
SUBMITTER_ACCOUNT_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
SUBMITTER_SALT_SHIFT: constant(uint256) = 160  # any
SUBMITTER_SALT_MASK: constant(uint256) = 79228162514264337593543950335  # 2**96 - 1
SUBMITTER_SALT_LANE: constant(uint256) = 79228162514264337593543950335 << 160

# ---- money: a word of the terms ----
MONEY_CEILING_SHIFT: constant(uint256) = 0  # base units x 1e6 per second
MONEY_CEILING_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
MONEY_CEILING_LANE: constant(uint256) = 1208925819614629174706175 << 0
MONEY_KEEPER_FEE_SHIFT: constant(uint256) = 80  # base units
MONEY_KEEPER_FEE_MASK: constant(uint256) = 1208925819614629174706175  # 2**80 - 1
MONEY_KEEPER_FEE_LANE: constant(uint256) = 1208925819614629174706175 << 80
MONEY_BITS: constant(uint256) = 160

# ---- limits: a word of the terms ----
LIMITS_MAX_SECONDS_SHIFT: constant(uint256) = 0  # seconds
LIMITS_MAX_SECONDS_MASK: constant(uint256) = 16777215  # 2**24 - 1
LIMITS_MAX_SECONDS_LANE: constant(uint256) = 16777215 << 0
LIMITS_DEADLINE_SHIFT: constant(uint256) = 24  # seconds
LIMITS_DEADLINE_MASK: constant(uint256) = 1099511627775  # 2**40 - 1
LIMITS_DEADLINE_LANE: constant(uint256) = 1099511627775 << 24
LIMITS_UNITS_SHIFT: constant(uint256) = 64
LIMITS_UNITS_MASK: constant(uint256) = 16777215  # 2**24 - 1
LIMITS_UNITS_LANE: constant(uint256) = 16777215 << 64
LIMITS_CHUNK_SHIFT: constant(uint256) = 88  # units
LIMITS_CHUNK_MASK: constant(uint256) = 65535  # 2**16 - 1
LIMITS_CHUNK_LANE: constant(uint256) = 65535 << 88
LIMITS_REPLICAS_SHIFT: constant(uint256) = 104
LIMITS_REPLICAS_MASK: constant(uint256) = 15  # 2**4 - 1
LIMITS_REPLICAS_LANE: constant(uint256) = 15 << 104
LIMITS_QUORUM_SHIFT: constant(uint256) = 108
LIMITS_QUORUM_MASK: constant(uint256) = 15  # 2**4 - 1
LIMITS_QUORUM_LANE: constant(uint256) = 15 << 108
LIMITS_MATCH_WINDOW_SHIFT: constant(uint256) = 112  # seconds
LIMITS_MATCH_WINDOW_MASK: constant(uint256) = 4095  # 2**12 - 1
LIMITS_MATCH_WINDOW_LANE: constant(uint256) = 4095 << 112
LIMITS_CHALLENGE_WINDOW_SHIFT: constant(uint256) = 124  # seconds
LIMITS_CHALLENGE_WINDOW_MASK: constant(uint256) = 16777215  # 2**24 - 1
LIMITS_CHALLENGE_WINDOW_LANE: constant(uint256) = 16777215 << 124
LIMITS_CHECKPOINT_EVERY_SHIFT: constant(uint256) = 148  # seconds
LIMITS_CHECKPOINT_EVERY_MASK: constant(uint256) = 16777215  # 2**24 - 1
LIMITS_CHECKPOINT_EVERY_LANE: constant(uint256) = 16777215 << 148
LIMITS_MAX_ATTEMPTS_SHIFT: constant(uint256) = 172
LIMITS_MAX_ATTEMPTS_MASK: constant(uint256) = 15  # 2**4 - 1
LIMITS_MAX_ATTEMPTS_LANE: constant(uint256) = 15 << 172
LIMITS_BILLING_SHIFT: constant(uint256) = 176
LIMITS_BILLING_MASK: constant(uint256) = 15  # 2**4 - 1
LIMITS_BILLING_LANE: constant(uint256) = 15 << 176
BILLING_FIXED: constant(uint256) = 0
BILLING_FUEL: constant(uint256) = 1
BILLING_METERED: constant(uint256) = 2
LIMITS_FLAGS_SHIFT: constant(uint256) = 180
LIMITS_FLAGS_MASK: constant(uint256) = 255  # 2**8 - 1
LIMITS_FLAGS_LANE: constant(uint256) = 255 << 180
LIMITS_CONFIDENTIAL: constant(uint256) = 2**180
LIMITS_PREEMPTIBLE: constant(uint256) = 2**181
LIMITS_NEWCOMERS: constant(uint256) = 2**182
LIMITS_PROVEN: constant(uint256) = 2**183
LIMITS_KEEP: constant(uint256) = 2**184
LIMITS_BOND_BPS_SHIFT: constant(uint256) = 188  # bps, of the price; the policy's minimum counts where it is more
LIMITS_BOND_BPS_MASK: constant(uint256) = 16777215  # 2**24 - 1
LIMITS_BOND_BPS_LANE: constant(uint256) = 16777215 << 188
LIMITS_BITS: constant(uint256) = 212

# ---- judge: a word of the terms ----
JUDGE_ACCOUNT_SHIFT: constant(uint256) = 0  # the contract that judges, 0 for none
JUDGE_ACCOUNT_MASK: constant(uint256) = 1461501637330902918203684832716283019655932542975  # 2**160 - 1
JUDGE_ACCOUNT_LANE: constant(uint256) = 1461501637330902918203684832716283019655932542975 << 0
JUDGE_BITS: constant(uint256) = 160

# ---- policy: the parameters that a job freezes ----
POLICY_VERSION_SHIFT: constant(uint256) = 0  # the protocol's, 1
POLICY_VERSION_MASK: constant(uint256) = 255  # 2**8 - 1
POLICY_VERSION_LANE: constant(uint256) = 255 << 0
POLICY_FEE_BPS_SHIFT: constant(uint256) = 8  # bps, of the pay
POLICY_FEE_BPS_MASK: constant(uint256) = 1023  # 2**10 - 1
POLICY_FEE_BPS_LANE: constant(uint256) = 1023 << 8
POLICY_MIN_BOND_BPS_SHIFT: constant(uint256) = 18  # bps, of the price: what is lost by negligence goes by it
POLICY_MIN_BOND_BPS_MASK: constant(uint256) = 65535  # 2**16 - 1
POLICY_MIN_BOND_BPS_LANE: constant(uint256) = 65535 << 18
POLICY_CLAIM_RAMP_SHIFT: constant(uint256) = 34  # seconds, in which an open claim's price rises to the ceiling
POLICY_CLAIM_RAMP_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_CLAIM_RAMP_LANE: constant(uint256) = 4095 << 34
POLICY_FRESH_DELAY_SHIFT: constant(uint256) = 46  # seconds, before a result of a node on probation may be settled
POLICY_FRESH_DELAY_MASK: constant(uint256) = 65535  # 2**16 - 1
POLICY_FRESH_DELAY_LANE: constant(uint256) = 65535 << 46
POLICY_FETCH_FLOOR_SHIFT: constant(uint256) = 62  # seconds, at least, in which a lease may be declined
POLICY_FETCH_FLOOR_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_FETCH_FLOOR_LANE: constant(uint256) = 4095 << 62
POLICY_RESERVED_SHIFT: constant(uint256) = 74  # 0 in this version
POLICY_RESERVED_MASK: constant(uint256) = 255  # 2**8 - 1
POLICY_RESERVED_LANE: constant(uint256) = 255 << 74
POLICY_MIN_PRICE_SHIFT: constant(uint256) = 82  # coded amount
POLICY_MIN_PRICE_MASK: constant(uint256) = 32767  # 2**15 - 1
POLICY_MIN_PRICE_LANE: constant(uint256) = 32767 << 82
POLICY_MIN_KEEPER_FEE_SHIFT: constant(uint256) = 97  # coded amount
POLICY_MIN_KEEPER_FEE_MASK: constant(uint256) = 32767  # 2**15 - 1
POLICY_MIN_KEEPER_FEE_LANE: constant(uint256) = 32767 << 97
POLICY_PROBATION_PRICE_SHIFT: constant(uint256) = 112  # coded amount
POLICY_PROBATION_PRICE_MASK: constant(uint256) = 32767  # 2**15 - 1
POLICY_PROBATION_PRICE_LANE: constant(uint256) = 32767 << 112
POLICY_MIN_MATCH_WINDOW_SHIFT: constant(uint256) = 127  # seconds
POLICY_MIN_MATCH_WINDOW_MASK: constant(uint256) = 511  # 2**9 - 1
POLICY_MIN_MATCH_WINDOW_LANE: constant(uint256) = 511 << 127
POLICY_ACK_TIME_SHIFT: constant(uint256) = 136  # seconds
POLICY_ACK_TIME_MASK: constant(uint256) = 1023  # 2**10 - 1
POLICY_ACK_TIME_LANE: constant(uint256) = 1023 << 136
POLICY_OPEN_CLAIM_AFTER_SHIFT: constant(uint256) = 146  # seconds
POLICY_OPEN_CLAIM_AFTER_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_OPEN_CLAIM_AFTER_LANE: constant(uint256) = 4095 << 146
POLICY_CANCEL_NOTICE_SHIFT: constant(uint256) = 158  # seconds
POLICY_CANCEL_NOTICE_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_CANCEL_NOTICE_LANE: constant(uint256) = 4095 << 158
POLICY_GRACE_FLOOR_SHIFT: constant(uint256) = 170  # seconds
POLICY_GRACE_FLOOR_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_GRACE_FLOOR_LANE: constant(uint256) = 4095 << 170
POLICY_START_FEE_SECONDS_SHIFT: constant(uint256) = 182  # seconds, of rate
POLICY_START_FEE_SECONDS_MASK: constant(uint256) = 4095  # 2**12 - 1
POLICY_START_FEE_SECONDS_LANE: constant(uint256) = 4095 << 182
POLICY_MIN_CHALLENGE_WINDOW_SHIFT: constant(uint256) = 194  # seconds, of a job that names a judge
POLICY_MIN_CHALLENGE_WINDOW_MASK: constant(uint256) = 1048575  # 2**20 - 1
POLICY_MIN_CHALLENGE_WINDOW_LANE: constant(uint256) = 1048575 << 194
POLICY_KEY_TIMEOUT_SHIFT: constant(uint256) = 214  # seconds, not used yet
POLICY_KEY_TIMEOUT_MASK: constant(uint256) = 65535  # 2**16 - 1
POLICY_KEY_TIMEOUT_LANE: constant(uint256) = 65535 << 214
POLICY_RESERVED_HIGH_SHIFT: constant(uint256) = 230  # 0 in this version
POLICY_RESERVED_HIGH_MASK: constant(uint256) = 65535  # 2**16 - 1
POLICY_RESERVED_HIGH_LANE: constant(uint256) = 65535 << 230
POLICY_MIN_CHECKPOINT_SHIFT: constant(uint256) = 246  # seconds, of checkpoint_every
POLICY_MIN_CHECKPOINT_MASK: constant(uint256) = 1023  # 2**10 - 1
POLICY_MIN_CHECKPOINT_LANE: constant(uint256) = 1023 << 246

# ---- amount: a coded amount of a policy ----
AMOUNT_MANTISSA_SHIFT: constant(uint256) = 0  # base units, amount = mantissa x 10^exponent
AMOUNT_MANTISSA_MASK: constant(uint256) = 1023  # 2**10 - 1
AMOUNT_MANTISSA_LANE: constant(uint256) = 1023 << 0
AMOUNT_EXPONENT_SHIFT: constant(uint256) = 10
AMOUNT_EXPONENT_MASK: constant(uint256) = 31  # 2**5 - 1
AMOUNT_EXPONENT_LANE: constant(uint256) = 31 << 10
AMOUNT_BITS: constant(uint256) = 15

# ---- totals: of NodeRegistry ----
TOTALS_NEXT_ID_SHIFT: constant(uint256) = 0  # the next node's id
TOTALS_NEXT_ID_MASK: constant(uint256) = 4294967295  # 2**32 - 1
TOTALS_NEXT_ID_LANE: constant(uint256) = 4294967295 << 0
TOTALS_HOUR_SHIFT: constant(uint256) = 32  # clock hour of burnt
TOTALS_HOUR_MASK: constant(uint256) = 4294967295  # 2**32 - 1
TOTALS_HOUR_LANE: constant(uint256) = 4294967295 << 32
TOTALS_BURNT_SHIFT: constant(uint256) = 64  # base units, burnt in that hour
TOTALS_BURNT_MASK: constant(uint256) = 79228162514264337593543950335  # 2**96 - 1
TOTALS_BURNT_LANE: constant(uint256) = 79228162514264337593543950335 << 64
TOTALS_TOTAL_SHIFT: constant(uint256) = 160  # base units, of all stake
TOTALS_TOTAL_MASK: constant(uint256) = 79228162514264337593543950335  # 2**96 - 1
TOTALS_TOTAL_LANE: constant(uint256) = 79228162514264337593543950335 << 160
