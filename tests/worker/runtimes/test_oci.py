from __future__ import annotations

import time
from pathlib import Path

import pytest

from hearth.protocol.types import LOCAL_CHAIN_ID
from worker.runtimes import oci
from worker.runtimes.base import Level


@pytest.mark.parametrize("text", ["1" * 16_384, "1." * 8_192, "1.2." + "3" * 16_384, "9" * 16_384 + ".1.1"])
def test_parse_version__long_text__takes_no_longer_than_to_read_it(text: str) -> None:
    began = time.thread_time()
    for _ in range(3):
        oci.parse_version(text)
        assert oci.check_runc(text, 1).level is Level.FAIL
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("1.16.1", Level.FAIL),
        ("1.17.3", Level.FAIL),
        ("1.17.7", Level.FAIL),
        ("NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80a9b9d0db00d9b1d73c0128c8962c55f4d", Level.PASS),
        ("1.17.8-rc.1", Level.FAIL),
        ("1.18.0", Level.PASS),
        ("2.0.0", Level.PASS),
        ("", Level.FAIL),
    ],
)
def test_check_toolkit__version__graded(version: str, level: Level) -> None:
    check = oci.check_toolkit(version, 1)
    assert check.level is level
    assert bool(check.fix) is (level is not Level.PASS)


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1", Level.FAIL),
        ("1.2.7", Level.FAIL),
        ("1.2.8", Level.PASS),
        ("1.3.2", Level.FAIL),
        ("1.3.3", Level.PASS),
        ("1.4.0-rc.2", Level.FAIL),
        ("1.4.0-rc.3", Level.PASS),
        ("1.4.0", Level.PASS),
        ("1.5.1", Level.PASS),
        ("unknown", Level.FAIL),
    ],
)
def test_check_runc__version__graded(version: str, level: Level) -> None:
    assert oci.check_runc(version, 1).level is level


def test_checks__local_chain__warn_in_place_of_refusal() -> None:
    for check in (oci.check_runc("1.1.5", LOCAL_CHAIN_ID), oci.check_toolkit("1.17.3", LOCAL_CHAIN_ID)):
        assert check.level is Level.WARN and "on a devnet, whose jobs are your own, a warning only" in check.detail
    page = (Path(__file__).parents[3] / "docs" / "PROVIDER.md").read_text(encoding="utf-8")
    for minimum in oci.RUNC_MINIMUM.values():
        assert minimum in page


def test_check_runc__exact_package_named_as_patched__pass() -> None:
    text = "1.1.5+ds1-1+deb12u9"
    assert oci.check_runc(text, 1).level is Level.FAIL
    assert oci.check_runc(text, 1, frozenset({text})).level is Level.PASS
