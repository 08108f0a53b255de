"""Small data sets, stored words and sockets of one's own, for tests of faults."""

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
def serve(serve):
    """A server of raw answers: from the number of a request to its bytes, and whether the connection stays."""

    def start(behave):
        asked = []

        def answer(connection, over):
            stays = True
            while stays:
                asked.append(1)
                body, stays = behave(len(asked))
                connection.sendall(body)
                stays = stays and connection.recv(65536)

        return f"{serve(answer).url}/s?q={{query}}", asked

    return start
