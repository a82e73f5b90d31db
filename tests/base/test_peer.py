"""hearth.base.peer: which addresses are public, and which names say that they are not."""

from __future__ import annotations

from hearth.base import peer

INSIDE = (
    *("127.0.0.1", "10.1.2.3", "172.16.0.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200"),
    *("168.63.129.16", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0"),
    *("fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
)


def test_is_public__addresses_inside__none_is() -> None:
    assert [one for one in INSIDE if peer.is_public(one)] == []
    assert [one for one in ("93.184.216.34", "2606:4700::1111", "64:ff9b::5db8:d822") if not peer.is_public(one)] == []


def test_is_local_name__by_its_own_words() -> None:
    inside = ["kubo", "localhost", "LOCALHOST.", "nas.local", "x.home.arpa", "127.0.0.1", "::1", "10.0.0.1"]
    assert [one for one in inside if not peer.is_local_name(one)] == []
    assert [
        one for one in ("ipfs.io", "local.example", "93.184.216.34", "2606:4700::1111") if peer.is_local_name(one)
    ] == []
