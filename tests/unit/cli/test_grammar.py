"""One grammar: every spelling of a contender, wherever one is taken, works or is refused by one sentence."""

import json
import re
import shlex
import shutil

import click
import numpy as np
import pytest
from shared import ROOT, beside, done, run, write_set
from simulation import simulate_log

from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load

WORDS = ("token", "cache", "deploy", "budget")
REFUSED = "which has lists and no weights; name a system, a strategy or a weights file here"
LISTS = ("run", "run of another name", "endpoint")
NO_RUNS = "cannot answer new queries; name a system"
"""Said where lists are asked for queries that nobody asked before."""
SPELLINGS, LINES, COMMANDS = beside(__file__).values()
"""Every way to name a contender, a command for every place that takes one, and those that have figures."""
ENDS = {
    "serve": "there is no vault",  # it would serve until it is stopped
    "export": "cannot be expressed",
    "tune": "nothing to tune",
}
"""Other ends than 0 that a command has for a contender that it has read."""
TAKES = {"contender": "any contender", "configuration": "a configuration"}
"""What an argument or an option is declared to take, and what the page calls it."""
SLOW = ("learn", "recommend", "tune")


def declared():
    """Every argument and option of a command that is declared to take contenders, with what it takes."""
    found = {}
    for name, command in main.commands.items():
        for param in command.params:
            if param.type.name in TAKES:
                argument = isinstance(param, click.Argument)
                spelled = param.metavar.strip("[].") if argument else next(o for o in param.opts if o[:2] == "--")
                found[f"{name} {spelled}"] = param.type.name
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A data set of 24 entries and 20 queries, a vault of it, and a file or an endpoint for every spelling."""
    folder = tmp_path_factory.mktemp("grammar")
    entries = [{"id": f"e{n}", "title": f"note {n}", "text": f"{WORDS[n % 4]} number {n}"} for n in range(24)]
    queries = [{"id": f"q{n}", "text": f"{WORDS[n % 4]} {n}"} for n in range(20)]
    qrels = "".join(f"q{n} 0 e{n} 1\n" for n in range(20))
    write_set(folder / "mine", entries, queries, qrels, text_for_embedding="{title} {text}")
    lists = "".join(f"q{n} Q0 e{(n + at) % 24} {at + 1} {9 - at} prod\n" for n in range(20) for at in range(3))
    (folder / "prod.run").write_text(lists)
    (folder / "prod.txt").write_text(lists)
    find_system("plain").config(10, "lsa").save(folder / "own.json")
    shutil.copy(folder / "own.json", folder / "own")
    assert run("index", folder / "mine", folder / "mine.db").exit_code == 0
    simulate_log(load(folder / "mine"), ["bm25"], sessions=40).save(folder / "log.jsonl")
    return folder


def test_every_place_that_takes_a_contender_is_tried():
    assert declared().keys() == LINES.keys()


def tried():
    """Every place with every spelling; the slow commands with all but two of them only at night."""
    for where in LINES:
        for spelling in SPELLINGS:
            slow = where.startswith(SLOW) and spelling not in ("labelled", "run")
            yield pytest.param(where, spelling, marks=[pytest.mark.nightly] if slow else [])


def test_the_table_in_the_documentation_is_what_is_declared():
    rows = {what: [f"`{at}`" for at, own in declared().items() if own == kind] for kind, what in TAKES.items()}
    table = "".join(f"| {what} | {', '.join(where)} |\n" for what, where in rows.items())
    assert table in (ROOT / "docs" / "contenders.md").read_text("utf-8"), table


@pytest.mark.parametrize(("where", "spelling"), list(tried()))
def test_every_spelling_works_or_is_refused_by_one_sentence(
    where, spelling, place, endpoint, tmp_path, monkeypatch
):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    endpoint.well = endpoint.raw(json.dumps({"results": [{"id": f"e{n}"} for n in range(3)]}).encode())
    text = SPELLINGS[spelling].format(port=endpoint.port)
    words = [word if word != "{}" else text for word in shlex.split(LINES[where])]
    found = run(*words)
    told = " ".join(found.stderr.split())
    assert not isinstance(found.exception, Exception), found.exception
    if spelling in LISTS and declared()[where] == "configuration":
        assert (found.exit_code, REFUSED in told) == (2, True), told
    elif "run" in spelling and where == "check --current":
        assert (found.exit_code, NO_RUNS in told) == (2, True), told
    elif found.exit_code:
        assert re.search(ENDS[words[0]], told), told


# Every command takes a question that was asked five times for one: as it does where a `group` says so. Two folders
# differ in nothing but that one declares the groups that the other makes of texts: every figure has to be the same

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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_figure_is_that_of_declared_groups(command, folders, tmp_path):
    documents = []
    for folder in folders[:2]:
        out = tmp_path / folder.name
        out.mkdir()
        if command == "gate":
            done("gate", folder, "x=bm25", "--baseline", out / "b.json", "--update", "--reason", "first")
        words = COMMANDS[command].format(folder=folder, sum=SUM, log=folders[2], out=out)
        found = run(*shlex.split(words), "--json", "--quiet")
        assert found.exit_code in (0, 1)
        documents.append(figures(json.loads(found.stdout.replace(str(folder), "mine"))))  # notices name commands
    assert documents[0] == documents[1]
