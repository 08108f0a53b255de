"""An embedding endpoint on the loopback address that misbehaves as told; the starter set; waiting."""

import json
import struct
import threading
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

PROVIDER_VARIABLES = [
    *(f"{provider}_{what}" for provider in ("VOYAGE", "OPENAI", "COHERE") for what in ("API_KEY", "BASE_URL")),
    *("EMBEDDING_PROVIDER", "EMBEDDING_MODEL", "EMBEDDING_DIM"),
    *("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"),
]


class Endpoint:
    """Answers each POST by the next step of `script`, and well when the script is over.

    A step is a function of (handler, document): the document is the right answer, the handler sends.
    """

    def __init__(self, dimension=8):
        self.dimension = dimension
        self.script = []
        self.requests = []
        self.loaded = []
        self.released = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, dict(self.headers), body))
                step = endpoint.script.pop(0) if endpoint.script else endpoint.well
                step(self, endpoint.document(self.path, body))

            def do_GET(self):
                endpoint.requests.append((self.path, dict(self.headers), None))
                step = endpoint.script.pop(0) if endpoint.script else endpoint.well
                step(self, {"models": [{"name": name} for name in endpoint.loaded]})

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that went away are what the tests are about
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self):
        return self.server.server_address[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def texts(self):
        """All texts that were asked for, in order."""
        return [t for _, _, body in self.requests if body for t in body.get("input", body.get("texts"))]

    def document(self, path, body):
        texts = body.get("input", body.get("texts"))
        rows = [self.vector(text) for text in texts]
        if path.endswith("/embed"):
            return {"id": "x", "texts": texts, "embeddings": {"float": rows}}
        items = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"object": "list", "model": body["model"], "data": items}

    def vector(self, text):
        """Numbers made of the text's hash: another text, another direction."""
        digest = b"".join(sha256(f"{text}{at}".encode()).digest() for at in range(self.dimension // 8 + 1))
        return [value / 2**31 for value in struct.unpack(f"<{self.dimension}i", digest[: 4 * self.dimension])]

    def expected(self, texts):
        rows = np.array([self.vector(text) for text in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    # Steps

    @staticmethod
    def well(handler, document):
        send(handler, json.dumps(document).encode())

    def hang(self, handler, document):
        """Says nothing until the test is over."""
        self.released.wait(20)
        handler.close_connection = True

    def drip(self, handler, document):
        """Sends a byte at a time: no single read takes long, the whole takes twenty seconds."""
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        try:
            for _ in range(1000):
                if self.released.wait(0.02):
                    break
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            pass
        handler.close_connection = True

    @staticmethod
    def status(code, body="", **headers):
        def step(handler, document):
            send(handler, body.encode(), code, {name.replace("_", "-"): value for name, value in headers.items()})

        return step

    @staticmethod
    def raw(content):
        return lambda handler, document: send(handler, content)

    @staticmethod
    def changed(change):
        """The right answer after `change` was applied to it."""
        return lambda handler, document: send(handler, json.dumps(change(document)).encode())

    @staticmethod
    def cut(handler, document):
        """Promises the whole and sends half."""
        content = json.dumps(document).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) // 2])
        handler.close_connection = True


def send(handler, content, code=200, headers=None):
    handler.send_response(code)
    for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def endpoint(monkeypatch, tmp_path):
    """A loopback endpoint, an environment without providers, and a cache folder of the test's own."""
    for name in PROVIDER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    made = Endpoint()
    yield made
    made.close()


@pytest.fixture(scope="session")
def data():
    """The starter set at work, for tests that change nothing of it."""
    import steelyard_eval as sy
    from steelyard_eval.datasets.manifest import starter

    return sy.load(starter())


@pytest.fixture(scope="session")
def dataset(data):
    """The starter set, for tests that change nothing of it."""
    return data.dataset


@pytest.fixture
def until():
    """Waits for a condition, ten seconds at most."""

    def wait(condition):
        for _ in range(1000):
            if condition():
                return True
            time.sleep(0.01)
        return False

    return wait
