"""What posting takes beside the job's money, and words for parents (hearth/client, hearth/chain/fees.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.chain import fees
from hearth.client.governance.gov import GOV_GAS
from hearth.client.job.parents import ASKED
from hearth.client.jobs import CANCEL_GAS
from hearth.client.posting import post
from hearth.protocol.runtimes import MAX_INPUT_ENTRIES
from tools.web_tables import Big


def tables() -> Mapping[str, Any]:
    """Return gas by call, tips in wei per gas, words by condition, and how many files and folders a worker takes."""
    return {
        "POST_GAS": Big(post.POST_GAS),
        "APPROVE_GAS": Big(post.APPROVE_GAS),
        "WITHDRAW_GAS": Big(post.WITHDRAW_GAS),
        "CANCEL_GAS": Big(CANCEL_GAS),
        "GOV_GAS": Big(GOV_GAS),
        "LEAST_TIP": Big(fees.LEAST_TIP),
        "MOST_TIP": Big(fees.MOST_TIP),
        "ASKED": {int(condition): words for condition, words in ASKED.items()},
        "MAX_INPUT_ENTRIES": MAX_INPUT_ENTRIES,
    }
