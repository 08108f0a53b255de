"""mem0's memories in a Qdrant server: pages, keys, and answers that are none."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard_eval.importers.qdrant import scrolled
from steelyard_eval.importers.run import import_store, refresh

POINTS = [
    {"id": f"p{at}", "payload": {"data": f"memory {at}", "user_id": "u"}, "vector": [float(at), 1.0]}
    for at in range(5)
]


class Server(BaseHTTPRequestHandler):
    """Two points a page, as the documentation of scroll has it."""

    asked: ClassVar[list] = []
    broken = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append((self.path, body, self.headers.get("Authorization")))
        begin = next((at for at, point in enumerate(POINTS) if point["id"] == body.get("offset")), 0)
        rest = POINTS[begin + 2 :]
        page = {"points": POINTS[begin : begin + 2], "next_page_offset": rest[0]["id"] if rest else None}
        status, answer = self.broken or (200, {"result": page, "status": "ok", "time": 0.001})
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(Server, "asked", [])
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"qdrant://127.0.0.1:{server.server_port}/mem0"
    server.shutdown()
    server.server_close()


def test_every_page_is_read_with_vectors_and_the_key(address, tmp_path, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "a-secret-key")
    done = import_store(address, tmp_path / "mine")
    rows = [json.loads(line) for line in (tmp_path / "mine" / "corpus.jsonl").read_text().splitlines()]
    assert [(row["id"], row["text"]) for row in rows] == [(f"p{at}", f"memory {at}") for at in range(5)]
    assert done.models == ("mem0",)
    assert [(path, body.get("offset")) for path, body, _ in Server.asked] == [
        ("/collections/mem0/points/scroll", offset) for offset in (None, "p2", "p4")
    ]
    assert {key for *_, key in Server.asked} == {"Bearer a-secret-key"}
    assert "a-secret-key" not in (tmp_path / "mine" / "dataset.json").read_text()
    assert not refresh(tmp_path / "mine").changed


def test_what_is_no_collection_ends_in_one_message(address, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="names no collection"):
        import_store("qdrant://127.0.0.1", tmp_path / "mine")
    with pytest.raises(MachineError, match="cannot be read"):
        import_store("qdrant://127.0.0.1:1/mem0", tmp_path / "mine")
    for broken, message in (
        ((404, {}), "status 404"),
        ((200, {"result": 3}), "does not answer as Qdrant does"),
        ((200, {"result": {"points": POINTS[:1], "next_page_offset": "p0"}}), "the same page twice"),
    ):
        monkeypatch.setattr(Server, "broken", broken)
        with pytest.raises((DataError, MachineError), match=message):
            list(scrolled(address))
    assert not (tmp_path / "mine").exists()
