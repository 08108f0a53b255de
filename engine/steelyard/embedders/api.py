"""Vectors from an embedding endpoint over HTTP: batches, time-outs, retries, and distrust of the answer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.base.errors import EmbedderError, shown
from steelyard.base.extras import require
from steelyard.embedders.embed import Kind, Vectors, unit
from steelyard.embedders.settings import ApiSettings
from steelyard.net.endpoint import Answer, Endpoint, EndpointError

if TYPE_CHECKING:
    from tenacity import RetryCallState

ATTEMPTS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
PATIENCE = 60.0
"""Seconds a server may ask us to wait; when it asks for more, the call fails at once."""
PROBE = 0.5
"""Seconds within which Ollama has to list its loaded models. Source: EchoVault's program."""


class _TryAgainError(EmbedderError):
    """A failure that may pass; `pause` is what the server asked us to wait, in seconds."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class ApiEmbedder:
    """Asks the endpoint of `settings`.

    `timeout` bounds one request as a whole, in seconds. A failure that may pass (429, 5xx, time-out,
    broken connection, an answer cut off) is tried again, `attempts` times in all, with exponential
    back-off or after what the server asked for. Blank texts are zeros and are not sent.

    The key is only ever in the header of a request: not in an error, nor in the chain behind it.
    """

    recipe: str | None = None

    def __init__(
        self,
        settings: ApiSettings,
        *,
        timeout: float = 30.0,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self.model = settings.name
        self.identity = json.dumps(settings.to_json(), sort_keys=True)
        self._endpoint = Endpoint(settings.base_url, settings.key, timeout=timeout, what=settings.name)
        self._attempts = attempts
        self._sleep = sleep
        self._dimension = settings.dimension

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed. Raises MachineError when the extra `api` is not installed."""
        shape = self.settings.about.shape
        spoken = {at: text[: shape.longest] for at, text in enumerate(texts) if text.strip()}
        rows = [self._ask(batch, kind) for batch in _batches(list(spoken.values()), shape.batch, shape.characters)]
        result = np.zeros((len(texts), self._dimension or 1), dtype=np.float32)
        if spoken:
            result[list(spoken)] = np.concatenate(rows)
        return unit(result)

    def warm(self) -> bool:
        """True; for Ollama, whether the model is in memory, and False when it does not say so within 0.5 s."""
        if not self.settings.is_ollama:
            return True
        try:
            listed = Endpoint(self.settings.base_url.removesuffix("/v1"), what=self.model, timeout=PROBE)
            models = listed.ask("/api/ps").json()["models"]
            loaded = {str(model["name"]).split(":")[0] for model in models}
        except (EndpointError, ValueError, KeyError, TypeError):
            return False
        return self.settings.model.split(":")[0] in loaded

    # Inside

    def _ask(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32[len(texts), dim] of one request."""
        shape = self.settings.about.shape
        answer = self._patiently(shape.request(self.settings.model, texts, kind))
        problem = ""
        try:
            rows = _matrix(shape.rows(answer, len(texts)))
        except ValueError as error:
            problem = str(error)
        if problem:
            raise self._failure(f"answered with {problem}", "check that it is an embedding endpoint of this kind")
        expected = self._dimension or rows.shape[1]
        if rows.shape[1] != expected:
            raise self._failure(
                f"gave vectors of dimension {rows.shape[1]}, expected {expected}",
                f"set EMBEDDING_DIM={rows.shape[1]} and EMBEDDING_MODEL if that is the model you mean",
            )
        self._dimension = expected
        return rows

    def _patiently(self, body: dict[str, Any]) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The answer, asked for again while the failure may pass."""
        require("api", f"the embedder {self.model}")
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

    def _once(self, body: dict[str, Any]) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The answer to one request."""
        failed: EndpointError | None = None
        try:
            answer = self._endpoint.ask(f"/{self.settings.about.shape.path}", body)
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
            problem = shown(answer.text)
        raise self._again(f"answered with {problem}, not with whole JSON", self._remedy())

    def _refusal(self, answer: Answer) -> EmbedderError:
        """The error for a status other than 200."""
        status, said = answer.status, answer.text
        what = f"refused with status {status}" + (f": {shown(said, 300)}" if said.strip() else "")
        if answer.may_pass:
            pause = _retry_after(answer.headers.get("retry-after", ""))
            if pause is not None and pause > PATIENCE:
                return self._failure(f"{what}, and asks to wait {pause:.0f} s", "run the command again later")
            return self._again(what, "it may be overloaded; try again later", pause)
        if status in (401, 403):
            variable = self.settings.about.key or "the endpoint's access rules"
            return self._failure(what, f"check {variable}")
        if 300 <= status < 400:
            return self._failure(what, f"it moved; set {self.settings.about.url} to where it is now")
        return self._failure(what, f"check the model {shown(self.settings.model)} and {self.settings.about.url}")

    def _remedy(self) -> str:
        if self.settings.provider == "local":
            return (
                f"start the server, set {self.settings.about.url} to its address, "
                "or set VOYAGE_API_KEY or OPENAI_API_KEY"
            )
        return "check the network and try again"

    def _failure(self, what: str, remedy: str) -> EmbedderError:
        return EmbedderError(self._message(what, remedy))

    def _again(self, what: str, remedy: str, pause: float | None = None) -> _TryAgainError:
        return _TryAgainError(self._message(what, remedy), pause)

    def _message(self, what: str, remedy: str) -> str:
        return self._clean(f"{self.model} at {self.settings.base_url} {what}; {remedy}")

    def _clean(self, text: str) -> str:
        return self.settings.key.scrub(text)


def _batches(texts: Sequence[str], count: int, characters: int) -> Iterator[list[str]]:
    """Runs of at most `count` texts and `characters` characters; a longer text stands alone."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == count or size + len(text) > characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _matrix(rows: Sequence[Any]) -> Vectors:
    """float32[rows, dim]; ValueError unless all rows are equally long lists of finite numbers."""
    for at, row in enumerate(rows):
        if not isinstance(row, list) or not row or any(type(value) not in (int, float) for value in row):
            raise ValueError(f"{shown(row)} where the vector of text {at + 1} belongs")
        if len(row) != len(rows[0]):
            raise ValueError(f"vectors of dimension {len(rows[0])} and {len(row)} side by side")
    with np.errstate(over="ignore"):
        matrix = np.array(rows, dtype=np.float64).astype(np.float32)
    if not np.isfinite(matrix).all():
        raise ValueError("a vector that holds NaN or infinity")
    return matrix


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
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
