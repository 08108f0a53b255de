"""Our `gated` beside mem0's own functions: ``python tests/benchmarks/mem0_formula.py``, with mem0ai installed.

Prints the largest difference of 1,000 random inputs, and fails beyond 1e-12.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "fusion"))


def scoring() -> object:
    """mem0's module of scores, without the rest of the package, which writes to a home folder."""
    package = importlib.util.find_spec("mem0")
    if package is None or package.origin is None:
        sys.exit("mem0 is not installed; pip install mem0ai into an environment of its own and run this there")
    spec = importlib.util.spec_from_file_location("scoring", Path(package.origin).parent / "utils" / "scoring.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Compare, and print."""
    from test_gated import ours, random_input

    mem0 = scoring()
    rng, worst, compared = np.random.default_rng(37), 0.0, 0
    for _ in range(1000):
        cosines, scores, terms = random_input(rng)
        midpoint, steepness = mem0.get_bm25_params("", lemmatized="word " * terms)
        words = {id_: mem0.normalize_bm25(raw, midpoint, steepness) for id_, raw in scores.items()}
        results = [{"id": id_, "score": cosine, "payload": {}} for id_, cosine in cosines.items()]
        theirs = {hit["id"]: hit["score"] for hit in mem0.score_and_rank(results, words, {}, 0.1, 100)}
        found = ours(cosines, scores, terms)
        assert found.keys() == theirs.keys(), (found, theirs)
        worst = max([worst, *(abs(found[id_] - score) for id_, score in theirs.items())])
        compared += len(theirs)
    print(f"{compared} scores of 1000 inputs, largest difference {worst:.1e}")
    assert worst <= 1e-12


if __name__ == "__main__":
    main()
