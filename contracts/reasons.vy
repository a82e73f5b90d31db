# pragma version 0.4.3
"""
@title Reasons: revert texts kept in one table of fixed rows
@author Hearth
@license Apache-2.0
@notice An inline reason costs 119 bytes of code each; a row of a table costs 32 and decodes the same.
"""

ROW: constant(uint256) = 32  # bytes


@pure
@internal
def _trim(row: String[32]) -> String[32]:
    """
    @return The row without the blanks that pad it; at least one character.
    """
    rest: uint256 = convert(convert(row, Bytes[32]), uint256)
    size: uint256 = ROW
    for i: uint256 in range(ROW):
        # lanes: the last byte
        if rest & 255 != 32:
            break
        # lanes: the byte before it
        rest >>= 8
        size -= 1
    return slice(row, 0, size)
