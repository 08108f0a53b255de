"""Every command takes a question that was asked five times for one: as it does where a `group` says so.

Two folders differ in nothing but that one declares the groups that the other's texts make. So every figure of
every command has to be the same.
"""

import json
import shlex

import numpy as np
import pytest
from command_line import done, run
from simulation import simulate_log
from written_set import write_set

from steelyard_eval.datasets import load

TIMES = ("{}", "{}?", " {}", "{}...", "({})")
SUM = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"
OF_THE_FOLDER = {
    *("group", "dataset", "dataset_sha256", "sha256", "command", "timing", "latency", "path", "folder", "hashes"),
    *("history", "date", "rebaseline", "fingerprint"),
}
"""Keys under which documents have what differs between two folders, and times."""


def write(folder, grouped):
    """Eight questions, each asked five times in another dress, over 60 entries."""
    rng = np.random.default_rng(3)
    words = [f"{a}{b}" for a in ("lam", "tor", "nib", "ves", "kul") for b in ("en", "ar", "is", "om", "ut")]
    texts = [" ".join(rng.choice(words, 8)) for _ in range(60)]
    asked = [" ".join(rng.choice(words, 3, replace=False)) for _ in range(8)]
    queries, grades = [], []
    for at, question in enumerate(asked):
        for time, dress in enumerate(TIMES):
            query = {"id": f"q{at}{time}", "text": dress.format(question.title() if time == 2 else question)}
            queries.append({**query, "category": f"c{at % 2}", **({"group": f"g{at}"} if grouped else {})})
            found = [e for e, text in enumerate(texts) if len(set(question.split()) & set(text.split())) > 1]
            # What is relevant varies within a question, too.
            grades += [f"q{at}{time} 0 e{e:02} 1" for e in {*found[time % 2 :], int(rng.integers(60))}]
    corpus = [{"id": f"e{e:02}", "text": text} for e, text in enumerate(texts)]
    about = {"name": "again", "text_for_embedding": "{text}", "as_of": "2025-01-01", "system": "bm25"}
    write_set(folder, corpus, queries, "\n".join(grades) + "\n", **about)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder whose texts alone tell, the one that declares groups, and a log of searches over either."""
    root = tmp_path_factory.mktemp("again")
    for name in ("told", "declared"):
        write(root / name, name == "declared")
    log = root / "log.jsonl"
    simulate_log(load(root / "told"), ["bm25"], sessions=3000).save(log)
    return root / "told", root / "declared", log


def figures(value):
    """A document without what tells the folders apart."""
    if isinstance(value, dict):
        if value.get("key") == "gate_file":  # it has the hashes of the data
            return {}
        return {key: figures(own) for key, own in value.items() if key not in OF_THE_FOLDER}
    return [figures(own) for own in value] if isinstance(value, list) else value


COMMANDS = {
    "compare": "compare {folder} bm25 '{sum}'",
    "recommend": "recommend {folder} --out {out}/weights.json",
    "tune": "tune {folder} '{sum}' --out {out}/weights.json",
    "learn": "learn {folder} --current '{sum}' --feedback {log} --out {out}/weights.json",
    "gate": "gate {folder} 'x={sum}' --baseline {out}/b.json",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_figure_is_that_of_declared_groups(command, folders, tmp_path):
    documents = []
    for folder in folders[:2]:
        out = tmp_path / folder.name
        out.mkdir()
        if command == "gate":
            done("gate", folder, "x=bm25", "--baseline", out / "b.json", "--update", "--because", "first")
        words = COMMANDS[command].format(folder=folder, sum=SUM, log=folders[2], out=out)
        found = run(*shlex.split(words), "--json", "--quiet")
        assert found.exit_code in (0, 1)
        documents.append(figures(json.loads(found.stdout.replace(str(folder), "mine"))))  # notices name commands
    assert documents[0] == documents[1]
