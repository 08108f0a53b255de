"""Two hundred ways in which an embedding endpoint may behave: each ends in time and in little memory.

    python tests/faults/endpoints.py [--minutes 10] [--goal 200] [--fresh] [--only NUMBER]

A piece of work is one behaviour: a right answer dripped, flooded, cut, held back, lied about, compressed, or
sent elsewhere, where the key must not arrive. It runs in a process of its own, whose memory is looked at.
"""

import gzip
import json
import resource
import socket
import threading
import time
from itertools import product

import campaign

from steelyard.base.errors import EmbedderError
from steelyard.extensions.models import ApiEmbedder, ApiSettings, Secret

KEY = "sk-test-0123456789abcdef"
DEADLINE = 1.0
GRACE = 1.0
MEGABYTES = 300
TEXTS = ["one", "two"]


RIGHT = json.dumps({"data": [{"index": at, "embedding": [0.5] * 8} for at in range(2)]}).encode()
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(RIGHT) + RIGHT
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(RIGHT), RIGHT)
PLACES = (0, 1, 5, 9, 12, 15, 16, 17, 20, 30, 40, 50, 60, 66, 80, 100, 120, 140, 160)
PIECES = (b"x", b"0", b" ", b"X: y\r\n", b"1\r\n \r\n", b"5;e=", b"[" * 50, b"\r\n")
PIECES += (b"HTTP/1.1 100 Continue\r\n\r\n",)


def sending(start, piece, pause, over):
    def behave(connection):
        connection.sendall(start)
        while not over.wait(pause):
            connection.sendall(piece if pause else piece * 5000)

    return behave


def saying(*parts):
    def behave(connection):
        for part in parts:
            connection.sendall(part)

    return behave


def answered(body, *headers, status=b"200 OK"):
    lines = b"".join(header + b"\r\n" for header in headers)
    return saying(b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n" % (status, lines, len(body)) + body)


def bombs():
    """Small bodies that unpack to gigabytes, or that become much in memory."""
    empty = gzip.compress(b"")
    yield answered(gzip.compress(gzip.compress(b"\0" * 2**24)), b"Content-Encoding: gzip, gzip")
    for encoding in (b"gzip", b"deflate", b"br", b"zstd", b"GZIP", b"x-gzip", b"identity, gzip"):
        yield answered(empty * 1000, b"Content-Encoding: " + encoding)
    for body in (b"[]," * 2**20, b'"a",' * 2**20, b"{}," * 2**20, b"0," * 2**22, b"1e308," * 2**20, b"[" * 2**20):
        yield answered(b"[" + body + b"0]")
    yield answered(b'{"data": [{"index": 0, "embedding": [' + b"9" * 4000 + b"]}]}")
    yield answered(json.dumps({f"k{at}": at for at in range(300_000)}).encode())
    yield answered(b" " * (15 * 2**20) + RIGHT)


def lies(other):
    """Wrong statuses, lengths, headers, and addresses to go to."""
    there = b"Location: " + other.encode()
    for status in (b"301 x", b"302 x", b"303 x", b"307 x", b"308 x", b"300 x"):
        yield answered(b"", there, status=status)
    waits = ("\u00b2".encode(), b"9" * 5000, b"-1", b"1e9", b"Thu, 99 Foo 2026", b"3600", b"nan", b"0" * 60_000)
    for wait in waits:
        yield answered(b"", b"Retry-After: " + wait, status=b"503 x")
    for length in (b"-1", b"0x10", b"99999999999999999999", "\u0662".encode(), b"1, 2", b"", b"+7"):
        yield saying(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n" + RIGHT)
    yield from (answered(RIGHT.replace(b"0.5", number)) for number in (b"NaN", b"1e999"))
    yield from (answered(body) for body in (RIGHT[:-1], RIGHT * 2, b"\xff\xfe"))
    for status in (b"101 x", b"204 x", b"206 x", b"999 x", b"20 x", b"-200 x", b"401 " + KEY.encode()):
        yield answered(KEY.encode(), status=status)
    yield saying(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600)
    yield saying(b"SSH-2.0-OpenSSH_9.9\r\n")
    yield saying(b"")


def behaviours(other, over):
    made = list(bombs()) + list(lies(other))
    for whole, place in product((PLAIN, CHUNKED), PLACES):
        made.append(saying(whole[:place]))
        made.append(lambda connection, start=whole[:place]: (connection.sendall(start), over.wait(8)))
    for place, piece in product((0, 17, 60, 66), PIECES):
        made.append(sending(CHUNKED[:place], piece, 0.05, over))
        made.append(sending(CHUNKED[:place], piece, 0, over))
    for step in (1, 3, 7):
        made.append(sending(b"", PLAIN[:step], 0.02, over))
    return made


class Server:
    """Listens on the loopback address; keeps what it heard."""

    def __init__(self, behave):
        self.heard = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._behave = behave
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            try:
                self.heard.append(connection.recv(65536))
                self._behave(connection)
            except OSError:
                pass


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(number):
    over = threading.Event()
    other = Server(answered(RIGHT))
    made = behaviours(other.url, over)
    behave = made[number % len(made)]
    server = Server(behave)
    settings = ApiSettings("openai", f"{server.url}/v1", "tiny", 8, Secret(KEY))
    embedder = ApiEmbedder(settings, timeout=DEADLINE, attempts=1, sleep=lambda seconds: None)
    before, began = memory(), time.monotonic()
    outcome = "answered"
    try:
        embedder.embed(TEXTS)
    except EmbedderError as error:
        outcome = "refused"
        assert KEY not in str(error), "the key is in the message"
        assert str(error).isprintable(), f"{error!a} moves a terminal"
    took, grown = time.monotonic() - began, memory() - before
    over.set()
    assert took < DEADLINE + GRACE, f"took {took:.2f} s"
    assert grown < MEGABYTES, f"took {grown:.0f} MB"
    assert other.heard == [], "another address was asked"
    return {"behaviours": 1, outcome: 1}


if __name__ == "__main__":
    import httpcore  # noqa: F401 -- loaded before the clock runs
    import tenacity  # noqa: F401 -- as above

    assert len(behaviours("http://x", threading.Event())) >= 190
    campaign.main("endpoints", __doc__, 200, campaign.isolated(work))
