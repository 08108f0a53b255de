"""The one way out to the network: JSON over HTTP with an endpoint that may drip, flood, lie or hang.

    answer = Endpoint("http://localhost:8000", key, timeout=10.0).ask("/v1/rerank", {"query": "..."})
    answer.status, answer.json()

A deadline bounds the whole exchange: name lookup, connection, TLS, request, every byte of the answer. Nothing is
decompressed, no redirect is followed, the key is only ever in the header of a request to this address. Whatever
goes wrong is an EndpointError, which is an EmbedderError.
"""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from steelyard.base.errors import MASK, ConfigError, EmbedderError, quote
from steelyard.base.extensions import require
from steelyard.base.files import LONGEST_INTEGER
from steelyard.extensions.network.wire import Backend, ResponseTooLargeError, begin

if TYPE_CHECKING:
    import httpcore


LARGEST = 16 * 2**20
"""Bytes of an answer; 128 vectors of 4096 numbers in full precision take 12 MB."""
MARKS = 200_000
"""Quotes, brackets and braces of an answer: few bytes of these become many of Python's."""
OVERHEAD = 2**20
"""Bytes that headers, and the framing of chunks, may take beyond twice the largest answer."""


class _CompressedError(Exception):
    """The body is encoded."""


class EndpointError(EmbedderError):
    """An exchange that failed: what the `problem` is, and whether asking once more may help (`again`)."""

    def __init__(self, place: str, problem: str, *, again: bool = True) -> None:
        super().__init__(f"{place} {problem}")
        self.problem = problem
        self.again = again


@dataclass(frozen=True)
class Response:
    """What an endpoint answered: its status, its headers by lower-cased name, its body without the key."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def may_pass(self) -> bool:
        """Whether the status is of a fault that may be over soon: asking once more may help."""
        return self.status in (408, 425, 429) or self.status >= 500

    def json(self, most: int | None = None) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The body as JSON, of at most so many values where that is said.

        ValueError when it is not JSON, has more values, or would take many times its size in memory.
        """
        if sum(self.text.count(mark) for mark in '"[{') > MARKS or (most and self.text.count(",") >= most):
            raise ValueError("it has too many parts")
        try:
            return json.loads(self.text, parse_int=_integer)
        except RecursionError:
            raise ValueError("it is nested too deep") from None


def _integer(literal: str) -> int | float:
    """A whole number; one beyond the range of floats is infinite."""
    return int(literal) if len(literal) < LONGEST_INTEGER else float(literal)


def is_here(host: str) -> bool:
    """Whether a host is this machine by its address, or by the one name that is always its own.

    Other spellings of an address, such as 2130706433 or 127.1, are names here, which a resolver may send anywhere.

    >>> is_here("127.8.0.1"), is_here("::1"), is_here("localhost.example.org")
    (True, True, False)
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def check_address(url: str, key: Secret, what: str) -> None:
    """ConfigError unless this is an http or https address that holds no user, query, fragment or key.

    A key is sent over https, or to this machine. `what` is whose address it is, for the message. An address that
    may hold a key is not shown.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not (url.isascii() and url.isprintable()) or " " in url:
        told = "" if "@" in url else f" {quote(key.scrub(url))}"
        raise ConfigError(f"the address{told} of {what} cannot be read; write it as http://localhost:8000/v1")
    if "@" in parts.netloc or parts.query or parts.fragment or key.within(url):
        raise ConfigError(
            f"the address of {what} holds a user, a key or a query, which would be stored or shown; "
            f"write only {parts.scheme}://HOST/PATH, and set the key in its own variable"
        )
    if key and exposed(url):
        raise ConfigError(
            f"{what} at {quote(url)} would send its key over http, which is not encrypted; "
            "use https:// or an address of this machine, or unset the key"
        )


def exposed(url: str) -> bool:
    """Whether what is sent to an address goes over a network without TLS."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_here(parts.hostname or "")


class Endpoint:
    """An address that is asked with JSON; threads may share it, and connections are kept for the next request.

    Parameters
    ----------
    url
        An http or https address without user, query or fragment; ConfigError otherwise.
    key
        Sent as a bearer token with every request, and masked in answers and messages.
    timeout
        Seconds that one exchange may take as a whole.
    largest
        Bytes of an answer; more are an EndpointError.
    what
        What the endpoint is, for messages.
    """

    def __init__(
        self,
        url: str,
        key: Secret | None = None,
        *,
        timeout: float = 30.0,
        largest: int = LARGEST,
        what: str = "the endpoint",
    ) -> None:
        self.key = key or Secret()
        check_address(url, self.key, what)
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.largest = largest
        self.what = what

    def ask(self, path: str = "", body: object = None, *, timeout: float | None = None) -> Response:
        """POST the body as JSON to `path` below the address, or GET it without a body; the answer of any status.

        Raises EndpointError for no whole answer within the time or the size, MachineError when the extra
        `api` is not installed.
        """
        require("api", self.what)
        import httpcore

        seconds = self.timeout if timeout is None else timeout
        problem, again = "", True
        # Errors are raised outside the handlers: httpcore's own hold the request, and with it the key.
        try:
            return self._exchange(path, body, seconds)
        except (httpcore.TimeoutException, TimeoutError):
            problem = f"gave no whole answer within {seconds:g} s"
        except ResponseTooLargeError:
            problem, again = f"gave an answer of more than {self.largest / 2**20:g} MB", False
        except _CompressedError:
            problem, again = "gave a compressed answer, which was not asked for", False
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError, ValueError) as error:
            problem = f"cannot be reached or broke off ({quote(self.key.scrub(str(error)), 200)})"
        raise EndpointError(self.key.scrub(f"{self.what} at {self.url}"), self.key.scrub(problem), again=again)

    def _exchange(self, path: str, body: object, seconds: float) -> Response:
        begin(seconds, 2 * self.largest + OVERHEAD)
        method, content = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        with self._pool.stream(
            method,
            self.url + path,
            headers=self._headers(content is not None),
            content=content,
            extensions={"timeout": {"pool": seconds}},
        ) as response:
            headers = {n.decode("latin-1").lower(): v.decode("latin-1") for n, v in response.headers}
            if headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
                raise _CompressedError
            return Response(response.status, headers, self.key.scrub(self._read(response.iter_stream())))

    def _read(self, chunks: Iterable[bytes]) -> str:
        content = bytearray()
        for chunk in chunks:
            content += chunk
            if len(content) > self.largest:
                raise ResponseTooLargeError
        return content.decode("utf-8", "replace")

    def _headers(self, sends: bool) -> Mapping[bytes | str, bytes | str]:
        headers: dict[bytes | str, bytes | str] = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers["User-Agent"] = "steelyard"
        if sends:
            headers["Content-Type"] = "application/json"
        if self.key:
            headers["Authorization"] = f"Bearer {self.key.reveal()}"
        return headers

    @cached_property
    def _pool(self) -> httpcore.ConnectionPool:
        import httpcore

        pool = httpcore.ConnectionPool(
            ssl_context=httpcore.default_ssl_context(),
            proxy=_proxy(self.url),
            max_connections=None,
            max_keepalive_connections=8,
            keepalive_expiry=5.0,
            network_backend=cast(httpcore.NetworkBackend, Backend()),
        )
        weakref.finalize(self, pool.close)
        return pool


def _proxy(url: str) -> httpcore.Proxy | None:
    """The proxy that the environment names for this address (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY).

    Nothing to this machine goes through one, as it would carry a key over the network.
    """
    from urllib.request import getproxies, proxy_bypass  # they bring the whole of http

    import httpcore

    parts, known = urlsplit(url), getproxies()
    address = known.get(parts.scheme) or known.get("all")
    if not address or is_here(parts.hostname or "") or proxy_bypass(parts.hostname or ""):
        return None
    given = urlsplit(address if "//" in address else f"http://{address}")
    auth = (unquote(given.username), unquote(given.password or "")) if given.username else None
    return httpcore.Proxy(f"{given.scheme}://{given.netloc.rpartition('@')[2]}", auth=auth)


SHORTEST = 8
"""Shorter texts are place-holders, such as EMPTY, that servers without keys are given; masking them in
messages would only make these unreadable."""


class Secret:
    """A text shown as ``***`` wherever it is printed, formatted or logged; `reveal` gives it away.

    Raises ConfigError, without the value, when the text cannot stand in an HTTP header.

    >>> f"key {Secret('sk-1')}"
    'key ***'
    """

    __slots__ = ("_echoes", "_text")

    def __init__(self, text: str = "", origin: str = "the API key") -> None:
        self._text = text.strip()
        if not (self._text.isascii() and self._text.isprintable()) or " " in self._text:
            raise ConfigError(f"{origin} holds characters that no HTTP header can carry; copy the key again")
        self._echoes = _echoes(self._text) if len(self._text) >= SHORTEST else None

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return MASK if self._text else "no key"

    def __reduce__(self) -> str:
        raise TypeError("a key is never stored")

    def reveal(self) -> str:
        """The text itself, for a request's header and for nothing else."""
        return self._text

    def within(self, text: str) -> bool:
        """Whether the text holds the secret, however it is written."""
        return self._echoes is not None and self._echoes.search(text) is not None

    def scrub(self, text: str) -> str:
        """The text with every occurrence of the secret masked, however it is written."""
        return text if self._echoes is None else self._echoes.sub(MASK, text)


def _echoes(text: str) -> re.Pattern[str]:
    """The ways in which servers repeat a key: plain, spaced, escaped as in URLs and JSON, in hex, in base64."""
    plain = r"\s*".join(rf"(?:{re.escape(c)}|%{ord(c):02x}|\\u00{ord(c):02x})" for c in text)
    digits = r"[\s:]*".join(f"{ord(c):02x}" for c in text)
    coded = [re.sub(r"\\\+|/", "[-+/_]", re.escape(_base64(text.encode(), before))) for before in range(3)]
    return re.compile("|".join([plain, digits, *coded]), re.IGNORECASE)


def _base64(data: bytes, before: int) -> str:
    """Base64 of the data after so many other bytes: the characters that depend on the data alone."""
    bits = 8 * (before + len(data))
    return base64.b64encode(bytes(before) + data).decode()[-(-8 * before // 6) : bits // 6]
