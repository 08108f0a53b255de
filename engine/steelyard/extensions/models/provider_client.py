"""Questions to a provider over HTTP: time-outs, retries, and errors that name the remedy.

Embedders and re-rankers ask by it, and read the answer themselves.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import EmbedderError, quote
from steelyard.base.extensions import require
from steelyard.extensions.models.settings import ApiSettings
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Response

if TYPE_CHECKING:
    from tenacity import RetryCallState

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
MAX_WAIT_SECONDS = 60.0
"""Seconds a server may ask us to wait; when it asks for more, the call fails at once."""
ATTEMPTS, TIMEOUT = 5, 30.0
"""Of one request, and seconds that each may take, where texts are indexed."""
LIVE_ATTEMPTS, LIVE_TIMEOUT = 2, 10.0
"""A search that waits has keywords to fall back to; indexing has not, and is more patient."""


class _TryAgainError(EmbedderError):
    """A failure that may pass; `pause` is what the server asked us to wait, in seconds."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class ProviderClient:
    """Asks the endpoint of `settings`, at a path below its address.

    `timeout` bounds one request as a whole, in seconds. A failure that may pass (429, 5xx, time-out,
    broken connection, an answer cut off) is tried again, `attempts` times in all, with exponential
    back-off or after what the server asked for.

    The key is only ever in the header of a request: not in an error, nor in the chain behind it.
    """

    def __init__(
        self,
        settings: ApiSettings,
        path: str,
        *,
        timeout: float,
        attempts: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._path, self._attempts, self._sleep = settings, path, attempts, sleep
        self._endpoint = Endpoint(settings.base_url, settings.key, timeout=timeout, what=settings.name)

    def ask(self, body: dict[str, Any]) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The answer as JSON, asked for again while the failure may pass; EmbedderError when there is none.

        Raises MachineError when the extra `api` is not installed.
        """
        require("api", f"the model {self._settings.name}")
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

        retrying = Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=_pause,
            retry=retry_if_exception_type(_TryAgainError),
            sleep=self._sleep,
            reraise=True,
        )
        failed = ""
        try:
            return retrying(self._once, body)
        except _TryAgainError as error:
            failed = str(error)
        raise EmbedderError(f"{failed} (asked {self._attempts} times)")

    def _once(self, body: dict[str, object]) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The answer to one request."""
        failed: EndpointError | None = None
        try:
            answer = self._endpoint.ask(f"/{self._path}", body)
        except EndpointError as error:
            failed = error
        if failed is not None:
            kind = _TryAgainError if failed.again else EmbedderError
            raise kind(f"{failed}; {self._remedy()}")
        if answer.status != 200:
            raise self._refusal(answer)
        try:
            return answer.json()
        except ValueError:
            problem = quote(answer.text)
        raise self._again(f"answered with {problem}, not with complete JSON", self._remedy())

    def _refusal(self, answer: Response) -> EmbedderError:
        """The error for a status other than 200."""
        status, said = answer.status, answer.text
        what = f"refused with status {status}" + (f": {quote(said, 300)}" if said.strip() else "")
        if answer.may_pass:
            pause = _retry_after(answer.headers.get("retry-after", ""))
            if pause is not None and pause > MAX_WAIT_SECONDS:
                return self.failure(f"{what}, and asks to wait {pause:.0f} s", "run the command again later")
            return self._again(what, "it may be overloaded; try again later", pause)
        if status in (401, 403):
            variable = self._settings.about.key or "the endpoint's access rules"
            return self.failure(what, f"check {variable}")
        if 300 <= status < 400:
            return self.failure(what, f"it moved; set {self._settings.about.url} to where it is now")
        return self.failure(what, f"check the model {quote(self._settings.model)} and {self._settings.about.url}")

    def _remedy(self) -> str:
        if self._settings.provider == "local":
            return (
                f"start the server, set {self._settings.about.url} to its address, "
                "or set VOYAGE_API_KEY or OPENAI_API_KEY"
            )
        return "check the network and try again"

    def failure(self, what: str, remedy: str) -> EmbedderError:
        """The error for an answer of which `what` is wrong, without the key."""
        return EmbedderError(self._message(what, remedy))

    def _again(self, what: str, remedy: str, pause: float | None = None) -> _TryAgainError:
        return _TryAgainError(self._message(what, remedy), pause)

    def _message(self, what: str, remedy: str) -> str:
        text = f"{self._settings.name} at {self._settings.base_url} {what}; {remedy}"
        return self._settings.key.scrub(text)


def _pause(state: RetryCallState) -> float:
    """Seconds before the next attempt: what the server asked for, else exponential with some jitter."""
    from tenacity import wait_exponential, wait_random

    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _TryAgainError) and error.pause is not None:
        return error.pause
    wait = wait_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE) + wait_random(0, FIRST_PAUSE)
    return wait(state)


def _retry_after(value: str) -> float | None:
    """Seconds, from a number or from an HTTP date; None when it is neither."""
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return float(value)
    from email.utils import parsedate_to_datetime  # a server that asks to wait is rare, and this slow to import

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
