"""hearth.base.addresses: which addresses are public, and which names say that they are not."""

from __future__ import annotations

import pytest

from hearth.base import addresses as subject

INSIDE = (
    *("127.0.0.1", "10.1.2.3", "172.16.0.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200"),
    *("168.63.129.16", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0"),
    *("fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
)


def test_is_public__addresses_inside__none_is() -> None:
    assert [one for one in INSIDE if subject.is_public(one)] == []
    assert [
        one for one in ("93.184.216.34", "2606:4700::1111", "64:ff9b::5db8:d822") if not subject.is_public(one)
    ] == []


def test_is_local_name__by_its_own_words() -> None:
    inside = ["kubo", "localhost", "LOCALHOST.", "nas.local", "x.home.arpa", "127.0.0.1", "::1", "10.0.0.1"]
    assert [one for one in inside if not subject.is_local_name(one)] == []
    assert [
        one for one in ("ipfs.io", "local.example", "93.184.216.34", "2606:4700::1111") if subject.is_local_name(one)
    ] == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("2002:7f00:1::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("2606:4700::1111", True),
        ("ff0e::1", False),
        ("168.63.129.16", False),
        ("::ffff:168.63.129.16", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::808:808", True),
    ],
)
def test_is_public__address__also_one_inside_another(address: str, public: bool) -> None:
    assert subject.is_public(address) is public
