"""Ten real regressions and ten harmless refactorings of this repository, gated as its workflow does; resumable.

    python tests/benchmarks/gate_planted.py [--folder reports/planted] [--minutes 30] [--json]

Each change is made in a copy of the checkout, where the command of `make gate` runs against the committed
baseline. The exit code and the document tell what the gate saw.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("engine", "eval", "qrels", "reports/baseline.json")
ENGINE = "engine/steelyard"
COMMAND = ("-m", "steelyard_eval", "gate", "qrels/starter", "--json", "-q")

SCORES = """
        total = np.zeros(len(self.counted.lengths))
        for word in words:
            total[self.counted.posting(word).at] += self._impact(word)
        return total
"""

REGRESSIONS = {
    "keywords that forget the query's filter": (
        f"{ENGINE}/retrievers/bm25.py",
        "index = self._index(corpus)",
        "index = self._index(EVERYTHING)",
    ),
    "recency with a wrong sign": (
        f"{ENGINE}/signals/memory.py",
        "values = np.exp(-np.log(2.0) * age / half_life.seconds)",
        "values = 1 - np.exp(-np.log(2.0) * age / half_life.seconds)",
    ),
    "a dropped field: the title": (
        f"{ENGINE}/memory/text.py",
        'CONTENT = ("title", "text", "why", "impact", "context")',
        'CONTENT = ("text", "why", "impact", "context")',
    ),
    "a tokenizer that no longer stems": (
        f"{ENGINE}/memory/text.py",
        "return [_stem(word) for word in",
        "return [word for word in",
    ),
    "FTS5 without porter": (
        f"{ENGINE}/systems/echovault.py",
        'KeywordIndex("echovault", FIELDS, "porter unicode61")',
        'KeywordIndex("echovault", FIELDS, "unicode61")',
    ),
    "k = 6 for 60": (f"{ENGINE}/fusion/ranks.py", "1.0 / (k + rank)", "1.0 / (k / 10 + rank)"),
    "the fallback turned round": (
        f"{ENGINE}/fusion/routing.py",
        "count_rows(table, ranked) >= self.min_results",
        "count_rows(table, ranked) < self.min_results",
    ),
    "rare words count no more than common ones": (
        f"{ENGINE}/retrievers/bm25.py",
        "idf = np.log(1 + (size - len(found.at) + 0.5) / (len(found.at) + 0.5))",
        "idf = 1.0",
    ),
    "scores not brought to one scale": (
        f"{ENGINE}/fusion/normalize.py",
        "values = np.where(top > 0, column.values / np.where(top > 0, top, 1.0), 0.0)",
        "values = np.where(top > 0, column.values, 0.0)",
    ),
    "half of the candidates": (
        f"{ENGINE}/retrievers/bm25.py",
        "best = index.counted.best(scores, np.flatnonzero(found), depth)",
        "best = index.counted.best(scores, np.flatnonzero(found), 5 if depth else None)",
    ),
}
REFACTORINGS = {
    "a docstring": (
        f"{ENGINE}/memory/text.py",
        "Split a text into lower-cased words",
        "Split text into lower-cased words",
    ),
    "a renamed variable": (
        f"{ENGINE}/retrievers/bm25.py",
        SCORES,
        SCORES.replace("total", "found"),
    ),
    "a loop for a comprehension": (
        f"{ENGINE}/memory/text.py",
        "    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]",
        "    found = []\n    for word in _WORD.findall(text.lower()):\n        if word not in STOP_WORDS:\n"
        "            found.append(_stem(word))\n    return found",
    ),
    "the same formula in another order": (
        f"{ENGINE}/retrievers/bm25.py",
        "impacts: Floats = idf * tf * (self.k1 + 1) / (tf + self._norm[found.at])",
        "impacts: Floats = idf * (tf * (self.k1 + 1) / (tf + self._norm[found.at]))",
    ),
    "half-lives as powers of a half": (
        f"{ENGINE}/signals/memory.py",
        "values = np.exp(-np.log(2.0) * age / half_life.seconds)",
        "values = 0.5 ** (age / half_life.seconds)",
    ),
    "a reciprocal by division": (
        f"{ENGINE}/fusion/ranks.py",
        "1.0 / (k + rank)",
        "np.reciprocal(k + rank)",
    ),
    "another sort of the same order": (
        f"{ENGINE}/table/signal_table.py",
        'order[begin:end] = begin + np.argsort(falling[begin:end], kind="stable")',
        "order[begin:end] = begin + np.lexsort((np.arange(end - begin), falling[begin:end]))",
    ),
    "a set for a frozenset": (
        f"{ENGINE}/systems/soleri.py",
        "token not in STOP_WORDS]",
        "token not in set(STOP_WORDS)]",
    ),
    "a message": (
        f"{ENGINE}/fusion/normalize.py",
        "Leave the values unchanged.",
        "Leave the values as they are.",
    ),
    "a division as a product": (
        f"{ENGINE}/fusion/normalize.py",
        "values = np.where(top > 0, column.values / np.where(top > 0, top, 1.0), 0.0)",
        "values = np.where(top > 0, column.values * (1.0 / np.where(top > 0, top, 1.0)), 0.0)",
    ),
}


def copied(folder):
    """A copy of what is gated; an older one is replaced."""
    place = folder / "copy"
    shutil.rmtree(place, ignore_errors=True)
    for name in COPIED:
        source, target = ROOT / name, place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return place


def gated(place, change):
    """What the gate says of a change; the file is restored."""
    name, old, new = change
    path = place / name
    before = path.read_text()
    if before.count(old) != 1:
        raise SystemExit(f"{name} has {before.count(old)} places like {old!r}; the change has to be written anew")
    path.write_text(before.replace(old, new))
    environment = {**os.environ, "PYTHONPATH": f"{place / 'engine'}:{place / 'eval'}"}
    try:
        done = subprocess.run(
            [sys.executable, *COMMAND], cwd=place, env=environment, capture_output=True, text=True
        )
    finally:
        path.write_text(before)
    if done.returncode not in (0, 1):
        return {"exit": done.returncode, "verdict": "error", "sentence": done.stderr[-300:]}
    record = json.loads(done.stdout)
    rows = record["contenders"]
    changed = [row for row in rows if row["lists_changed"]]
    return {
        "exit": done.returncode,
        "verdict": record["verdict"],
        "lists": len(changed),
        "scores": sum(bool(row["scores_changed"]) for row in rows),
        "worst": min((row["metrics"][0]["delta"] for row in rows), default=0.0),
        "verdicts": {row["label"]: row["verdict"] for row in changed},
        "sentence": record["sentence"],
    }


def table(rows):
    """A line for every change."""
    yield f"{'change':45}{'exit':>5}  {'verdict':13}{'lists of':>9}{'scores of':>10}{'worst nDCG@10':>15}"
    for kind, own in rows.items():
        yield kind
        for name, row in own.items():
            numbers = f"{row.get('lists', '-'):>9}{row.get('scores', '-'):>10}{row.get('worst', 0.0):>+15.4f}"
            yield f"  {name:43}{row['exit']:>5}  {row['verdict']:13}{numbers}"
        verdicts = [row["verdict"] for row in own.values()]
        yield "  " + ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "reports" / "planted")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no new change is begun")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * asked.minutes
    state = asked.folder / "rows.json"
    rows = json.loads(state.read_text()) if state.exists() else {"regressions": {}, "refactorings": {}}
    place = copied(asked.folder)
    for kind, changes in (("regressions", REGRESSIONS), ("refactorings", REFACTORINGS)):
        for name, change in changes.items():
            if name not in rows[kind] and time.monotonic() < until:
                rows[kind][name] = gated(place, change)
                state.write_text(json.dumps(rows, indent=1))
                print(name, rows[kind][name]["verdict"], file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1) if asked.json else "\n".join(table(rows)))


if __name__ == "__main__":
    main()
