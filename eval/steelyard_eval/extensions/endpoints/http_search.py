"""A search over HTTP as a contender: the form of the request, and the place of ids in the answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from typing import Any
from urllib.parse import quote as url_quote
from urllib.parse import unquote, urldefrag, urlsplit

from steelyard.base.errors import MASK, ConfigError, DataError, MachineError, quote
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Response, Secret, exposed
from steelyard.memory.query import Query
from steelyard_eval.extensions.endpoints import answer_form
from steelyard_eval.extensions.endpoints.answer_form import FormError, filled, ids_of

OPTIONS = ("body", "ids")
TIMEOUT = 10.0
KEYS = "key|token|secret|passw|pwd|auth|cred|jwt|session"  # What the name of a key holds, as a regular expression
KEY_NAMES = rf'[^=&"]*(?:{KEYS})[^=&"]*|sig|signature|code|pass|k'
_KEYED = re.compile(rf"(?P<name>[?&;](?:{KEY_NAMES}))=(?P<value>[^&;#\s]+)", re.IGNORECASE)
"""The parameters of an address that are keys."""
_COUNTED = re.compile(r"[?&;]k=\d{1,5}(?=[&;#]|$)")
"""How many results are wanted: a name of keys, too."""


@dataclass(frozen=True)
class HttpSearch:
    """An HTTP search endpoint.

    In `url`, an http or https address, ``{query}`` is replaced by the text of the query, percent-encoded, and
    ``{limit}`` by the number of results wanted; both may stand in the path and after the question mark. `body` is
    JSON that is sent with POST, in which the string ``"{limit}"`` is replaced by a number and ``{query}`` inside
    any string by the text; left out, the request is a GET. `ids` is a JMESPath expression (a leading ``$.`` is
    allowed) for the ids of the answer, best first: without it the first list that looks like results is read.
    `timeout` is in seconds, of one exchange as a whole.

    Raises ConfigError for an invalid address, a template without the query, or a path that cannot be parsed.
    """

    url: str = field(repr=False)
    body: str = field(default="", repr=False)
    ids: str = ""
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        _check_address(self.url)
        if exposed(self.url) and holds_key(_COUNTED.sub("", self.url) + self.body):
            raise ConfigError(
                f"endpoint {quote(self.shown)} would send its key over http, which is not encrypted; "
                "use https://, or an address of this machine"
            )
        if "{query}" not in self.url + self.body:
            raise ConfigError(f"endpoint {quote(self.shown)} lacks {{query}}; write it where the text belongs")
        self._template  # noqa: B018 -- read now, so that what is faulty is named before anything runs
        answer_form.path_of(self.ids) if self.ids else None

    @classmethod
    def of(cls, text: str) -> HttpSearch:
        """Read an endpoint from one text; ``#ids=PATH&body=JSON`` may follow the address."""
        url, fragment = urldefrag(text)
        body, ids = answer_form.options_of(fragment, OPTIONS, f"endpoint {quote(masked(url))}")
        return cls(url, body, ids)

    @property
    def label(self) -> str:
        """The host and path."""
        parts = urlsplit(self.url)
        return f"{parts.netloc}{parts.path}"

    @property
    def shown(self) -> str:
        """The address as messages and documents have it: keys in it are masked."""
        return masked(self.url)

    @cached_property
    def _template(self) -> Any:  # noqa: ANN401 -- any JSON value
        return answer_form.template_of(self.body, "body") if self.body else None

    def ask(self, query: Query, limit: int) -> list[str]:
        """Return the ids of one query's results, best first; DataError for an unusable answer."""
        values = {"{query}": url_quote(query.text, safe=""), "{limit}": str(limit)}
        body = None if self._template is None else filled(self._template, query.text, limit)
        answer = exchange(_replaced(self.url, values), body, self.timeout, self._hide)
        try:
            if answer.status != 200:
                raise FormError(f"answered with status {answer.status}: {quote(answer.text, 200)}")
            try:
                document = answer.json(answer_form.MOST_VALUES)
            except ValueError as error:
                problem = f"answered with {quote(answer.text, 200)}, which is not JSON that can be read ({error})"
                raise FormError(f"{problem}; request only ids") from None
            return ids_of(document, self.ids)[1]
        except FormError as error:
            raise DataError(f"endpoint {self.label}, query {quote(query.id)}: {error}") from None

    def _hide(self, text: str) -> str:
        return reduce(lambda told, secret: secret.scrub(told), self._secrets, masked(text))

    @cached_property
    def _secrets(self) -> tuple[Secret, ...]:
        keys = (unquote(match["value"]) for match in _KEYED.finditer(self.url) if "{" not in match["value"])
        return tuple(Secret(value, "a key in the address of the endpoint") for value in keys)


def masked(url: str) -> str:
    """The address with the values of parameters that are keys, by their names, masked."""
    return _KEYED.sub(lambda match: match[0] if "{" in match["value"] else f"{match['name']}={MASK}", url)


def holds_key(text: str) -> bool:
    """Whether the address, or the body after it, has a key by its name."""
    return masked(text) != text or re.search(rf'"(?:{KEY_NAMES})"\s*:', unquote(text), re.IGNORECASE) is not None


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or "{" in parts.netloc or any(c.isspace() or not c.isprintable() for c in url):
        raise ConfigError(
            f"endpoint {quote(masked(url))} is no address; write http://HOST/PATH?q={{query}}&limit={{limit}}"
        )
    if "@" in parts.netloc:
        raise ConfigError("the address of an endpoint may not hold a user or a password, which reports would show")


def _replaced(text: str, values: dict[str, str]) -> str:
    """Replace every placeholder in one pass, so that placeholders inside a query stay unchanged."""
    for_limit = [part.replace("{limit}", values["{limit}"]) for part in text.split("{query}")]
    return values["{query}"].join(for_limit)


def exchange(url: str, body: object, seconds: float, hide: Callable[[str], str]) -> Response:
    """The answer, without what `hide` takes out of texts; GET where the body is None, else POST as JSON.

    A search changes nothing, so it is asked once more, in what is left of the time, when the connection broke off:
    servers close those that they kept without a word. Raises MachineError when there is no whole answer within the
    time or the size, or when the extra `api` is not installed; ConfigError for an address that is none.
    """
    parts = urlsplit(url)
    base, until = f"{parts.scheme}://{parts.netloc}", time.monotonic() + seconds
    left, again = seconds, True
    while True:
        try:
            answer = _endpoint(base).ask(url.removeprefix(base), body, timeout=left)
            return replace(answer, text=hide(answer.text))
        except EndpointError as error:
            left = until - time.monotonic()
            if not again or not error.again or left <= 0:
                raise MachineError(f"the endpoint {quote(hide(url))} {hide(error.problem)}") from None
            again = False


@cache
def _endpoint(base: str) -> Endpoint:
    """Keeps connections alive from query to query, so that latencies are those of searching."""
    return Endpoint(base)
