"""What an endpoint may do to an exchange: it ends in time and in bounds, and the key goes nowhere else."""

import gzip
import socket
import threading
import tracemalloc
from contextlib import nullcontext

import pytest
from shared import beside, tabled

from steelyard.base.errors import ConfigError
from steelyard.extensions.network import ChatEndpoint, endpoint as endpoint_module
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Secret

KEY = "sk-test-0123456789abcdef"
OK = b"HTTP/1.1 200 OK\r\n"
PATIENCE = 0.4


def drip(start, piece):
    """Send `start`, then `piece` for six seconds, faster than any time-out of a single read, then close."""

    def behave(connection, over):
        connection.sendall(start)
        for _ in range(300):
            if over.wait(0.02):
                break
            connection.sendall(piece)

    return behave


def flood(start, piece):
    def behave(connection, over):
        connection.sendall(start)
        while not over.is_set():
            connection.sendall(piece * 10_000)

    return behave


def say(*parts):
    def behave(connection, over):
        for part in parts:
            connection.sendall(part)

    return behave


def sent(behave, kind, name):
    return behave(*(part.encode("latin-1") for part in ANSWERS[kind][name]))


def answer(body, *headers):
    return say(OK + b"".join(h + b"\r\n" for h in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body)


ANSWERS = beside(__file__, "endpoint.json")
"""What servers send, a byte a character: at first, and then over and over."""


@pytest.mark.parametrize("behaviour", [*ANSWERS["slow"], "nothing"])
def test_whatever_drips_ends_at_the_deadline(serve, behaviour):
    server = serve(sent(drip, "slow", behaviour) if behaviour != "nothing" else lambda _, over: over.wait(6))
    with pytest.raises(EndpointError, match=r"judge at http://127.*"):
        Endpoint(server.url, timeout=PATIENCE, what="the judge").ask("/x", {"a": 1})


@pytest.mark.parametrize("behaviour", ANSWERS["floods"])
def test_a_flood_is_refused_in_little_memory(serve, behaviour):
    server = serve(sent(flood, "floods", behaviour))
    tracemalloc.start()
    try:
        with pytest.raises(EndpointError):
            Endpoint(server.url, timeout=1, largest=2**18).ask()
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("more", [0, 1])
def test_an_answer_has_16_mib_at_most(serve, more):
    server = serve(answer(b'"%s"' % (b"x" * (16 * 2**20 - 2 + more))))
    with pytest.raises(EndpointError) if more else nullcontext():
        assert len(Endpoint(server.url).ask().text) == 16 * 2**20


@tabled
def test_nothing_is_decompressed(serve, encoding):
    """Two rounds of gzip make a gigabyte of a few kilobytes; nothing was asked to be compressed."""
    server = serve(answer(gzip.compress(gzip.compress(b"[]")), b"Content-Encoding: " + encoding.encode()))
    with pytest.raises(EndpointError, match="compressed"):
        Endpoint(server.url).ask()
    assert b"Accept-Encoding: identity\r\n" in server.heard[0]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_the_key_stays(serve, status):
    other = serve(answer(b"[]"))
    head = b"HTTP/1.1 %d Moved\r\nLocation: %s/v1\r\nContent-Length: 0\r\n\r\n" % (status, other.url.encode())
    server = serve(say(head))
    assert Endpoint(server.url, Secret(KEY)).ask("/v1", {}).status == status
    assert KEY.encode() in server.heard[0]
    assert other.heard == []


@pytest.mark.parametrize("lie", ANSWERS["lies"].values(), ids=ANSWERS["lies"])
def test_a_lie_is_an_error_or_another_status(serve, lie):
    server = serve(say(lie.encode("latin-1")))
    try:
        assert Endpoint(server.url, Secret(KEY), timeout=5).ask().status != 200
    except EndpointError as error:
        assert str(error).isprintable() and KEY not in str(error)


@pytest.mark.parametrize("whole", ANSWERS["whole"].values(), ids=ANSWERS["whole"])
def test_an_answer_that_is_cut_off_anywhere_is_an_error(serve, whole):
    for place in range(len(whole) - 1):
        with pytest.raises(EndpointError):
            Endpoint(serve(say(whole[:place].encode())).url, timeout=5).ask()


def test_the_key_is_masked_in_what_comes_back(serve):
    server = serve(answer(f'["{KEY}"]'.encode()))
    assert Endpoint(server.url, Secret(KEY)).ask().json() == ["***"]


@pytest.mark.parametrize("body", [b"[" * 2**20, b"[" + b"{}," * 2**20, b"[" + b"1e308," * 2**20, b"not JSON", b""])
def test_what_is_no_sensible_json_is_a_value_error(serve, body):
    server = serve(answer(body))
    with pytest.raises(ValueError, match=r"."):
        Endpoint(server.url).ask().json()


def test_a_number_of_four_thousand_digits_is_infinite(serve):
    """float("9" * 4000) is infinity; as an int it would overflow where arrays are made of it."""
    assert Endpoint(serve(answer(b"[" + b"9" * 4000 + b", 12]")).url).ask().json() == [float("inf"), 12]


def test_a_name_look_up_that_hangs_ends_at_the_deadline(monkeypatch):
    hung = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [hung.wait(6)])
    with pytest.raises(EndpointError, match="gave no whole"):
        Endpoint("http://slow.example", timeout=0.2).ask()
    hung.set()


def test_connections_are_used_again(serve):
    accepted = []

    def behave(connection, over):
        accepted.append(connection)
        for _ in range(2):
            connection.sendall(OK + b"Content-Length: 2\r\n\r\n[]")
            connection.recv(65536)

    endpoint = Endpoint(serve(behave).url)
    assert [endpoint.ask().json() for _ in range(2)] == [[], []]
    assert len(accepted) == 1


@pytest.mark.parametrize("url", ANSWERS["no addresses"])
def test_what_is_no_plain_address_is_refused(url):
    with pytest.raises(ConfigError, match="the address"):
        Endpoint(url)


class TestPlainHttp:
    """A key goes over TLS, or nowhere but to this machine."""

    @pytest.mark.parametrize("host", ANSWERS["elsewhere"])
    def test_a_key_is_not_sent_in_the_clear(self, host):
        for key in ("sk-grapefruit-1", "EMPTY"):
            with pytest.raises(ConfigError) as refused:
                Endpoint(f"http://{host}:8000/v1", Secret(key))
            assert "grapefruit" not in str(refused.value)
        Endpoint(f"https://{host}:8000/v1", Secret("sk-grapefruit-1"))
        Endpoint(f"http://{host}:8000/v1")

    @pytest.mark.parametrize("host", ANSWERS["this machine"])
    def test_this_machine_needs_no_tls_and_no_proxy(self, host, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org:3128")
        monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        url = f"http://{host}:8000/v1"
        assert Endpoint(url, Secret("sk-grapefruit-1")).url == url
        assert endpoint_module._proxy(url) is None
        assert endpoint_module._proxy("http://192.0.2.1/v1") is not None


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


@tabled
def test_what_may_pass_is_asked_again_after_pauses_that_double(model, status, times, asked):
    """0.25 s, then twice as long."""
    model.script = [model.status(status)] * times
    if times == 2:
        assert model.chat.complete("how?") == "well"
    else:
        with pytest.raises(EndpointError, match=f"answered with {status}"):
            model.chat.complete("how?")
    assert (len(model.requests), model.pauses) == (asked, [0.25, 0.5][: asked - 1])


@tabled
def test_what_holds_no_completion_is_an_error(model, answer):
    model.script = [model.raw(answer.encode())]
    with pytest.raises(EndpointError, match="answered with no"):
        model.chat.complete("how?")
    assert len(model.requests) == 1
