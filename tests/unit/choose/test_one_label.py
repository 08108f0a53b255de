"""One label less, or one more, never turns keep to ship or ship to keep; and every face says what was decided.

The data sets are draws of labels over few corpora, each of which is recorded once. Every data set with one label
less has the columns of the whole one but for that query, so all of them are laid out together.
"""

import html
import re
import shlex
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from steelyard_eval.candidates.candidates import build_candidates, of_config, record_all
from steelyard_eval.candidates.families import starts
from steelyard_eval.candidates.grid import Grid, LabelledRecording, LabelScorer
from steelyard_eval.candidates.source import Source, read_current
from steelyard_eval.choose.choice import Choice, decide
from steelyard_eval.choose.leaderboard import leaderboard
from steelyard_eval.choose.recommend import METRICS, Recommendation
from steelyard_eval.choose.result import result_of
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.datasets.in_memory import load_dict
from steelyard_eval.datasets.manifest import starter, workshop
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.recording import saved_runs
from steelyard_eval.recording.replay import only
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result import document
from steelyard_eval.result.sentences import say

MEASURES = parse_measures(["nDCG@10", *METRICS])
CURRENTS = ("bm25", "soleri", "echovault", "moltnet", "vector", "rrf(bm25, vector)")


def made(seed, entries=60, queries=45):
    """A small corpus: words of a topic, vectors around it; queries have words and a vector near their target's."""
    rng = np.random.default_rng([seed, 0])
    topics, words = rng.standard_normal((12, 8)), rng.choice(200, (12, 14))
    of, target = rng.integers(0, 12, entries), rng.integers(0, entries, queries)
    texts = [" ".join(f"w{word}" for word in rng.choice(words[topic], 8)) for topic in of]
    vectors = topics[of] + rng.normal(0, 0.5, (entries, 8))
    asked = vectors[target] + rng.normal(0, rng.choice([0.3, 0.8, 1.5]), (queries, 8))
    known = [rng.choice(texts[at].split(), rng.integers(1, 4)) for at in target]
    qrels = {
        f"q{q}": {f"e{at}": 3 if at == own else int(rng.integers(0, 3)) for at in np.flatnonzero(of == of[own])}
        for q, own in enumerate(target.tolist())
    }
    return load_dict(
        {
            "corpus": {f"e{at}": text for at, text in enumerate(texts)},
            "queries": {f"q{q}": f"{' '.join(own)} u{q}" for q, own in enumerate(known)},
            "qrels": qrels,
            "text_for_embedding": "{text}",
            "vectors": {"minilm": (vectors, asked)},
        }
    )


class World:
    """A corpus with its queries, recorded for what is used today; its data sets are draws of its labels."""

    def __init__(self, dataset, current):
        self.dataset, self.source = dataset, Source.live(Workspace.open(dataset))
        self.queries = judged(dataset, dataset.queries)
        self.used = read_current(current, 10, self.source)
        self.starts = starts(self.source, self.queries, 10, self.used.label, self.used.config)
        self.tables = [one.table for one in record_all(self.source, self.queries, self.starts)]

    def labels(self, rng):
        """Labels of some queries: few relevant entries of each, graded or not, and entries that are judged 0."""
        per, zeros, graded = rng.choice([1, 2, 3]), rng.choice([0.0, 0.3, 2.0]), rng.random() < 0.5
        every, drawn = [entry.id for entry in self.dataset.entries], {}
        for query in rng.permutation([query.id for query in self.queries])[: rng.choice([12, 19, 20, 22, 30, 40])]:
            own = [(entry, grade) for entry, grade in self.dataset.qrels[query].items() if grade > 0]
            own = [own[at] for at in rng.permutation(len(own))[:per]]
            drawn[str(query)] = {entry: grade if graded else 1 for entry, grade in own}
            for entry in rng.choice(every, rng.poisson(zeros)).tolist():
                drawn[str(query)].setdefault(entry, 0)
        return {query: row for query, row in drawn.items() if row}

    def decisions(self, qrels, changed):
        """A function that decides on the labels, or with one query's labels `changed` (query, its labels)."""
        ids, extra = list(qrels), [(query, row) for query, row in changed if row]
        rows = [*qrels.values(), *(row for _, row in extra)]
        every, names = [*ids, *(query for query, _ in extra)], [str(at) for at in range(len(rows))]
        tables = [only(table, every) for table in self.tables]
        graded = dict(zip(names, rows, strict=True))
        known = [LabelledRecording(one, Judgments.of(graded, names, one.entries)) for one in tables]
        candidates = build_candidates(tuple(known), self.starts, LabelScorer(MEASURES[0]))
        today, grid = of_config(self.used, candidates, MEASURES), candidates.grid

        def decided(change=None):
            own, columns = dict(qrels), {query: at for at, query in enumerate(ids)}
            if change is not None:
                query, row = change
                own.pop(query), columns.pop(query)
                if row:
                    own[query], columns[query] = row, len(ids) + extra.index(change)
            at, dataset = list(columns.values()), replace(self.dataset, qrels=own)
            mine = Grid(grid.blocks, grid.metric[:, at], grid.composite[:, at])
            recordings = tuple(LabelledRecording.of(own, only(table, list(columns))) for table in self.tables)
            values = {measure: column[at] for measure, column in today.values.items()}
            used = replace(today, values=values, composite=today.composite[at])
            asked = [next(query for query in self.queries if query.id == id_) for id_ in columns]
            queries, source = judged(dataset, asked), replace(self.source, dataset=dataset)
            rest = replace(candidates, grid=mine, recordings=recordings)
            return decide(Choice(source, queries, MEASURES, rest, used, 10))

        return decided


def one_less(qrels):
    """Every way to leave one label out: the query, and its labels without it."""
    return [
        (query, {other: grade for other, grade in row.items() if other != entry})
        for query, row in qrels.items()
        for entry in row
    ]


def plain(text):
    """What a face says, without its markup and its line breaks."""
    text = html.unescape(re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]*>", "", text, flags=re.DOTALL))
    return re.sub(r"\s+", "", re.sub(r"\x1b\[[0-9;]*m|[\\`*]", "", text)).casefold()


def check_faces(decided, folder, monkeypatch):
    """Terminal, notebook, report, document and kept run have one verdict, strategy, number and next command."""
    dataset = replace(decided.choice.source.dataset, path=folder, in_memory=False)
    source = replace(decided.choice.source, dataset=dataset)
    decided = replace(decided, choice=replace(decided.choice, source=source))
    result, values = result_of(decided, leaderboard(decided))
    answer, decision, verdict = result.answer, result.decision, decided.ruling.verdict
    found = Recommendation(result, values)
    files = {path.suffix: path.read_text("utf-8") for path in found.report(folder / "report")}
    assert decision.verdict == found.verdict == verdict
    assert answer.key.startswith("public" if decided.public else verdict)
    if decision.chosen:
        assert next(row for row in result.rows if row.label == decision.chosen).strategy in answer.formula
    if decision.verdict != "keep" and not decided.public:
        today, expected = answer.facts["before"], answer.facts["after"]
        assert result.row(result.provenance.baseline).means["nDCG@10"].mean == pytest.approx(today)
        assert expected - today == pytest.approx(min(decision.gain.mean, 1 - today))
    if decision.more and answer.key == "try_more":
        assert 0.5 <= answer.facts["more"] / decision.more <= 2  # said in two digits
    commands = [shlex.join(step.command) for step in answer.steps if step.command]
    for face in (str(found), found._repr_html_(), files[".html"], files[".md"]):
        assert plain(say(answer)) in plain(face)
        assert all(plain(command) in plain(face) for command in commands[:1])
    again = document.read(files[".json"].encode())
    assert (again.answer, again.decision) == (answer, decision)
    monkeypatch.setenv("STEELYARD_RUNS", "on")
    (folder / "dataset.json").write_text("{}")
    saved_runs.keep(dataset, result)
    run, means = saved_runs.kept(dataset)[-1].facts, {row.label: row.means["nDCG@10"].mean for row in result.rows}
    assert (run.verdict, run.baseline, run.labels_needed) == (verdict, result.provenance.baseline, decision.more)
    assert {row.label: row.mean for row in run.rows} == means


@pytest.mark.parametrize(("count", "most"), [(12, 12), pytest.param(500, None, marks=pytest.mark.nightly)])
def test_one_label_never_turns_keep_and_ship_and_every_face_says_the_same(count, most, tmp_path, monkeypatch):
    seen, worlds = Counter(), {}
    for seed in range(count):
        corpus, current = seed % 3, CURRENTS[seed * 3 // count if most else seed // 3 % len(CURRENTS)]
        world = worlds.get((corpus, current))
        if world is None:
            dataset = (lambda: load(starter()), lambda: load(workshop()), lambda: made(seed))[corpus]()  # noqa: B023 -- called at once
            world = worlds[corpus, current] = World(dataset, current)
        rng = np.random.default_rng([7, seed])
        qrels = world.labels(rng)
        changed = one_less(qrels)
        decided = world.decisions(qrels, changed)
        whole = decided()
        verdict = whole.ruling.verdict
        seen[verdict] += 1
        tried = [changed[at] for at in rng.permutation(len(changed))[:most]] if verdict != "try" else []
        assert {decided(change).ruling.verdict for change in tried} <= {verdict, "try"}, (seed, current)
        if seed % 4 == 0:
            (folder := tmp_path / str(seed)).mkdir()
            check_faces(whole, folder, monkeypatch)
    assert set(seen) == {"ship", "try", "keep"}
