# pragma version 0.4.3
"""
@title Bit layouts of every packed word
@author Hearth
@license Apache-2.0
@notice Shifts, widths and masks, least significant lane first. SPEC section "Words" is this file in prose;
        hearth/protocol/words.py is its twin, and tests/contracts/test_packing.py compares the two.
"""

U4: constant(uint256) = 2**4 - 1
U5: constant(uint256) = 2**5 - 1
U6: constant(uint256) = 2**6 - 1
U8: constant(uint256) = 2**8 - 1
U9: constant(uint256) = 2**9 - 1
U10: constant(uint256) = 2**10 - 1
U12: constant(uint256) = 2**12 - 1
U14: constant(uint256) = 2**14 - 1
U15: constant(uint256) = 2**15 - 1
U16: constant(uint256) = 2**16 - 1
U17: constant(uint256) = 2**17 - 1
U20: constant(uint256) = 2**20 - 1
U24: constant(uint256) = 2**24 - 1
U26: constant(uint256) = 2**26 - 1
U32: constant(uint256) = 2**32 - 1
U40: constant(uint256) = 2**40 - 1
U48: constant(uint256) = 2**48 - 1
U80: constant(uint256) = 2**80 - 1
U96: constant(uint256) = 2**96 - 1
U160: constant(uint256) = 2**160 - 1

# ---- sizes: the six lanes that needs and offer share, each with a guard bit above it ----
TIER: constant(uint256) = 0  # 6 bits
GPU_COUNT: constant(uint256) = 7  # 6 bits
VRAM: constant(uint256) = 14  # 10 bits, GiB of each GPU
CORES: constant(uint256) = 25  # 10 bits
RAM: constant(uint256) = 36  # 14 bits, GiB
DISK: constant(uint256) = 51  # 17 bits, GiB
GUARDS: constant(uint256) = 2**6 + 2**13 + 2**24 + 2**35 + 2**50 + 2**68
SIZES: constant(uint256) = 2**69 - 1 - (2**6 + 2**13 + 2**24 + 2**35 + 2**50 + 2**68)
RUNTIMES: constant(uint256) = 69  # 8 bits: wasm 1, docker 2, gpu 4, juror 8

# ---- needs: sizes, runtimes, then ----
ZONE_MASK: constant(uint256) = 77  # 16 bits, 0 = anywhere
HOME: constant(uint256) = 93  # 4 bits
NEEDS_BITS: constant(uint256) = 97

# ---- offer: sizes, runtimes, then ----
ZONE: constant(uint256) = 77  # 4 bits
SLOTS: constant(uint256) = 81  # 6 bits
PENDING: constant(uint256) = 2**87  # a newer ask waits in next_asks
ASK: constant(uint256) = 88  # 80 bits, base units x 1e6 per second
OFFER_BITS: constant(uint256) = 168

# ---- hot: what changes with every lease and beat of a node ----
BEAT: constant(uint256) = 0  # 32 bits, seconds
BUSY: constant(uint256) = 32  # 6 bits
BOND: constant(uint256) = 38  # 80 bits, base units
REP_R: constant(uint256) = 118  # 26 bits, 1/2**20 of an observation
REP_S: constant(uint256) = 144  # 26 bits
REP_TIME: constant(uint256) = 170  # 32 bits, seconds
CUSUM: constant(uint256) = 202  # 8 bits
QUARANTINE: constant(uint256) = 210  # 32 bits, seconds
TRIPS: constant(uint256) = 242  # 4 bits
LAPSED: constant(uint256) = 2**246  # this lapse was paid
EXITING: constant(uint256) = 2**247
SLASHED: constant(uint256) = 2**248
SEASONED: constant(uint256) = 2**249
COUNT: constant(uint256) = 250  # 6 bits, successes modulo 64

# ---- totals of NodeRegistry ----
NEXT_ID: constant(uint256) = 0  # 32 bits
HOUR: constant(uint256) = 32  # 32 bits
BURNT: constant(uint256) = 64  # 96 bits, base units burnt in that hour
TOTAL: constant(uint256) = 160  # 96 bits, base units

# ---- unit ----
STATE: constant(uint256) = 0  # 4 bits
OUTCOME: constant(uint256) = 4  # 4 bits
NODE: constant(uint256) = 8  # 32 bits
RATE: constant(uint256) = 40  # 80 bits
STARTED: constant(uint256) = 120  # 40 bits
MARK: constant(uint256) = 160  # 40 bits
SECONDS: constant(uint256) = 200  # 24 bits
ATTEMPTS: constant(uint256) = 224  # 4 bits
TIPS: constant(uint256) = 228  # 4 bits
LAPSES: constant(uint256) = 232  # 4 bits
FUEL: constant(uint256) = 2**236
STORE: constant(uint256) = 2**237
SPECIAL: constant(uint256) = 2**238
NOTICED: constant(uint256) = 2**239
ACCUSED: constant(uint256) = 2**240
RESUME: constant(uint256) = 241  # 15 bits

BLOCKED: constant(uint256) = 1
OPEN: constant(uint256) = 2
RUNNING: constant(uint256) = 3
CLOSING: constant(uint256) = 4
SUBMITTED: constant(uint256) = 5
DISPUTED: constant(uint256) = 6
SETTLED: constant(uint256) = 7
REFUNDED: constant(uint256) = 8
CANCELLED: constant(uint256) = 9
EXPIRED: constant(uint256) = 10

# ---- array header ----
HEADER: constant(uint256) = 15  # the state nibble of a header
CLOSED: constant(uint256) = 2**4
TOUCHED: constant(uint256) = 8  # 24 bits
DONE: constant(uint256) = 32  # 24 bits
FAILED: constant(uint256) = 56  # 24 bits
OPENED: constant(uint256) = 80  # 40 bits

# ---- best proposal: payee 160 bits, then ----
BEST_NODE: constant(uint256) = 160  # 32 bits
BEST_KEY: constant(uint256) = 192  # 48 bits
EXTENSIONS: constant(uint256) = 240  # 4 bits

# ---- terms: money and limits ----
CEILING: constant(uint256) = 0  # 80 bits, base units x 1e6 per second
KEEPER_FEE: constant(uint256) = 80  # 80 bits, base units
MONEY_BITS: constant(uint256) = 160
MAX_SECONDS: constant(uint256) = 0  # 24 bits
DEADLINE: constant(uint256) = 24  # 40 bits
UNITS: constant(uint256) = 64  # 24 bits
CHUNK: constant(uint256) = 88  # 16 bits
REPLICAS: constant(uint256) = 104  # 4 bits
QUORUM: constant(uint256) = 108  # 4 bits
MATCH_WINDOW: constant(uint256) = 112  # 12 bits
CHALLENGE_WINDOW: constant(uint256) = 124  # 24 bits
CHECKPOINT_EVERY: constant(uint256) = 148  # 24 bits
MAX_ATTEMPTS: constant(uint256) = 172  # 4 bits
BILLING: constant(uint256) = 176  # 4 bits: fixed 0, fuel 1, metered 2
CONFIDENTIAL: constant(uint256) = 2**180
PREEMPTIBLE: constant(uint256) = 2**181
NEWCOMERS: constant(uint256) = 2**182
LIMITS_BITS: constant(uint256) = 188

# ---- policy ----
VERSION: constant(uint256) = 0  # 8 bits
FEE_BPS: constant(uint256) = 8  # 10 bits
BOND_NONE: constant(uint256) = 18  # 16 bits each, bps of the price
BOND_OPTIMISTIC: constant(uint256) = 34
BOND_REDUNDANT: constant(uint256) = 50
BOND_PROOF: constant(uint256) = 66
MIN_PRICE: constant(uint256) = 82  # 15 bits each, exponent << 10 | mantissa
MIN_KEEPER_FEE: constant(uint256) = 97
PROBATION_PRICE: constant(uint256) = 112
MIN_MATCH_WINDOW: constant(uint256) = 127  # 9 bits
ACK_TIME: constant(uint256) = 136  # 10 bits
OPEN_CLAIM_AFTER: constant(uint256) = 146  # 12 bits
CANCEL_NOTICE: constant(uint256) = 158  # 12 bits
GRACE_FLOOR: constant(uint256) = 170  # 12 bits
START_FEE: constant(uint256) = 182  # 12 bits
MIN_CHALLENGE_WINDOW: constant(uint256) = 194  # 20 bits
KEY_TIMEOUT: constant(uint256) = 214  # 16 bits
AUDIT_SHARE: constant(uint256) = 230  # 10 bits
MIN_JURORS: constant(uint256) = 240  # 6 bits
MIN_CHECKPOINT: constant(uint256) = 246  # 10 bits
