"""One HTTP exchange with a search endpoint, through the engine's gate: a deadline, a bound, no redirects."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlsplit

from steelyard.base.errors import MachineError, shown
from steelyard.net.endpoint import Endpoint, EndpointError


def exchange(url: str, body: object, seconds: float) -> tuple[int, str]:
    """Status and text of the answer; GET where the body is None, else POST as JSON.

    Raises MachineError when the endpoint gives no whole answer within the time or the size, or when the extra
    `api` is not installed; ConfigError for an address that is none, or holds a user.
    """
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    try:
        answer = _endpoint(base).ask(url.removeprefix(base), body, timeout=seconds)
    except EndpointError as error:
        raise MachineError(f"the endpoint {shown(url)} {error.problem}") from None
    return answer.status, answer.text


@cache
def _endpoint(base: str) -> Endpoint:
    """Keeps connections alive from query to query, so that latencies are those of searching."""
    return Endpoint(base)
