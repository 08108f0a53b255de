"""A language model behind an OpenAI-compatible endpoint: one prompt, one answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from steelyard.base.errors import ConfigError
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Secret

URL, MODEL, KEY = "LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY"
"""The variables that name the endpoint, its model, and the key, which local servers do not need."""
WHAT = "the language model"
LARGEST = 2**20
"""Bytes of an answer."""


class Chat(Protocol):
    """Answers prompts."""

    @property
    def name(self) -> str:
        """Which model it is, for caches."""

    def complete(self, prompt: str) -> str:
        """The answer; EndpointError when there is none."""


class ChatEndpoint:
    """Asks ``POST {url}/chat/completions``.

    `timeout` bounds one request as a whole, in seconds. What may pass (time-out, broken connection, 429, 5xx) is
    asked again, `attempts` times in all, after 0.25 s, 0.5 s, 1 s ...
    """

    def __init__(
        self,
        url: str,
        model: str,
        key: Secret | None = None,
        *,
        timeout: float = 10.0,
        attempts: int = 2,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"{url.rstrip('/')} {model}"
        self._model, self._attempts, self._sleep = model, attempts, sleep
        self._endpoint = Endpoint(url, key, timeout=timeout, largest=LARGEST, what=WHAT)

    def complete(self, prompt: str) -> str:
        """See Chat.complete. Raises MachineError when the extra `api` is not installed."""
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(prompt)
            except EndpointError as error:
                if not error.again or attempt == self._attempts:
                    raise
            self._sleep(0.25 * 2 ** (attempt - 1))
        raise AssertionError("unreachable")  # pragma: no cover -- attempts is at least 1

    def _once(self, prompt: str) -> str:
        body = {"model": self._model, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        answer = self._endpoint.ask("/chat/completions", body)
        if answer.status != 200:
            raise EndpointError(WHAT, f"answered with {answer.status}", again=answer.may_pass)
        try:
            text = answer.json()["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise EndpointError(WHAT, "answered with no completion", again=False)
        return text


def chat_of(environ: Mapping[str, str]) -> ChatEndpoint | None:
    """The endpoint that the environment names; None where it names none. ConfigError without a model."""
    url, model = environ.get(URL, "").strip(), environ.get(MODEL, "").strip()
    if not url:
        return None
    if not model:
        raise ConfigError(f"{URL} is set and {MODEL} is not; name the model that the endpoint serves")
    return ChatEndpoint(url, model, Secret(environ.get(KEY, ""), KEY))
