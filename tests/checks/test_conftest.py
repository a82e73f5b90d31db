"""Unit tests reach no network, and the marks that open loopback do only that."""

from __future__ import annotations

import socket

import pytest
from hypothesis import settings
from pytest_socket import SocketBlockedError, SocketConnectBlockedError


def test_socket__unit_test__is_blocked() -> None:
    with pytest.raises(SocketBlockedError):
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def test_socket__unix__is_allowed() -> None:
    left, right = socket.socketpair(socket.AF_UNIX)
    left.close()
    right.close()


@pytest.mark.net
def test_socket__marked_net__reaches_loopback_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
    with socket.socket() as client, pytest.raises(SocketConnectBlockedError):
        client.connect(("192.0.2.1", 9))


def test_profile__by_default__is_reproducible() -> None:
    assert settings().derandomize or settings().max_examples == 2_000
