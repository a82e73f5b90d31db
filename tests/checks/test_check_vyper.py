"""Each banned form is rejected by its own rule, and a contract in the house style passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_vyper import check_source, main
from tools.reasons import MODULE
from tools.vyper_files import ROOT, Source

HEAD = "# pragma version 0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy on\n"

CLEAN = (
    HEAD
    + '''"""
@title Clean
"""

from ethereum.ercs import IERC20

import reasons

MAX_ITEMS: constant(uint256) = 8

TOKEN: immutable(IERC20)
totals: HashMap[address, uint256]
list: DynArray[uint256, MAX_ITEMS]


@deploy
def __init__(token: IERC20):
    TOKEN = token


@external
def pay(to: address, amounts: DynArray[uint256, MAX_ITEMS]) -> uint256:
    total: uint256 = 0
    for amount: uint256 in amounts:
        total += amount
    for i: uint256 in range(len(amounts), bound=MAX_ITEMS):
        # unsafe: i < MAX_ITEMS
        total = unsafe_add(total, i)
    least: uint256 = total if total < 5 else 5
    self.totals[to] += least
    self.list.append(least)
    paid: uint256 = self._count(to)
    if not extcall TOKEN.transfer(to, paid, default_return_value=True):
        reasons._refuse(reasons.ESCROW_TOKEN_REFUSED)
    if least == 1:
        sent: bool = raw_call(to, b"", value=least, revert_on_failure=False)
        if not sent:
            reasons._refuse(reasons.ESCROW_RECEIVER_REFUSED)
    return paid | total


@internal
def _count(to: address) -> uint256:
    self.totals[to] += 1
    return staticcall TOKEN.balanceOf(to)
'''
)


@pytest.fixture(autouse=True)
def _reasons(tmp_path: Path) -> None:
    """Put the module that refuses beside what is checked."""
    (tmp_path / MODULE.name).write_bytes((ROOT / MODULE).read_bytes())


def _problems(tmp_path: Path, text: str, name: str = "Sample.vy") -> list[tuple[str, int]]:
    path = tmp_path / name
    path.write_text(text)
    return [(problem.rule, problem.line) for problem in check_source(Source(path, name, tmp_path))[0]]


def _body(code: str, *, returns: str = "uint256", arguments: str = "flag: bool, n: uint256", before: str = "") -> str:
    """Wrap statements into a contract with one external function."""
    lines = "".join(f"    {line}\n" for line in code.split("\n"))
    tail = f" -> {returns}" if returns else ""
    storage = "x: uint256\nlist: DynArray[uint256, 4]\n"
    return f"{HEAD}\n{storage}{before}\n@payable\n@external\ndef f({arguments}){tail}:\n{lines}"


IMPORT = "import reasons\n"
NO_REVERT = "revert_on_failure=False"


def _pays(rest: str, *, data: str = "b''") -> str:
    """Return a contract that sends coin, and what it does next."""
    return _body(f"ok: bool = raw_call(msg.sender, {data}, value=n, {NO_REVERT})\n{rest}\nreturn 0", before=IMPORT)


REFUSES = "if not ok:\n    reasons._refuse(n)"
WRITER = "@internal\ndef _g() -> uint256:\n    self.x += 1\n    return 1\n"

# The published advisories, as source: CVE, what must be said about it.
CVE_114117 = _body("return (msg.value | 108) if flag else 0")
CVE_114117_DATA = _body("return (len(msg.data) | 108) if flag else 0")
CVE_114115 = _body(
    "a: DynArray[DynArray[uint256, 2], 2] = [[1, 2], [3, 4]]\n"
    "b: DynArray[DynArray[uint256, 3], 2] = [[5, 6, 7], [8]]\n"
    "return (a if flag else b)[1][0]"
)
CVE_114118 = _body("return create_from_blueprint(msg.sender, code_offset=n)", returns="address")

REJECTED = {
    "cve-2026-114117-value": (CVE_114117, "message-bitor"),
    "cve-2026-114117-data": (CVE_114117_DATA, "message-bitor"),
    "cve-2026-114118": (CVE_114118, "banned-builtin"),
    "ternary of a string": (_body('return "a" if flag else "b"', returns="String[1]"), "ternary-composite"),
    "ternary of an array": (
        _body("a: uint256[2] = [n, n]\nb: uint256[2] = [n, 1]\nreturn (a if flag else b)[0]"),
        "ternary-composite",
    ),
    "ternary of a struct": (
        _body(
            "a: P = P(v=n)\nb: P = P(v=1)\nc: P = a if flag else b\nreturn c.v", before="struct P:\n    v: uint256\n"
        ),
        "ternary-composite",
    ),
    "arithmetic in a ternary": (_body("return n + 1 if flag else 0"), "ternary-arithmetic"),
    "inversion in a ternary": (_body("return ~n if flag else 0"), "ternary-arithmetic"),
    "or on msg.value": (_body("return msg.value | n"), "message-bitor"),
    "raw_call that reverts by itself": (_body('raw_call(msg.sender, b"", value=n)\nreturn 0'), "raw-call"),
    "raw_call with data": (_pays(REFUSES, data="b'a'"), "raw-call"),
    "raw_call with something before its refusal": (_pays(f"self.x = 1\n{REFUSES}"), "raw-call"),
    "raw_call with its failure unread": (_pays("self.x = 1"), "raw-call"),
    "raw_call with another value looked at": (_pays("if not flag:\n    reasons._refuse(n)"), "raw-call"),
    "raw_call with its success refused": (_pays("if ok:\n    reasons._refuse(n)"), "raw-call"),
    "raw_call with its failure noted": (_pays("if not ok:\n    self.x = 1"), "raw-call"),
    "raw_call with its failure told to another function": (
        _body(
            f"ok: bool = raw_call(msg.sender, b'', value=n, {NO_REVERT})\nif not ok:\n    self._refuse(n)\nreturn 0",
            before="@internal\ndef _refuse(code: uint256):\n    self.x = code\n",
        ),
        "raw-call",
    ),
    "delegate call": (
        _body('return raw_call(msg.sender, b"", max_outsize=4, is_delegate_call=True)', returns="Bytes[4]"),
        "banned-builtin",
    ),
    "send": (_body("send(msg.sender, n)\nreturn 0"), "banned-builtin"),
    "selfdestruct": (_body("selfdestruct(msg.sender)", returns=""), "banned-builtin"),
    "raw_log": (_body('raw_log([keccak256("a")], b"")\nreturn 0'), "banned-builtin"),
    "raw_revert": (_body("raw_revert(abi_encode(n))", returns=""), "banned-builtin"),
    "assert": (_body("assert flag\nreturn 0"), "refusal"),
    "assert with a text": (_body('assert flag, "jobs: paused"\nreturn 0'), "refusal"),
    "raise": (_body('raise "jobs: paused"', returns=""), "refusal"),
    "minimal proxy": (_body("return create_minimal_proxy_to(msg.sender)", returns="address"), "banned-builtin"),
    "copy": (_body("return create_copy_of(msg.sender)", returns="address"), "banned-builtin"),
    "isqrt": (_body("return isqrt(n)"), "banned-builtin"),
    "dynamic decode": (
        _body("a: Bytes[32] = abi_decode(data, Bytes[32])\nreturn len(a)", arguments="data: Bytes[256]"),
        "dynamic-decode",
    ),
    "dynamic slice": (
        _body("return len(slice(data, n, n))", arguments="data: Bytes[256], n: uint256"),
        "dynamic-slice",
    ),
    "unnamed bound": (_body("for i: uint256 in range(n, bound=4):\n    self.x += i\nreturn 0"), "loop-bound"),
    "unnamed range": (_body("for i: uint256 in range(4):\n    self.x += i\nreturn 0"), "loop-bound"),
    "augmented element": (
        _body("self.list[0] += self._g()\nreturn 0", before=WRITER),
        "augmented-element",
    ),
    "two changing calls": (
        _body("return self._g() + self._g()", before=WRITER),
        "nested-call",
    ),
    "changing call as an argument": (
        _body("return max(self._g(), n)", before=WRITER),
        "nested-call",
    ),
    "pop as an argument": (_body("return max(self.list.pop(), n)"), "nested-call"),
    "external call in an external call": (
        _body(
            "return extcall I(msg.sender).put(extcall I(msg.sender).put(n))",
            before="interface I:\n    def put(n: uint256) -> uint256: nonpayable\n",
        ),
        "nested-call",
    ),
    "unsafe without proof": (_body("return unsafe_add(n, 1)"), "unsafe"),
    "unsafe with an empty proof": (_body("return unsafe_add(n, 1)  # unsafe:"), "unsafe"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_check_source__banned_form__names_the_rule(tmp_path: Path, name: str) -> None:
    text, rule = REJECTED[name]
    found = _problems(tmp_path, text)
    assert rule in {found_rule for found_rule, _ in found}, found
    assert "compile" not in {found_rule for found_rule, _ in found}, found


def test_check_source__ternary_over_unequal_arrays__is_refused(tmp_path: Path) -> None:
    """CVE-2026-114115: whether the compiler accepts it or not, the file does not pass."""
    assert {rule for rule, _ in _problems(tmp_path, CVE_114115)} & {"ternary-composite", "compile"}


def test_check_source__house_style__passes(tmp_path: Path) -> None:
    problems, nodes = check_source_of(tmp_path, CLEAN)
    assert problems == []
    assert nodes > 100


def test_check_source__raw_revert_of_the_module_that_refuses__passes(tmp_path: Path) -> None:
    text = (ROOT / MODULE).read_text(encoding="utf-8")
    assert "raw_revert(" in text and _problems(tmp_path, text, MODULE.name) == []
    assert [rule for rule, _ in _problems(tmp_path, text, "others.vy")] == ["banned-builtin"]


def check_source_of(tmp_path: Path, text: str) -> tuple[list[str], int]:
    path = tmp_path / "Clean.vy"
    path.write_text(text)
    problems, nodes = check_source(Source(path, "Clean.vy", tmp_path))
    return [str(problem) for problem in problems], nodes


def test_check_source__unsafe_with_proof_above_or_beside__passes(tmp_path: Path) -> None:
    beside = _body("return unsafe_add(n, 1)  # unsafe: n < 2**255, checked at post")
    above = _body("# unsafe: n < 2**255,\n# checked at post\nreturn unsafe_add(n, 1)")
    assert _problems(tmp_path, beside) == []
    assert _problems(tmp_path, above) == []


def test_check_source__dynamic_decode_with_its_reason__passes(tmp_path: Path) -> None:
    code = "# decode: bounded by the argument's own type\na: Bytes[32] = abi_decode(data, Bytes[32])\nreturn len(a)"
    assert _problems(tmp_path, _body(code, arguments="data: Bytes[256]")) == []


def test_check_source__mock__may_misbehave_but_not_miscompile(tmp_path: Path) -> None:
    (tmp_path / "mocks").mkdir()
    assert _problems(tmp_path, _body("selfdestruct(msg.sender)", returns=""), "mocks/Bad.vy") == []
    assert _problems(tmp_path, CVE_114117, "mocks/Worse.vy") != []


def test_check_source__problem__carries_its_line(tmp_path: Path) -> None:
    text = _body("return msg.value | n")
    line = 1 + text.split("\n").index("    return msg.value | n")
    assert _problems(tmp_path, text) == [("message-bitor", line)]


@pytest.mark.parametrize(
    "head",
    [
        "# pragma version ^0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy on\n",
        "# pragma version 0.4.3\n# pragma nonreentrancy on\n",
        "# pragma version 0.4.3\n# pragma evm-version cancun\n",
        "# pragma version 0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy off\n",
        "# pragma version 0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy on\n# pragma enable-decimals\n",
        "# @version 0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy on\n",
    ],
)
def test_check_source__pragma_missing_or_other__is_refused(tmp_path: Path, head: str) -> None:
    text = head + "\n@external\ndef f() -> uint256:\n    return 1\n"
    assert "pragma" in {rule for rule, _ in _problems(tmp_path, text)}


def test_check_source__module__needs_only_the_version(tmp_path: Path) -> None:
    text = "# pragma version 0.4.3\n\n@internal\n@pure\ndef f() -> uint256:\n    return 1\n"
    assert _problems(tmp_path, text, "packing.vy") == []


def test_check_source__text_that_does_not_compile__is_refused(tmp_path: Path) -> None:
    assert {rule for rule, _ in _problems(tmp_path, HEAD + "\n@external\ndef f():\n    return 1\n")} == {"compile"}


def test_main__banned_form_in_a_folder__exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "Sample.vy").write_text(CVE_114117)
    assert main([str(tmp_path / "sources")]) == 1
    printed = capsys.readouterr()
    assert "message-bitor" in printed.err
    assert "1 files (1 deployable)" in printed.out


def test_main__missing_folder__exits_2(tmp_path: Path) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
