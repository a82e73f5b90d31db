"""The runner of planted bugs calls a bug caught only when the suite really turned red."""

from __future__ import annotations

import pytest

from tools.planted import parse

PATCH = "Bug: fee paid twice\nTests: tests/x -k fee\n\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


def test_parse__whole_patch__splits_head_and_diff() -> None:
    bug = parse("fee.patch", PATCH)
    assert (bug.what, bug.tests) == ("fee paid twice", ("tests/x", "-k", "fee"))
    assert bug.diff.startswith("--- a/x.py")


@pytest.mark.parametrize("missing", ["Bug: fee paid twice\n", "Tests: tests/x -k fee\n", "\n--- a/x.py"])
def test_parse__header_or_diff_missing__is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=r"fee\.patch"):
        parse("fee.patch", PATCH.replace(missing, ""))
