"""One HTTP exchange with a search endpoint, by the extension `network`: a deadline, a bound, no redirects."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from urllib.parse import urlsplit

from steelyard.base.errors import MachineError, shown
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Response


def exchange(url: str, body: object, seconds: float, hide: Callable[[str], str]) -> Response:
    """The answer, without what `hide` takes out of texts; GET where the body is None, else POST as JSON.

    A search changes nothing, so it is asked once more, in what is left of the time, when the connection broke off:
    servers close those that they kept without a word. Raises MachineError when there is no whole answer within the
    time or the size, or when the extra `api` is not installed; ConfigError for an address that is none.
    """
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    path, until = url.removeprefix(base), time.monotonic() + seconds
    try:
        answer = _twice(_endpoint(base), path, body, until)
    except EndpointError as error:
        raise MachineError(f"the endpoint {shown(hide(url))} {hide(error.problem)}") from None
    return replace(answer, text=hide(answer.text))


def _twice(endpoint: Endpoint, path: str, body: object, until: float) -> Response:
    try:
        return endpoint.ask(path, body, timeout=until - time.monotonic())
    except EndpointError as error:
        if not error.again or (left := until - time.monotonic()) <= 0:
            raise
    return endpoint.ask(path, body, timeout=left)


@cache
def _endpoint(base: str) -> Endpoint:
    """Keeps connections alive from query to query, so that latencies are those of searching."""
    return Endpoint(base)
