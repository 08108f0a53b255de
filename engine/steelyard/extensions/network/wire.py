"""Sockets for `endpoint`: every step of an exchange ends at its deadline, and its bytes are counted.

httpcore speaks HTTP over these; they have the methods of its NetworkBackend and NetworkStream without being
subclasses, because it comes with an extra. An exchange runs in one thread, so its deadline is the thread's.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl


class ResponseTooLargeError(Exception):
    """More bytes came than the exchange may have."""


@dataclass
class _Exchange(threading.local):
    """The exchange of this thread: when it has to be over, and how many bytes may still come."""

    deadline: float = 0.0
    bytes: int = 0


_exchange = _Exchange()


def begin(seconds: float, most: int) -> None:
    """From now on this thread has so many seconds, and may receive so many bytes."""
    _exchange.deadline = time.monotonic() + seconds
    _exchange.bytes = most


def _seconds() -> float:
    """What is left of the time; TimeoutError when nothing is."""
    left = _exchange.deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class Stream:
    """A connected socket; see httpcore.NetworkStream. Time-outs that are given are not looked at."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes, none at the end; TimeoutError, ResponseTooLargeError or another OSError."""
        self._sock.settimeout(_seconds())
        data = self._sock.recv(max_bytes)
        _exchange.bytes -= len(data)
        if _exchange.bytes < 0:
            raise ResponseTooLargeError
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all; httpcore then still reads what a server answered that closed early."""
        import httpcore

        view = memoryview(buffer)
        try:
            while view:
                self._sock.settimeout(_seconds())
                view = view[self._sock.send(view) :]
        except ConnectionError as error:
            raise httpcore.WriteError(str(error)) from None

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        """The same connection behind TLS; the certificate is checked."""
        self._sock.settimeout(_seconds())
        try:
            return Stream(ssl_context.wrap_socket(self._sock, server_hostname=server_hostname))
        except BaseException:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 -- as httpcore has it
        """Whether an idle connection was closed (or sent something unasked), and the TLS object."""
        if info == "ssl_object":
            return getattr(self._sock, "_sslobj", None)
        return _readable(self._sock) if info == "is_readable" else None


class Backend:
    """See httpcore.NetworkBackend."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        """A connection to the first address of the host that takes one."""
        failed: OSError = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in _addresses(host, port):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_seconds())
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                failed = error
            else:
                return Stream(sock)
        raise failed

    def sleep(self, seconds: float) -> None:
        """Not used without retries."""
        time.sleep(seconds)


def _addresses(host: str, port: int) -> list[Any]:
    """The addresses of a host.

    They are looked up in a thread that is left behind at the deadline: look-ups know no time-out.
    """
    addresses: list[Any] = []
    failed: list[OSError] = []

    def look() -> None:
        try:
            addresses.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(OSError(str(error)))

    return _in_time(look, addresses, failed)


def _in_time(call: Callable[[], None], found: list[Any], failed: list[OSError]) -> list[Any]:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(_seconds())
    if thread.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]
    return found


def _readable(sock: socket.socket) -> bool:
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    watch = select.poll()
    watch.register(sock, select.POLLIN)
    return bool(watch.poll(0))
