"""Small data sets, stored words and sockets of one's own, for tests of faults."""

import socket
import threading

import pytest


@pytest.fixture
def keep_words(monkeypatch):
    """Words are stored of however few entries, see `states.keep_words`: forked commands inherit it."""
    import states

    for name in ("MIN_TEXTS_TO_STORE", "CHANGES", "CHANGES_SHARE"):
        monkeypatch.setattr(states.words, name, getattr(states.words, name))  # restored afterwards
    states.keep_words()


@pytest.fixture
def folder(tmp_path):
    import small

    return small.written(tmp_path / "set")


@pytest.fixture
def serve():
    """A server of raw answers: from the number of a request to its bytes, and whether the connection stays."""
    servers = []

    def start(behave):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        asked = []

        def run():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    stays = True
                    while stays and connection.recv(65536):
                        asked.append(1)
                        body, stays = behave(len(asked))
                        connection.sendall(body)

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/s?q={{query}}", asked

    yield start
    for server in servers:
        server.close()
