# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A judge that rules as it is told, by anyone, for tests
@author Hearth
@license Apache-2.0
"""

from interfaces import IJobRegistry
from interfaces import IJudge

implements: IJudge

JOBS: immutable(IJobRegistry)

refuses: public(bool)
barred: public(HashMap[uint256, bool])  # nodes that may run no replica


@deploy
def __init__(jobs: IJobRegistry):
    JOBS = jobs


@external
def set_refuses(refuses: bool):
    self.refuses = refuses


@external
def bar(node: uint256, barred: bool):
    self.barred[node] = barred


@external
@payable
def run(target: address, data: Bytes[4096]):
    """
    @notice Call `target` as this account; a revert is passed on.
    """
    raw_call(target, data, value=msg.value)


@external
def dispute(terms: IJobRegistry.Terms, index: uint256):
    extcall JOBS.dispute(terms, index)


@external
def rule(
    terms: IJobRegistry.Terms, index: uint256, verdict: uint256, fields: uint256, shares: uint256[3], payee: address
):
    extcall JOBS.rule(terms, index, verdict, fields, shares, payee)


@view
@external
def takes(terms: IJobRegistry.Terms) -> bool:
    return not self.refuses


@view
@external
def may_run(job_id: bytes32, terms: IJobRegistry.Terms, index: uint256, node: uint256) -> bool:
    assert job_id == staticcall JOBS.job_id_of(terms)
    return not self.barred[node]
