"""What a campaign has to show of each kind of fault: where nobody saw a fault act, nothing was survived.

Whoever commits a fault returns a sentence of evidence, "" where it was not seen to act. A campaign counts per kind how
often it was committed and how often seen, and what is lacking is wrong (docs/ASSURANCE.md "Chaos").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

OFTEN = 10
"""What was committed as often has to be seen nine times in ten."""


def once(times: int) -> int:
    """Ask for one sighting, however often a kind was committed."""
    return 1


def nine_in_ten(times: int) -> int:
    """Ask for one sighting, and for nine in ten of what was committed often."""
    return 1 if times < OFTEN else -(-9 * times // 10)


def lacking(times: Mapping[str, int], seen: Mapping[str, int], wanted: Callable[[int], int] = once) -> list[str]:
    """Return a sentence for each kind of `times` that was seen less often than `wanted` says.

    What a campaign meant to commit and never did is among the kinds, with 0 times.
    """
    return [
        f"evidence: {kind} was seen {seen.get(kind, 0)} times of {count}, and {wanted(count)} are wanted"
        for kind, count in times.items()
        if seen.get(kind, 0) < wanted(count)
    ]
