"""Every statistic that qrels/workshop/README.md states: `python tests/benchmarks/workshop.py [beside ...]`.

Data sets named beside it (folders) have the word overlap of their queries printed, too. `--embed` writes
wordllama's vectors anew, which needs its extra, and the hashes of all files. Those of minilm-int8 stay as they
were pooled with: another processor gives other last bits.
"""

import json
import math
import re
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.extensions.models import WordLlamaEmbedder
from steelyard.memory.text import content, render, terms
from steelyard.memory.words import STOP_WORDS
from steelyard_eval.datasets import load

FOLDER = Path(__file__).resolve().parents[2] / "qrels" / "workshop"
FIELDS = ("title", "text", "why", "impact", "details", "context", "l0", "l1")
COPY = 0.3  # entries that share this part of their 5-word shingles are near-duplicates

DEFAULT = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
SYSTEMS = [
    *("fts", "bm25", "vector", "echovault", "echovault:shipped", "soleri", "soleri:shipped", "moltnet"),
    *("moltnet:shipped", "spec_kit", "spec_kit:shipped", "spec_kit:js", "cortex_mem", "cortex_mem:shipped"),
]
"""What was pooled, beside DEFAULT."""


def rows(name):
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def words(entry):
    return re.findall(r"\w+", " ".join(entry.get(name, "") for name in FIELDS).lower())


def near_duplicates(entries, size=5):
    """Pairs of ids whose Jaccard similarity of shingles reaches COPY, with it."""
    shingles = [{tuple(own[at : at + size]) for at in range(len(own) - size + 1)} for own in map(words, entries)]
    found = []
    for i, one in enumerate(shingles):
        for j in range(i):
            common = len(one & shingles[j])
            if common and common / len(one | shingles[j]) >= COPY:
                found.append((entries[j]["id"], entries[i]["id"], common / len(one | shingles[j])))
    return found


def frames(entries):
    """In how many entries each frame of a sentence stands.

    A frame is what is left of a sentence of six words and more when every word that is neither a stop word nor
    frequent is a gap, and gaps in a row are one; frames need three words of their own.
    """
    usual = Counter(word for entry in entries for word in set(words(entry)))
    kept = {word for word, count in usual.items() if count > 0.1 * len(entries)} | STOP_WORDS
    held = Counter()
    for entry in entries:
        text = " ".join(entry.get(name, "") for name in FIELDS[:6])
        own = set()
        for sentence in re.split(r"[.!?:;\n]+\s", text.lower()):
            parts = re.findall(r"\w+", sentence)
            frame = re.sub(r"(_ )+", "_ ", "".join(f"{w} " if w in kept else "_ " for w in parts)).strip()
            if len(parts) > 5 and sum(part != "_" for part in frame.split()) > 2:
                own.add(frame)
        held.update(own)
    return held


def overlap(dataset):
    """The idf-weighted share of each answerable query's words that stand in its best entry, float64[Q].

    The best entry is, of those of the query's highest grade, the one that shares most.
    """
    held = {entry.id: set(terms(f"{content(entry)} {entry.details}")) for entry in dataset.entries}
    seen = Counter(word for own in held.values() for word in own)
    shares = []
    for query in dataset.queries:
        grades = {id_: grade for id_, grade in dataset.qrels.get(query.id, {}).items() if grade and id_ in held}
        asked = {word: math.log((len(held) + 1) / (seen[word] + 0.5)) for word in set(terms(query.text))}
        if grades and asked:
            best = [id_ for id_, grade in grades.items() if grade == max(grades.values())]
            total = sum(asked.values())
            shares.append(max(sum(asked[w] for w in asked.keys() & held[id_]) for id_ in best) / total)
    return np.array(shares)


def kappa(pairs):
    first, second = zip(*pairs, strict=True)
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    chance = sum(first.count(grade) * second.count(grade) for grade in set(first)) / len(pairs) ** 2
    return (agreed - chance) / (1 - chance)


def statistics():
    entries, queries = rows("corpus.jsonl"), rows("queries.jsonl")
    # query, entry, first, second and final grade of every pair that was judged twice
    lines = (line.split() for line in (FOLDER / "second-pass.txt").read_text().splitlines()[1:])
    twice = [(q, d, int(a), int(b), int(c)) for q, d, a, b, c in lines]
    memories = [entry for entry in entries if entry.get("text")]
    lengths = np.array([sum(len(entry.get(name, "").split()) for name in FIELDS[1:6]) for entry in memories])
    judged = [line.split() for line in (FOLDER / "qrels.txt").read_text().splitlines()]
    held = frames(memories).most_common(1)[0]
    first = [(a, b) for _, _, a, b, _ in twice]
    return {
        "entries": len(memories),
        "folders": len(entries) - len(memories),
        "relations": sum(len(entry.get("relations", ())) for entry in entries),
        "labels": {
            name: dict(Counter(str(entry.get(name)) for entry in memories).most_common())
            for name in ("type", "domain", "vault", "tenant", "severity", "category", "project")
        },
        "superseded": sum("superseded_by" in entry for entry in entries),
        "with a validity window": sum("valid_until" in entry for entry in entries),
        "words": {f"p{p}": float(np.percentile(lengths, p)) for p in (0, 10, 50, 90, 100)},
        "queries": len(queries),
        "unanswerable": sum(query.get("answerable") is False for query in queries),
        "categories": dict(Counter(query["category"] for query in queries).most_common()),
        "splits": dict(Counter(query["split"] for query in queries)),
        "judgments": len(judged),
        "grades": dict(sorted(Counter(line[3] for line in judged).items())),
        "near-duplicates": [(a, b, round(share, 2)) for a, b, share in near_duplicates(memories)],
        "most frequent frame": (held[0], round(held[1] / len(memories), 4)),
        "overlap": round(float(overlap(load(FOLDER)).mean()), 3),
        "judged twice": len(twice),
        "agreement": round(sum(a == b for a, b in first) / len(first), 4),
        "kappa": round(kappa(first), 3),
        "kappa of relevant or not": round(kappa([(a > 0, b > 0) for a, b in first]), 3),
        "disagreements": [(q, d, a, b, c) for q, d, a, b, c in twice if a != b],
    }


def vectors(embedder):
    """Side -> float16[rows, dimensions] of one model, as the files hold them."""
    dataset = load(FOLDER)
    recipes = {"corpus": dataset.recipe, **{f"corpus.{layer}": LAYER_RECIPES[layer] for layer in ("l0", "l1")}}
    texts = {side: [render(recipe, entry) for entry in dataset.entries] for side, recipe in recipes.items()}
    texts["queries"] = [query.text for query in dataset.queries]
    return {side: embedder.embed(own).astype(np.float16) for side, own in texts.items()}


def embed():
    """Write the vectors of wordllama, then the hashes of the files into dataset.json and croissant.json."""
    for side, found in vectors(WordLlamaEmbedder()).items():
        np.save(FOLDER / f"{side}.wordllama.f16.npy", found)
    names = ("dataset.json", "croissant.json")
    about, croissant = (json.loads((FOLDER / name).read_text("utf-8")) for name in names)
    about["files"] = {name: sha256((FOLDER / name).read_bytes()).hexdigest() for name in sorted(about["files"])}
    (FOLDER / "dataset.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
    for file in croissant["distribution"]:
        if "sha256" in file:
            file["sha256"] = sha256((FOLDER / file["@id"]).read_bytes()).hexdigest()
    (FOLDER / "croissant.json").write_text(json.dumps(croissant, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    if "--embed" in sys.argv:
        embed()
    print(json.dumps(statistics(), indent=1, ensure_ascii=False))
    for folder in [word for word in sys.argv[1:] if word != "--embed"]:
        beside = load(folder)
        print(f"overlap {beside.name}: {overlap(beside).mean():.3f}")
