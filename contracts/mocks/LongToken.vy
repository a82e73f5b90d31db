# pragma version 0.4.3
"""
@title LongToken: an ERC-20 whose transfer answers true and a megabyte
@author The Hearth authors
@license Apache-2.0
@notice Test only. A caller that copies the whole answer pays for it.
"""

WORDS: constant(uint256) = 31_250

balanceOf: public(HashMap[address, uint256])


@external
def mint(to: address, amount: uint256):
    self.balanceOf[to] += amount


@external
@raw_return
def transfer(to: address, amount: uint256) -> Bytes[32 * WORDS]:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    answer: uint256[WORDS] = empty(uint256[WORDS])
    # The first word says true.
    answer[0] = 1
    return abi_encode(answer)
