# pragma version 0.4.3
"""
@title LongReceiver: an account with code that answers native coin with a megabyte
@author The Hearth authors
@license Apache-2.0
@notice Test only. Whoever pays it and copies the answer pays for that too.
"""

WORDS: constant(uint256) = 31_250

# Whether the megabyte comes as a revert.
refuses: public(bool)


@external
def set_refuses(refuses: bool):
    self.refuses = refuses


@external
@payable
@raw_return
def __default__() -> Bytes[32 * WORDS]:
    answer: uint256[WORDS] = empty(uint256[WORDS])
    if self.refuses:
        raw_revert(abi_encode(answer))
    return abi_encode(answer)
