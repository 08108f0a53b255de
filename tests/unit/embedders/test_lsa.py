"""Latent semantic analysis fitted on the vault itself."""

import io
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import random as sparse_random
from shared import beside, tabled

from steelyard.base.errors import EmbedderError, VaultError
from steelyard.embedders.lsa import ITERATIONS, LsaEmbedder, _truncated_svd
from steelyard.stores.sqlite import Vault
from steelyard.testing import same_bits

TEXTS = beside(__file__)["TEXTS"]


FIT = """
import random, sys
from steelyard.embedders.lsa import ITERATIONS, LsaEmbedder, _truncated_svd
from threadpoolctl import threadpool_info
draw = random.Random(0)
words = [a + b + c for a in "bdfgklmnprstvz" for b in "aeiou" for c in "bdglmnrst"]
texts = [" ".join(draw.choices(words, [1 / at for at in range(1, len(words) + 1)], k=30)) for _ in range(200)]
sys.stdout.buffer.write(LsaEmbedder.fit(texts).embed(texts).tobytes())
sys.stderr.write(str(sorted({one.get("architecture", "") for one in threadpool_info()})))
"""
"""Writes the vectors of 200 texts, which are enough for the products to be shared by threads."""


def fitted(**environment):
    environ = os.environ | environment
    return subprocess.run([sys.executable, "-c", FIT], capture_output=True, check=True, env=environ)


@pytest.fixture(scope="module")
def model():
    return LsaEmbedder.fit(TEXTS, seed=0)


class TestFit:
    def test_a_words_weight_is_the_smoothed_logarithm_of_its_rarity(self, model):
        """ln((6 + 1) / (df + 1)) + 1 with df texts that hold the word: 2 for session, 1 for cache."""
        _, arrays = model.to_arrays()
        vocabulary, idf = json.loads(arrays["vocabulary"]), np.load(io.BytesIO(arrays["idf"]))
        for word, df in (("session", 2), ("cach", 1)):
            assert idf[vocabulary.index(word)] == pytest.approx(math.log(7 / (df + 1)) + 1, rel=1e-6)

    def test_the_number_of_threads_changes_no_bit(self):
        """In processes of their own, because BLAS reads the number when it is loaded."""
        found = {fitted(OPENBLAS_NUM_THREADS=str(threads)).stdout for threads in (1, 2, 4)}
        assert (len(found), b"" in found) == (1, False)

    def test_kernels_of_another_processor_change_cosines_by_rounding_alone(self):
        one, other = (fitted(OPENBLAS_CORETYPE=core) for core in ("Prescott", "Haswell"))
        if one.stderr == other.stderr:
            pytest.skip("BLAS has no other kernels to choose here")
        first, again = (np.frombuffer(each.stdout, np.float32).reshape(200, -1) for each in (one, other))
        assert np.abs(first @ first.T - again @ again.T).max() < 1e-6

    def test_the_order_of_texts_changes_no_word(self, model):
        """The vocabulary is sorted, whatever comes first."""
        _, arrays = LsaEmbedder.fit(TEXTS[::-1]).to_arrays()
        assert arrays["vocabulary"] == model.to_arrays()[1]["vocabulary"]

    @tabled
    def test_too_little_text_is_refused_with_the_counts(self, texts, counts):
        with pytest.raises(EmbedderError, match=f"at least 3 entries and 3 different words, the vault {counts}"):
            LsaEmbedder.fit(texts)

    def test_texts_that_are_all_alike_are_a_model_all_the_same(self):
        """There is no variance to explain; every text lies in the one direction."""
        vectors = LsaEmbedder.fit(["alpha beta gamma"] * 4).embed(["alpha beta gamma", "alpha"])
        assert abs(vectors[0] @ vectors[1]) == pytest.approx(1.0, abs=1e-6)


class TestEmbed:
    @pytest.mark.parametrize("text", ["", "unheard wording", "the of and", "!?"])
    def test_a_text_without_a_known_word_gives_zeros(self, model, text):
        assert not model.embed([text]).any()

    def test_a_vector_does_not_depend_on_the_other_texts(self, model):
        alone = np.concatenate([model.embed([text]) for text in TEXTS])
        assert same_bits(model.embed(TEXTS), alone)
        assert np.linalg.norm(alone, axis=1) == pytest.approx(1.0, abs=1e-6)
        assert model.embed([]).shape == (0, 5)  # one less than the six texts

    def test_words_that_occur_together_come_near(self, model):
        """`expires` stands beside `session` and `token`, never beside `graph`."""
        expires, session, graph = model.embed(["expires", "session", "graph"])
        assert expires @ session > expires @ graph + 0.3


class TestStorage:
    def test_it_comes_back_from_a_vault_with_the_same_bits(self, model, tmp_path):
        settings, arrays = model.to_arrays()
        with Vault(tmp_path / "v", create=True) as vault:
            vault.save_model("lsa", "lsa", settings, arrays)
        with Vault(tmp_path / "v") as vault:
            kind, kept, loaded = vault.load_model("lsa")
        assert (kind, kept) == ("lsa", settings)
        assert same_bits(LsaEmbedder.from_arrays(loaded).embed(TEXTS), model.embed(TEXTS))

    def test_nothing_is_loaded_from_a_pickle(self, model, tmp_path):
        _, arrays = model.to_arrays()
        assert all(
            data.startswith(b"\x93NUMPY")
            for name, data in arrays.items()
            if name not in ("vocabulary", "languages")
        )
        np.save(tmp_path / "evil.npy", np.array([{"code": 1}], dtype=object), allow_pickle=True)
        with pytest.raises(VaultError, match="allow_pickle=False"):
            LsaEmbedder.from_arrays({**arrays, "idf": (tmp_path / "evil.npy").read_bytes()})


@pytest.mark.parametrize(("rows", "columns", "rank"), [(60, 400, 59), (300, 200, 50)])
def test_the_svd_has_the_bits_of_scikit_learn(rows, columns, rank):
    from sklearn.decomposition import TruncatedSVD  # here: workers that do not run it need not load it

    matrix = sparse_random(rows, columns, 0.05, format="csr", random_state=1)
    values, components = _truncated_svd(matrix, rank, 0)
    theirs = TruncatedSVD(rank, n_iter=ITERATIONS, random_state=0).fit(matrix)
    assert np.array_equal(values, theirs.singular_values_)
    assert np.array_equal(components, theirs.components_)
