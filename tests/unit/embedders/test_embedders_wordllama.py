"""WordLlama on this machine, beside the package's own code and numbers made from its two files by hand."""

import json
import re
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from steelyard.base.errors import MachineError
from steelyard.base.extensions import EXTRAS, installing
from steelyard.extensions.models import WordLlamaEmbedder, wordllama

MISSING = [module for module in EXTRAS["wordllama"] if find_spec(module) is None]
installed = pytest.mark.skipif(bool(MISSING), reason=f"the extra wordllama is not installed: {', '.join(MISSING)}")
TEXTS = [
    "rotate the signing keys",
    "Traceback (most recent call last): KeyError: 'tenant_id' in replay.py:42",
    "Öl über ünïcode 你好 \U0001f600",
    "<s> </s> <unk>",
    "\x00",
    "why " * 3000,
]
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


@installed
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

    def test_the_same_text_has_the_same_bits_whatever_stands_beside_it(self, embedder):
        together = embedder.embed(["a key", "a much longer text about rotating keys", " ", "a key"])
        assert together[0].tobytes() == embedder.embed(["a key"], "query")[0].tobytes() == together[3].tobytes()
        assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 0, 1], abs=1e-6)
        assert together.dtype == np.float32
        assert embedder.embed([]).shape == (0, 256)

    def test_the_package_is_not_imported_for_it_sets_up_logging(self, embedder):
        embedder.embed(["a"])
        assert "wordllama" not in sys.modules

    def test_other_files_are_refused(self, monkeypatch, tmp_path):
        for name, reason in ((wordllama.WEIGHTS[0], "its SHA-256 is another one"), ("no", "No such")):
            (tmp_path / wordllama.WEIGHTS[0]).parent.mkdir(exist_ok=True)
            (tmp_path / wordllama.WEIGHTS[0]).write_bytes(b"other weights")
            monkeypatch.setattr(wordllama, "WEIGHTS", (name, wordllama.WEIGHTS[1]))
            monkeypatch.setattr(
                wordllama, "find_spec", lambda _: type("", (), {"submodule_search_locations": [tmp_path]})
            )
            with pytest.raises(MachineError, match=rf"{reason}.*pip install --force-reinstall wordllama==0\.4\.0"):
                WordLlamaEmbedder().embed(["a"])


@pytest.mark.parametrize("module", EXTRAS["wordllama"])
def test_a_missing_extra_is_named(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MachineError, match=rf"needs .*{module}.*{re.escape(installing('wordllama'))}") as raised:
        WordLlamaEmbedder().embed(["a"])
    assert raised.value.exit_code == 4
