"""A URL is fetched whole or not at all: servers that cut, lie, pack, drip, swell, redirect, and lead inside."""

from __future__ import annotations

import gzip
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hearth.base import fetch as fetching
from hearth.base import peer
from hearth.base.errors import HearthError
from hearth.base.fetch import MAX_REDIRECTS, Fetched, fetch
from tests.kit.http import certified

pytestmark = pytest.mark.net
BODY = bytes(range(256)) * 400
ALL = f"Content-Length: {len(BODY)}\r\n".encode()
CLOSE = b"Connection: close\r\n"


def answer(head: bytes, body: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n" + body


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return answer(b"Transfer-Encoding: chunked\r\n", body + end)


@contextmanager
def serving(
    answers: dict[str, bytes] | Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Answer each path with just these bytes, then hang up; yield the port, and the paths asked for."""
    asked: list[str] = []

    def serve(wire: socket.socket) -> None:
        with suppress(OSError):
            # TLS that is hung up without the word for it, as by whoever cuts the wire.
            wire = tls.wrap_socket(wire, server_side=True, suppress_ragged_eofs=False) if tls else wire
            asked.append(wire.recv(65_536).decode("latin-1").split(" ")[1])
            if callable(answers):
                answers(wire)
            else:
                wire.sendall(answers[asked[-1]])
            socket.socket.shutdown(wire, socket.SHUT_WR)
            while wire.recv(65_536):
                pass
        wire.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], asked


def take(url: str, seconds: float = 30.0, most: int = 1 << 20, *, private: bool = True) -> tuple[bytes, Fetched]:
    out = io.BytesIO()
    found = fetch(url, out, seconds=seconds, most=most, allow_private=private)
    return out.getvalue(), found


def refused(url: str, seconds: float = 30.0, most: int = 1 << 20, *, private: bool = True) -> HearthError:
    with pytest.raises(HearthError) as caught:
        take(url, seconds, most, private=private)
    error = caught.value
    assert error.exit_code == 9 and "\n" not in error.message and error.message.isprintable(), error.message
    return error


WHOLE = {
    "its length": answer(ALL, BODY),
    "chunks": chunked(BODY[:7], BODY[7:]),
    "nobody says where it ends": answer(CLOSE, BODY),
    "length twice, the same": answer(ALL + ALL, BODY),
    "after an early word": answer(b"", status=b"100 Continue") + answer(ALL, BODY),
    "a coding that is none": answer(ALL + b"Content-Encoding: identity\r\n", BODY),
}


@pytest.mark.parametrize("name", WHOLE)
def test_fetch__whole_answer__is_taken(name: str) -> None:
    with serving({"/x": WHOLE[name]}) as (port, _):
        content, found = take(f"http://127.0.0.1:{port}/x")
    assert content == BODY and found.size == len(BODY)
    assert found.announced == (name != "nobody says where it ends") and found.private == ["127.0.0.1"]


PACKED = gzip.compress(BODY)
BROKEN = {
    "half of it": (answer(ALL, BODY[: len(BODY) // 2]), f"cut off, {len(BODY) // 2} bytes are missing"),
    "more than it says": (answer(ALL + CLOSE, BODY + b"!"), "more than the 102400 bytes"),
    "nothing of it": (answer(ALL), f"{len(BODY)} bytes are missing"),
    "part of it": (answer(b"Content-Range: bytes 0-9/99\r\nContent-Length: 10\r\n", BODY[:10], b"206 Some"), "206"),
    "no file": (answer(ALL, BODY, b"404 Not \x1b[31mhere"), r'HTTP status 404, "Not \x1b[31mhere"'),
    "no redirect to anywhere": (answer(b"", status=b"302 Found"), "302"),
    "two lengths": (answer(ALL + b"Content-Length: 5\r\n", BODY), 'no one number: "102400, 5"'),
    "length below nothing": (answer(b"Content-Length: -5\r\n", BODY), 'no one number: "-5"'),
    "length of letters": (answer(b"Content-Length: many\r\n", BODY), 'no one number: "many"'),
    "chunks without an end": (chunked(BODY, end=b""), "cut off"),
    "half a chunk": (answer(b"Transfer-Encoding: chunked\r\n", b"ff\r\nhalf"), "cut off"),
    "chunks of no size": (answer(b"Transfer-Encoding: chunked\r\n", b"zz\r\nhalf\r\n0\r\n\r\n"), "cut off"),
    "chunks of a size below nothing": (answer(b"Transfer-Encoding: chunked\r\n", b"-4\r\nhalf\r\n"), "cut off"),
    "packed": (answer(b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(PACKED), PACKED), "Content-Encoding"),
    "packed on its way": (answer(b"Transfer-Encoding: gzip, chunked\r\n", PACKED), "Transfer-Encoding"),
    "no HTTP": (b"hello \x1b]0;there\x07\r\n\r\n", r'no HTTP: "hello \x1b]0;there\x07'),
    "another HTTP": (b"HTTP/3.0 200 OK\r\n\r\n", "no HTTP/1.1"),
    "a status of letters": (b"HTTP/1.1 two OK\r\n\r\n", "no HTTP"),
    "nothing": (b"", "hung up without an answer"),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "header line"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, "headers"),
    "headers that are none": (b"HTTP/1.1 200 OK\r\n\x00\xff\r\n" + ALL + b"\r\n" + BODY[:3], "headers are broken"),
    "redirect to a file": (answer(b"Location: file:///etc/passwd\r\n", status=b"302 Found"), '"file" is neither'),
    "redirect to ftp": (answer(b"Location: ftp://127.0.0.1/x\r\n", status=b"301 Moved"), '"ftp" is neither'),
    "redirect to data": (answer(b"Location: data:,x\r\n", status=b"307 T"), '"data" is neither'),
    "redirect that hides": (answer(b"Location: http://127.0.0.1/\x1b[2J\r\n", status=b"308 P"), "control character"),
    "redirect to itself": (answer(b"Location: /x\r\n", status=b"302 Found"), f"more than {MAX_REDIRECTS} times"),
    "redirect to no host": (answer(b"Location: http://[::1\r\n", status=b"302 Found"), "Invalid IPv6"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_fetch__broken_answer__is_refused_in_words_of_ours(name: str) -> None:
    sent, said = BROKEN[name]
    with serving({"/x": sent}) as (port, _):
        error = refused(f"http://127.0.0.1:{port}/x")
    assert error.code == "URL_DOWN" and said in error.message
    assert error.hint == "check the URL, or download it and name the file"


def test_fetch__broken_off_tls__is_no_end_of_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls, authority = certified(tmp_path, "files.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.setattr(peer, "look_up", lambda host, port, end: [(socket.AF_INET, ("127.0.0.1", port))])
    with serving({"/x": answer(CLOSE, BODY), "/y": answer(ALL, BODY)}, tls) as (port, _):
        assert take(f"https://files.example.com:{port}/y")[0] == BODY
        assert "cut off" in refused(f"https://files.example.com:{port}/x").message
        assert "certificate" in refused(f"https://other.example.com:{port}/y").message


def test_fetch__redirect__is_followed_but_not_from_https_to_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, authority = certified(tmp_path, "files.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.setattr(peer, "look_up", lambda host, port, end: [(socket.AF_INET, ("127.0.0.1", port))])
    with serving({"/x": answer(ALL, BODY)}) as (plain, asked):
        down = answer(f"Location: http://127.0.0.1:{plain}/x\r\n".encode(), status=b"302 Found")
        here = answer(b"Location: y%20z?q=%26&r=s t#part\r\n", status=b"303 See")
        with serving({"/a/x": here, "/a/y%20z?q=%26&r=s%20t": answer(ALL, BODY), "/down": down}, tls) as (port, _):
            assert take(f"https://files.example.com:{port}/a/x")[0] == BODY
            assert "from https to http" in refused(f"https://files.example.com:{port}/down").message
    assert asked == []


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("/a b", "/a%20b"),
        ("/ä/%20?q=ü&r=<>", "/%C3%A4/%20?q=%C3%BC&r=%3C%3E"),
        ("", "/"),
        ("?q=1", "/?q=1"),
        ("/{a}|b^[c]#no", "/{a}|b^[c]"),
    ],
)
def test_fetch__odd_characters__go_out_as_a_browser_writes_them(written: str, asked: str) -> None:
    with serving({asked: answer(ALL, BODY)}) as (port, seen):
        assert take(f"http://127.0.0.1:{port}{written}")[0] == BODY
    assert seen == [asked]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a\nb",
        "http://127.0.0.1/\x00",
        "http://127.0.0.1/\x85",
        "http://a b/",
        "http://",
        "http:///x",
        "http://[::1",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://a..b/",
        f"http://{'a' * 70}.example.com/",
        "http://user:word@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
    ],
)
def test_fetch__url_that_is_none__is_refused_before_anything_is_asked(url: str) -> None:
    assert refused(url).code == "URL_DOWN"


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("part", ["headers", "body"])
def test_fetch__server_that_drips__is_bounded_by_the_time_for_all_of_it(
    scheme: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, authority = certified(tmp_path, "files.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.setattr(peer, "look_up", lambda host, port, end: [(socket.AF_INET, ("127.0.0.1", port))])
    ended = threading.Event()

    def drip(wire: socket.socket) -> None:
        wire.sendall(answer(ALL) if part == "body" else b"HTTP/1.1 200 OK\r\nX: ")
        while not ended.wait(0.02):
            wire.sendall(b"x")

    with serving(drip, tls if scheme == "https" else None) as (port, _):
        host = "files.example.com" if scheme == "https" else "127.0.0.1"
        error = refused(f"{scheme}://{host}:{port}/x", seconds=0.5)
        ended.set()
    assert error.code == "URL_DOWN" and "within 0.5 s" in error.message and "--timeout" in error.hint


def test_fetch__server_that_falls_silent__is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SILENCE_SECONDS", 0.2)
    ended = threading.Event()
    with serving(lambda wire: wire.sendall(answer(ALL, b"x")) or ended.wait()) as (port, _):  # type: ignore[func-returns-value]
        error = refused(f"http://127.0.0.1:{port}/x", seconds=600)
        ended.set()
    assert "nothing came from it" in error.message


@pytest.mark.parametrize("sent", [answer(ALL, BODY), chunked(BODY), answer(CLOSE, BODY)])
def test_fetch__more_than_is_taken__is_refused(sent: bytes) -> None:
    with serving({"/x": sent}) as (port, _):
        assert take(f"http://127.0.0.1:{port}/x", most=len(BODY))[0] == BODY
        error = refused(f"http://127.0.0.1:{port}/x", most=len(BODY) - 1)
    assert error.code == "TOO_LARGE" and "CID" in error.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433"])
def test_fetch__private_address__is_not_even_asked(host: str) -> None:
    with serving({"/x": answer(ALL, BODY)}) as (port, asked):
        error = refused(f"http://{host}:{port}/x", private=False)
    assert error.code == "URL_PRIVATE" and "--allow-private" in error.hint and asked == []


def test_fetch__redirect_to_a_private_address__is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "is_public", lambda address: address == "127.0.0.1")
    with serving({"/x": answer(ALL, BODY)}) as (inside, asked):
        for place in (f"http://127.0.0.2:{inside}/x", f"//127.0.0.2:{inside}/x", f"http://localhost.:{inside}/x"):
            away = answer(f"Location: {place}\r\n".encode(), status=b"302 Found")
            monkeypatch.setattr(peer, "look_up", _looked_up)
            with serving({"/x": away}) as (port, _):
                assert refused(f"http://127.0.0.1:{port}/x", private=False).code == "URL_PRIVATE"
    assert asked == []


def _looked_up(host: str, port: int, end: float) -> list[peer.Address]:
    return [(socket.AF_INET, ("127.0.0.2" if host.startswith("localhost") else host, port))]


class _Full(io.BytesIO):
    def write(self, data: object, /) -> int:
        raise OSError(28, "No space left on device")


def test_fetch__disk_that_is_full__is_no_fault_of_the_server() -> None:
    with serving({"/x": answer(ALL, BODY)}) as (port, _), pytest.raises(HearthError, match="No space left") as caught:
        fetch(f"http://127.0.0.1:{port}/x", _Full(), seconds=30, most=1 << 20, allow_private=True)
    assert caught.value.code == "FILE_REFUSED" and "df -h" in caught.value.hint
