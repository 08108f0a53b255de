"""How well are paraphrases told from similar questions? Precision and recall of `alike` on pairs written by hand.

`tests/data/paraphrases.jsonl` has pairs that ask the same in other words, and pairs that differ in one thing:
another person, a verb, a number. `--embed` writes their cosines by minilm anew, which needs the extra.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from steelyard_eval.datasets.groups import alike, wording

PAIRS = Path(__file__).resolve().parents[1] / "data" / "paraphrases.jsonl"
LEVELS = {"shingles": (0.75, 0.6, 0.5, 0.4, 0.3), "cosine": (0.95, 0.92, 0.9, 0.85, 0.8)}


def pairs():
    """The pairs in the file's order: one, other, same, cosine."""
    return [json.loads(line) for line in PAIRS.read_text().splitlines()]


def embed():
    """Write the cosine of every pair."""
    from steelyard.extensions.models.minilm import MiniLmInt8Embedder

    known, embedder = pairs(), MiniLmInt8Embedder()
    one, other = (np.asarray(embedder.embed([row[side] for row in known], "query")) for side in ("one", "other"))
    for row, cosine in zip(known, (one * other).sum(axis=1).tolist(), strict=True):
        row["cosine"] = round(cosine, 4)
    PAIRS.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in known))


def scores(known):
    """Shingles in common and cosine, float64[n] each, and whether both name the same numbers."""
    texts = [(row["one"], row["other"]) for row in known]
    common = [alike.shared(*(alike.shingles(wording(text)) for text in both)) for both in texts]
    numbers = [alike.named_numbers(one) == alike.named_numbers(other) for one, other in texts]
    return {"shingles": np.array(common), "cosine": np.array([row["cosine"] for row in known])}, np.array(numbers)


def rates(found, same):
    """Precision and recall of bool[n]."""
    return (found & same).sum() / max(found.sum(), 1), (found & same).sum() / same.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embed", action="store_true", help="write the cosines anew")
    if parser.parse_args().embed:
        embed()
    known = pairs()
    same = np.array([row["same"] for row in known])
    of, numbers = scores(known)
    print(f"{same.sum()} pairs that ask the same, {(~same).sum()} that do not; numbers equal")
    for name, levels in LEVELS.items():
        for level in levels:
            precision, recall = rates((of[name] >= level) & numbers, same)
            print(f"{name:9} >= {level:.2f}   precision {precision:5.0%}   recall {recall:5.0%}")
    either = (of["shingles"] >= alike.SHARED) | (of["cosine"] >= alike.COSINE)
    precision, recall = rates(either & numbers, same)
    print(f"what `check` proposes   precision {precision:.0%}   recall {recall:.0%}")


if __name__ == "__main__":
    main()
