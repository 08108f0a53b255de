"""One HTTP exchange with a search endpoint: a deadline for all of it, a bound on the answer, no redirects."""

from __future__ import annotations

import atexit
import time
from functools import cache
from typing import TYPE_CHECKING

from steelyard.embedders.extras import require
from steelyard.errors import MachineError, shown

if TYPE_CHECKING:
    import httpx

LARGEST = 16 * 2**20
"""Bytes of an answer."""


def exchange(url: str, body: object, seconds: float) -> tuple[int, str]:
    """Status and text of the answer; GET where the body is None, else POST as JSON.

    Raises MachineError when the endpoint gives no whole answer within the time or the size, or when the extra
    `api` is not installed.
    """
    require("api", "an endpoint")
    import httpx

    deadline = time.monotonic() + seconds
    content = bytearray()
    try:
        with _client().stream("GET" if body is None else "POST", url, json=body, timeout=seconds) as response:
            for chunk in response.iter_raw():
                content += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
                if len(content) > LARGEST:
                    raise MachineError(
                        f"the endpoint {shown(url)} gave more than {LARGEST >> 20} MB; ask for less"
                    )
            return response.status_code, content.decode("utf-8", "replace")
    except (httpx.TimeoutException, TimeoutError):
        raise MachineError(f"the endpoint {shown(url)} gave no whole answer within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MachineError(f"the endpoint {shown(url)} cannot be reached or broke off ({error})") from None


@cache
def _client() -> httpx.Client:
    """Keeps connections alive from query to query, so that latencies are those of searching."""
    import httpx

    client = httpx.Client(headers={"Accept": "application/json", "Accept-Encoding": "identity"})
    atexit.register(client.close)
    return client
