"""hearth.base.addresses: which addresses are public, which names say that they are not, and which gateways
are named."""

from __future__ import annotations

import ipaddress

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


SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/31", "192.0.2.0/24"),
    *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4"),
    *("240.0.0.0/4", "255.255.255.255/32", "::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64"),
    *("2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32"),
    *("2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "3fff::/20", "5f00::/16"),
    *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)
"""The registries of special-purpose addresses (iana.org), multicast, and fec0::/10, but for what leads to an address
inside and the anycast of AS112, which anybody may ask."""


@pytest.mark.parametrize("network", SPECIAL)
def test_is_public__special_purpose_address__on_every_python_is_not(network: str) -> None:
    found = ipaddress.ip_network(network)
    asked = {str(found[at]) for at in (0, found.num_addresses // 2, -1)} | {str(found[found.num_addresses // 3])}
    assert [one for one in asked if subject.is_public(one)] == []
    if found.version == 4:
        wrapped = [f"{prefix}{one}" for prefix in ("::", "::ffff:", "::ffff:0:", "64:ff9b::") for one in asked]
        assert [one for one in wrapped if subject.is_public(one)] == []


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "192.0.1.1", "192.31.196.1", "192.175.48.1", "100.63.255.255", "172.32.0.1", "223.255.255.255"),
        *("::1.1.1.1", "::ffff:1.1.1.1", "::ffff:0:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::", "2001:200::1"),
        *("2606:4700::1111", "2a00:1450::1", "2620:4f:8000::1"),
    ],
)
def test_is_public__anybodys_address__is(address: str) -> None:
    assert subject.is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("http://gpu.example.org", "https://gpu.example.org/", "https://gpu.example.org:443/ipfs-here/a_b~c"),
        *("http://93.184.216.34:8080", "http://[2606:4700::1111]:1024", "http://127.0.0.1:65535", "http://LAN-box"),
    ],
)
def test_gateway_fault__address_that_anybody_may_be_sent_to__none(url: str) -> None:
    assert subject.gateway_fault(url) == ""


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://me:secret@gpu.example.org", "a user or a password"),
        ("https://me@gpu.example.org", "a user or a password"),
        ("https://gpu.example.org?key=1", "a query or a fragment"),
        ("https://gpu.example.org/x?key=1", "a query or a fragment"),
        ("https://gpu.example.org/x#y", "a query or a fragment"),
        ("http://gpu.example.org:22", "port 22 is another service's"),
        ("http://gpu.example.org:0", "port 0 is another service's"),
        ("http://gpu.example.org:65536", "port 65536"),
        ("http://gpu.example.org/a/../../b", "leads upwards"),
        ("http://[::1::]:8080", "no address"),
        ("http://[127.0.0.1]:8080", "no address"),
        ("https://" + "a" * 300 + ".example", "characters"),
        *(
            (text, "write http://HOST:PORT")
            for text in ("", "gpu.example.org", "ftp://x.example", "http://", "http:///x")
        ),
        *((f"http://x.example/{odd}", "write http") for odd in ("a b", "%2e", "\r\nHost: y", "\u202e", "\\", "a\x00")),
        *((f"http://x{odd}", "write http") for odd in ("\n", ".example\n", "\u00e9.example", ":80:80", "%eth0")),
        ("http://x.example:\u0661\u0662\u0663\u0664", "write http"),
        ("HTTP://x.example", "write http"),
        ("file:///etc/passwd", "write http"),
    ],
)
def test_gateway_fault__anything_else__says_why(url: str, why: str) -> None:
    assert why in subject.gateway_fault(url)


def test_gateway_fault__length__256_and_not_one_more() -> None:
    url = "https://x.example/" + "a" * (256 - len("https://x.example/"))
    assert subject.gateway_fault(url) == "" and "257 characters" in subject.gateway_fault(url + "a")


@pytest.mark.parametrize(("port", "good"), [(79, False), (80, True), (443, True), (1023, False), (1024, True)])
def test_gateway_fault__ports__of_the_web_or_free(port: int, good: bool) -> None:
    assert (subject.gateway_fault(f"http://x.example:{port}") == "") is good
