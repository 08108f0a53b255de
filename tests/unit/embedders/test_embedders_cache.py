"""The cache of vectors: nothing is asked for twice, whoever shares the file and however a run ends."""

import os
import signal
import subprocess
import sys
import threading

import apsw
import numpy as np
import pytest

from steelyard.base.errors import EmbedderError, MachineError
from steelyard.embedders.embed import CachedEmbedder
from steelyard.extensions.models import ApiEmbedder, ApiSettings, Secret

KEY = "sk-test-0123456789abcdef"
TEXTS = [f"text {at}" for at in range(250)]


class Counting:
    """Vectors made of a text's length and number; fails once it was asked `fails_after` times."""

    model = "counting"
    recipe = None

    def __init__(self, dimension=4, fails_after=None):
        self.dimension, self.fails_after = dimension, fails_after
        self.asked = []

    def embed(self, texts, kind="entry"):
        if self.fails_after is not None and len(self.asked) >= self.fails_after:
            raise EmbedderError("the provider is down")
        self.asked.append((kind, list(texts)))
        return np.array([self.row(text, kind) for text in texts], dtype=np.float32)

    def row(self, text, kind):
        number = float(text.split()[-1])
        return ([number, len(text), float(kind == "query"), 1.0] * 2)[: self.dimension]

    def warm(self):
        return False


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "vectors.db"


def test_a_text_is_asked_for_once(path):
    inner = Counting()
    first = CachedEmbedder(inner, path).embed(["text 1", "text 2", "text 1"])
    again = CachedEmbedder(inner, path).embed(["text 2", "text 3", "text 1"])

    assert inner.asked == [("entry", ["text 1", "text 2"]), ("entry", ["text 3"])]
    assert first.dtype == again.dtype == np.float32
    assert first[:, 0].tolist() == [1, 2, 1]
    assert again[:, 0].tolist() == [2, 3, 1]
    assert CachedEmbedder(inner, path).embed(["text 2", "text 3", "text 1"]).tobytes() == again.tobytes()


def test_queries_other_models_and_other_recipes_have_vectors_of_their_own(path):
    inner = Counting()
    CachedEmbedder(inner, path).embed(["text 1"])
    assert CachedEmbedder(inner, path).embed(["text 1"], "query")[0, 2] == 1
    CachedEmbedder(inner, path, "another address").embed(["text 1"])
    inner.recipe = "{title}"
    CachedEmbedder(inner, path).embed(["text 1"])

    assert [kind for kind, _ in inner.asked] == ["entry", "query", "entry", "entry"]


def test_neither_texts_nor_keys_stand_in_the_file(endpoint, path):
    settings = ApiSettings("openai", endpoint.url, "tiny", 8, Secret(KEY))
    CachedEmbedder(ApiEmbedder(settings), path, ApiEmbedder(settings).identity).embed(["a very private text"])

    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"tiny" in content
    assert KEY.encode() not in content
    assert b"private" not in content
    assert path.stat().st_mode & 0o077 == 0


def test_what_was_embedded_before_a_failure_is_kept(path):
    """Batches of 100: the third fails, two are in the file."""
    inner = Counting(fails_after=2)
    with pytest.raises(EmbedderError, match="provider is down"):
        CachedEmbedder(inner, path).embed(TEXTS)
    inner.fails_after = None
    vectors = CachedEmbedder(inner, path).embed(TEXTS)

    assert [len(texts) for _, texts in inner.asked] == [100, 100, 50]
    assert vectors[:, 0].tolist() == list(range(250))


def test_an_answer_that_is_no_vectors_is_not_kept(path):
    inner = Counting()
    inner.row = lambda text, kind: [float("nan")] * 4
    with pytest.raises(EmbedderError, match="NaN"):
        CachedEmbedder(inner, path).embed(["text 1"])
    assert CachedEmbedder(Counting(), path).embed(["text 1"])[0, 0] == 1


def test_a_model_that_changed_its_dimension_behind_its_name_is_told(path):
    CachedEmbedder(Counting(), path).embed(["text 1"])
    with pytest.raises(EmbedderError, match=r"dimensions \[4, 5\].*delete"):
        CachedEmbedder(Counting(dimension=5), path).embed(["text 1", "text 2"])


@pytest.mark.parametrize("damage", [b"abc", b"", np.array([np.nan] * 4, dtype=np.float32).tobytes()])
def test_a_damaged_vector_is_asked_for_again(path, damage):
    inner = Counting()
    CachedEmbedder(inner, path).embed(["text 1"])
    with apsw.Connection(str(path)) as db:
        db.execute("UPDATE vectors SET vector = ?", (damage,))
    db.close()

    assert CachedEmbedder(inner, path).embed(["text 1"])[0, 0] == 1
    assert len(inner.asked) == 2


def test_a_file_that_is_no_cache_is_the_environments_fault(path, tmp_path):
    path.parent.mkdir()
    path.write_text("hello " * 1000)
    with pytest.raises(MachineError, match=r"cache .*set STEELYARD_CACHE"):
        CachedEmbedder(Counting(), path).embed(["text 1"])
    assert path.read_text() == "hello " * 1000

    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="use the embedding"):
        CachedEmbedder(Counting(), tmp_path / "file" / "vectors.db").embed(["text 1"])


def test_threads_share_a_cache(path):
    """Eight threads, four on one embedder and four on their own, ask for texts of their own and of others."""
    interval = sys.getswitchinterval()
    inner = Counting()
    shared = CachedEmbedder(inner, path)
    failures = []

    def work(number):
        cached = shared if number % 2 else CachedEmbedder(inner, path)
        for at in range(30):
            texts = [f"text {1000 * number + at}", f"text {1000 * number + 100 + at}", *TEXTS[at : at + 3]]
            vectors = cached.embed(texts)
            if vectors[:, 0].tolist() != [float(text.split()[-1]) for text in texts]:
                failures.append(number)

    def guarded(number):
        try:
            work(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(8)]
    sys.setswitchinterval(1e-5)  # threads meet more often
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


WRITER = """
import sys
import numpy as np
from steelyard.embedders.embed import CachedEmbedder

class Numbers:
    model, recipe = "counting", None
    def embed(self, texts, kind="entry"):
        return np.array([[float(t.split()[-1])] * 64 for t in texts], dtype=np.float32)
    def warm(self):
        return True

cached = CachedEmbedder(Numbers(), sys.argv[1])
for at in range(int(sys.argv[2]), int(sys.argv[3])):
    cached.embed([f"text {at}"])
    print(at, flush=True)
"""


def writer(path, begin, end):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(begin), str(end)], stdout=subprocess.PIPE, text=True
    )


def test_processes_share_a_cache(path):
    both = [writer(path, 0, 150), writer(path, 50, 200)]
    for process in both:
        process.communicate(timeout=120)
    assert [process.returncode for process in both] == [0, 0]

    inner = Counting(dimension=1)
    vectors = CachedEmbedder(inner, path).embed(TEXTS[:200])
    assert inner.asked == []
    assert vectors[:, 0].tolist() == list(range(200))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_that_is_killed_leaves_a_whole_cache(path):
    process = writer(path, 0, 1_000_000)
    for line in process.stdout:
        if int(line) >= 30:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGKILL

    inner = Counting(fails_after=0)
    assert CachedEmbedder(inner, path).embed(TEXTS[:31])[:, 0].tolist() == list(range(31))
    with apsw.Connection(str(path)) as db:
        assert next(db.execute("PRAGMA integrity_check"))[0] == "ok"
    db.close()
