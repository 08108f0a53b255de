"""A language model behind an endpoint: what is asked, what is asked again, and what is no answer."""

import pytest

from steelyard.extensions.network.chat import ChatEndpoint
from steelyard.extensions.network.endpoint import EndpointError, Secret


@pytest.fixture
def model(endpoint):
    """A loopback server that answers every prompt with "well"; `pauses` are the waits between the attempts."""
    endpoint.document = lambda path, body: {"choices": [{"message": {"content": "well"}}]}
    endpoint.pauses = []
    endpoint.chat = ChatEndpoint(
        f"{endpoint.url}/", "small", Secret("sk-test"), attempts=3, sleep=endpoint.pauses.append
    )
    return endpoint


def test_a_prompt_is_one_message_of_the_user(model):
    assert model.chat.complete("how?") == "well"
    ((path, headers, body),) = model.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer sk-test"
    assert body == {"model": "small", "messages": [{"role": "user", "content": "how?"}], "temperature": 0}
    assert model.chat.name == f"{model.url} small"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 504])
def test_what_may_pass_is_asked_again_after_pauses_that_double(model, status):
    """0.25 s, then twice as long."""
    model.script = [model.status(status)] * 2
    assert model.chat.complete("how?") == "well"
    assert len(model.requests) == 3
    assert model.pauses == [0.25, 0.5]


def test_the_attempts_are_counted(model):
    model.script = [model.status(503)] * 9
    with pytest.raises(EndpointError, match="answered with 503"):
        model.chat.complete("how?")
    assert len(model.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 499])
def test_a_refusal_is_final(model, status):
    model.script = [model.status(status)]
    with pytest.raises(EndpointError, match=f"answered with {status}"):
        model.chat.complete("how?")
    assert model.pauses == []


@pytest.mark.parametrize(
    "answer",
    [b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": 7}}]}', b'{"choices": [{}]}', b"x"],
)
def test_what_holds_no_completion_is_an_error(model, answer):
    model.script = [model.raw(answer)]
    with pytest.raises(EndpointError, match="answered with no"):
        model.chat.complete("how?")
    assert len(model.requests) == 1
