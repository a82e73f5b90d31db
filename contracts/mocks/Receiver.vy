# pragma version 0.4.3
"""
@title Receiver: an account with code, which reacts to money in a way that was set before
@author The Hearth authors
@license Apache-2.0
@notice Test only. Anyone may make it call anything and set its mood.
"""

from interfaces import IJobRegistry
from interfaces import IJudge

implements: IJudge

# What it does when native coin arrives or a hooked token moves. No mood: it accepts.
flag Mood:
    REFUSE  # reverts
    BURN  # uses up all the gas
    REENTER  # makes the prepared call, and the one that follows it, and accepts whether or not they succeed

MAX_DATA: constant(uint256) = 2048
MAX_ANSWER: constant(uint256) = 256

mood: public(Mood)
target: public(address)
data: Bytes[MAX_DATA]
amount: uint256
# A second call, made right after each prepared one; none where there is no target.
next_target: address
next_data: Bytes[MAX_DATA]
# How many more times the prepared call is made.
left: public(uint256)
# What came of the prepared calls, one entry per call.
succeeded: public(DynArray[bool, 8])
answers: public(DynArray[Bytes[MAX_ANSWER], 8])


@external
@payable
def run(target: address, data: Bytes[MAX_DATA], amount: uint256) -> Bytes[MAX_ANSWER]:
    """
    @notice Call `target` as this account; a revert is passed on.
    """
    return raw_call(target, data, max_outsize=MAX_ANSWER, value=amount)


@external
def set_mood(mood: Mood):
    self.mood = mood


@external
def prepare(target: address, data: Bytes[MAX_DATA], amount: uint256, times: uint256):
    """
    @notice Set the call that REENTER makes, the coin that goes with it, and how many times it is made.
    """
    self.target = target
    self.data = data
    self.amount = amount
    self.left = times
    self.next_target = empty(address)
    self.succeeded = []
    self.answers = []


@external
def follow(target: address, data: Bytes[MAX_DATA]):
    """
    @notice Set the call that REENTER makes right after the prepared one.
    """
    self.next_target = target
    self.next_data = data


@external
def on_move():
    """
    @notice React to a move of a hooked token.
    """
    self._react()


@external
@payable
def __default__():
    self._react()


@view
@external
def takes(terms: IJobRegistry.Terms) -> bool:
    """
    @notice Judge whatever it is named for.
    """
    return True


@view
@external
def may_run(job_id: bytes32, terms: IJobRegistry.Terms, index: uint256, node: uint256) -> bool:
    return True


@internal
def _react():
    assert Mood.REFUSE not in self.mood, "receiver: refused"
    if Mood.BURN in self.mood:
        raise UNREACHABLE
    if Mood.REENTER in self.mood and self.left != 0:
        self.left -= 1
        ok: bool = False
        answer: Bytes[MAX_ANSWER] = b""
        ok, answer = raw_call(
            self.target, self.data, max_outsize=MAX_ANSWER, value=self.amount, revert_on_failure=False
        )
        self.succeeded.append(ok)
        self.answers.append(answer)
        if self.next_target != empty(address):
            ok, answer = raw_call(self.next_target, self.next_data, max_outsize=MAX_ANSWER, revert_on_failure=False)
            self.succeeded.append(ok)
            self.answers.append(answer)
