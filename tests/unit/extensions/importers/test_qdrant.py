"""mem0's memories in a Qdrant server: pages, keys, and answers that are none."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard_eval.datasets import load
from steelyard_eval.extensions.importers.qdrant import scrolled
from steelyard_eval.extensions.importers.run import import_store, load_store, refresh

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


def test_a_server_is_read_as_mem0_alone(address):
    with pytest.raises(ConfigError, match=r"moltnet.*mem0"):
        load_store(address, "moltnet")


def test_what_is_no_collection_ends_in_one_message(address, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="names no collection"):
        import_store("qdrant://127.0.0.1", tmp_path / "mine")
    with pytest.raises(MachineError, match="cannot be read"):
        import_store("qdrant://127.0.0.1:1/mem0", tmp_path / "mine")
    for broken, message in (
        ((404, {}), "status 404"),
        ((200, {"result": 3}), "does not answer as Qdrant does"),
        ((200, {"result": {"points": POINTS[:1], "next_page_offset": "p0"}}), "the same page twice"),
        ((200, {"result": {"points": [], "next_page_offset": "p0"}}), "names no next page"),
        ((200, {"result": {"points": POINTS[:1], "next_page_offset": {"a": 1}}}), "names no next page"),
        ((200, {"result": {"points": POINTS[:1], "next_page_offset": "x" * 101}}), "names no next page"),
    ):
        monkeypatch.setattr(Server, "broken", broken)
        with pytest.raises((DataError, MachineError), match=message):
            list(scrolled(address))
    assert not (tmp_path / "mine").exists()


def test_a_server_of_small_pages_without_an_end_is_left(address, monkeypatch):
    """A page counts as 16 kB at least, so that 1 MB of memories are 64 of them, whatever they hold."""
    monkeypatch.setenv("STEELYARD_LARGEST_FILE_MB", "1")
    monkeypatch.setattr(Server, "broken", None)
    pages = iter(range(10**6))
    monkeypatch.setattr(
        "steelyard_eval.extensions.importers.qdrant._page",
        lambda *_: (80, {"points": [0], "next_page_offset": next(pages)}),
    )
    with pytest.raises(DataError, match="more than"):
        list(scrolled(address))
    assert next(pages) == 65


ZEROS = "none can be used"


@pytest.mark.parametrize(
    ("point", "note"),
    [
        ('{"id": 1, "payload": {"data": "x"}, "vector": [1e39, 1]}', ZEROS),
        ('{"id": 1, "payload": {"data": "x"}, "vector": [NaN, 1]}', ZEROS),
        ('{"id": 1, "payload": {"data": "x"}, "vector": [70000, 1]}', ZEROS),
        ('{"id": 1, "payload": {"data": "x"}, "vector": [0, 0]}', ZEROS),
        ('{"id": 1, "payload": {"data": "x"}, "vector": [[1, 2], [3, 4]]}', ZEROS),
        (
            '{"id": 1, "payload": {"data": "x", "z": %s}}' % ("[" * 300 + "]" * 300),
            "without z, which JSON",
        ),
        ('{"id": 1, "payload": {"data": "x", "\\ud800": 1}}', "which JSON cannot hold"),
    ],
)
def test_what_a_data_set_cannot_hold_costs_the_value(address, tmp_path, monkeypatch, recwarn, point, note):
    monkeypatch.setattr(Server, "broken", (200, {"result": {"points": [json.loads(point)]}}))
    done = import_store(address, tmp_path / "mine")
    assert note in " ".join(done.notes)
    assert [entry.text for entry in load(tmp_path / "mine").entries] == ["x"]
    assert not recwarn.list


@pytest.mark.parametrize("id_", [{"a": 1}, [1], None, True, 1.5, ""])
def test_points_without_an_id_are_none(address, tmp_path, monkeypatch, id_):
    monkeypatch.setattr(Server, "broken", (200, {"result": {"points": [{"id": id_, "payload": {"data": "x"}}]}}))
    with pytest.raises(DataError, match="no entry"):
        import_store(address, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
