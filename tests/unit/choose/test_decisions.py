"""Decisions: one label less, or one more, never turns keep to ship or ship to keep; every face says the same.

The data sets are draws of labels over few corpora, each of which is recorded once. Every data set with one label
less has the columns of the whole one but for that query, so all of them are laid out together.
"""

import html
import json
import re
import shlex
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from shared import run, tabled

from steelyard import SearchConfig, find_system, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates import choice_limits
from steelyard_eval.candidates.candidates import build_candidates, of_config, record_all
from steelyard_eval.candidates.choice_limits import Restriction
from steelyard_eval.candidates.families import Source, StartingPoint, read_current, starts
from steelyard_eval.candidates.grid import Grid, LabelledRecording, LabelScorer
from steelyard_eval.choose.answer import restriction_cost
from steelyard_eval.choose.choice import Choice, decide
from steelyard_eval.choose.differences import ModelLabels
from steelyard_eval.choose.leaderboard import leaderboard
from steelyard_eval.choose.recommend import METRICS, Recommendation, recommend, weights_of
from steelyard_eval.choose.result import result_of
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.lists_and_latency import Latencies
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.datasets.in_memory import load_dict
from steelyard_eval.datasets.manifest import starter, workshop
from steelyard_eval.export import TARGETS, export
from steelyard_eval.extensions.model_judge import model_labels
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.measures.spread import Gain
from steelyard_eval.recording import saved_runs
from steelyard_eval.recording.replay import only, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result import document
from steelyard_eval.result.sentences import say
from steelyard_eval.workbench import Workbench

pytestmark = pytest.mark.usefixtures("opened_once")
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
    run = saved_runs.load_runs(dataset)[-1].facts
    means = {row.label: row.means["nDCG@10"].mean for row in result.rows}
    assert (run.verdict, run.baseline, run.labels_needed) == (verdict, result.provenance.baseline, decision.more)
    assert {row.label: row.mean for row in run.rows} == means


@pytest.mark.parametrize(
    ("count", "most", "size"), [(5, 8, 48), pytest.param(500, None, 80, marks=pytest.mark.nightly)]
)
def test_one_label_never_turns_keep_and_ship_and_every_face_says_the_same(
    count, most, size, tmp_path, monkeypatch
):
    seen, worlds = Counter(), {}
    for seed in range(count):
        corpus, current = seed % 3, CURRENTS[(seed % 3 + seed // 6) % len(CURRENTS)]  # two draws of each
        world = worlds.get((corpus, current))
        if world is None:
            dataset = made(seed) if corpus == 2 else load((starter(), workshop())[corpus])
            world = worlds[corpus, current] = World(replace(dataset, queries=dataset.queries[:size]), current)
        rng = np.random.default_rng([7, seed])
        qrels = world.labels(rng)
        # every way to leave one label out: the query, and its labels without it
        ways = ((query, entry) for query, row in qrels.items() for entry in row)
        changed = [(query, {e: g for e, g in qrels[query].items() if e != entry}) for query, entry in ways]
        changed = [changed[at] for at in rng.permutation(len(changed))[:most]]
        decided = world.decisions(qrels, changed)
        whole = decided()
        verdict = whole.ruling.verdict
        seen[verdict] += 1
        tried = changed if verdict != "try" else []
        assert {decided(change).ruling.verdict for change in tried} <= {verdict, "try"}, (seed, current)
        if seed % 4 == 0:
            (folder := tmp_path / str(seed)).mkdir()
            check_faces(whole, folder, monkeypatch)
    assert set(seen) == {"ship", "try", "keep"}


# A language model's labels: when they count, what they change, and what they cannot change

(NDCG,) = parse_measures(["nDCG@10"])
LABELLED = 30


def laid_out(source, queries, tried, qrels=None):
    return build_candidates(record_all(source, queries, tried, qrels), tried, LabelScorer(NDCG))


@pytest.fixture(scope="module")
def few(dataset):
    """Half of the labels, as a user has them: the other queries are there and not labelled."""
    own = [query.id for query in judged(dataset, dataset.queries)][:LABELLED]
    return replace(dataset, qrels={id_: dataset.qrels[id_] for id_ in own}, sampled="random")


@pytest.fixture(scope="module")
def bench(few):
    """Recorded once for all of them."""
    return Workbench(few)


@pytest.fixture(scope="module")
def alone(bench):
    return bench.recommend("bm25", timed=False).result


def written(path, dataset, grade):
    """A file of `judge --model`, of every judged pair and of pairs up to twenty a query."""
    rng, rows = np.random.default_rng(3), []
    ids = [entry.id for entry in dataset.entries]
    for query in judged(dataset, dataset.queries):
        known = dataset.qrels[query.id]
        for entry in dict.fromkeys([*known, *rng.choice(ids, 20).tolist()]):
            row = {"query": query.id, "entry": entry, "grade": grade(known.get(entry, 0), rng)}
            rows.append({**row, "note": "llm:tiny:relevance-1", "at": "2026-11-23T00:00:00Z"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestModelLabels:
    def test_a_model_that_says_the_same_makes_labels_worth_more(self, dataset, few, bench, alone, tmp_path):
        file = written(tmp_path / "model.jsonl", dataset, lambda grade, rng: grade)
        own = model_labels(file, few)
        assert own.agreement["counts"]
        both = bench.recommend("bm25", timed=False, model_labels=file).result
        queries = judged(dataset, dataset.queries)
        groups = {query.group or query.id for query in queries if query.id not in few.qrels}
        groups -= {query.group for query in queries if query.id in few.qrels}
        (said,) = [said for said in both.notices if said.key == "model_labels"]
        told = ("both", "others", "unrelated")
        assert [said.facts[name] for name in told] == [LABELLED, len(groups), False]
        assert "weighted kappa 1.00 [1.00, 1.00]" in said.facts["text"].lower()
        assert said.facts["worth"] > LABELLED
        assert both.provenance.command[-2:] == ["--model-labels", str(file)]
        assert not [said for said in alone.notices if said.key.startswith("model_labels")]

    def test_a_model_at_chance_changes_nothing(self, dataset, few, bench, alone, tmp_path):
        file = written(tmp_path / "model.jsonl", dataset, lambda grade, rng: int(rng.integers(0, 4)))
        both = bench.recommend("bm25", timed=False, model_labels=file).result
        assert both.notices[0].key == "model_labels_odd"
        for part in ("decision", "answer", "rows"):
            assert getattr(both, part) == getattr(alone, part)

    def test_a_query_counts_from_ten_judged_pairs_on(self, dataset, few):
        """As many as one search shows."""
        source, queries = Source.live(Workspace.open(few)), judged(few, few.queries)
        laid = laid_out(source, queries, starts(source, queries, 10)[:1])
        ids = [entry.id for entry in few.entries]

        def measured(pairs):
            qrels = {query.id: dict.fromkeys(ids[:pairs], 1) for query in dataset.queries}
            return ModelLabels("m", qrels, {"counts": True}, "").measured(
                source, queries, laid, laid.grid.config(0), NDCG
            )

        assert measured(9) is None
        assert measured(10) is not None

    def test_lists_and_files_without_judgments_are_refused(self, few, tmp_path):
        with pytest.raises(ConfigError, match="has no judgments"):
            model_labels(tmp_path / "none.jsonl", few)
        file = written(tmp_path / "model.jsonl", few, lambda grade, rng: grade)
        with pytest.raises(ConfigError, match="configuration as --current"):
            recommend(few, lambda query: [few.entries[0].id], timed=False, model_labels=model_labels(file, few))

    def test_a_branch_that_other_queries_alone_reach_keeps_its_weights(self, dataset):
        """fts finds enough for the one query, so `then` is never asked; for the other it finds too little."""
        source = Source.live(Workspace.open(dataset, "lsa"))  # recorded vectors know no other queries
        many = replace(dataset.queries[0], text="the connection and the key of a service")
        few = replace(dataset.queries[1], text="QueuePool")
        config = find_system("plain").config(10, source.model)
        text = "tiered(fts, min_results=12, then=weighted_sum(0.3*bm25, 0.7*vector, normalize=max))"
        own = Contender("own", config.with_strategy(parse_strategy(text)), "strategy")
        start = StartingPoint.around(own, source)
        qrels = {query.id: {entry.id: 1 for entry in dataset.entries[::3]} for query in (many, few)}
        laid = laid_out(source, (many,), [start], qrels)
        moved = replace(laid, recordings=record_all(source, (many, few), [start], qrels))
        values, config = moved.again(NDCG), laid.grid.blocks[0].config
        known = moved.recorded(config)
        own = replay(known.table, config).metrics(known.judgments, [NDCG])[NDCG]
        assert values.shape == (len(laid.grid), 2)
        assert values[0] == pytest.approx(own, abs=1e-6)
        assert own[1] > 0


# A recommendation for a target exports to it, one within a budget keeps it, and both say what that costs


@pytest.fixture(scope="module")
def space(dataset):
    return Workspace.open(replace(dataset, queries=dataset.queries[:60]), "lsa")


@pytest.fixture(scope="module")
def case(space):
    """All starts laid out once, against echovault, which few targets express; of their settings one in six."""
    source, queries = Source.live(space), judged(space.dataset, space.dataset.queries)
    used = read_current("echovault", 10, source)
    laid = laid_out(source, queries, starts(source, queries, 10, used.label, used.config))
    block = np.repeat(np.arange(len(laid.grid.blocks)), np.diff(laid.grid.starts))
    own = block[np.unique(laid.start_index, return_index=True)[1]]
    some = laid.only(np.isin(block, own) | (block % 6 == 0))
    return Choice(source, queries, MEASURES, some, of_config(used, laid, MEASURES), 10)


class TestRestrictions:
    @pytest.mark.parametrize("target", TARGETS)
    def test_what_is_recommended_for_a_target_exports_to_it(self, case, target):
        own = case.restricted(Restriction(target))
        decided = decide(own)
        chosen = decided.picked or decided.instead or own.current.config
        export(chosen, target)  # ConfigError for what it cannot express
        counts = len(own.candidates.grid), len(case.candidates.grid)
        cost = restriction_cost(decided).facts
        assert (cost["kept"], cost["of"]) == counts
        for candidate in np.random.default_rng(0).integers(len(own.candidates.grid), size=5).tolist():
            export(own.candidates.grid.config(candidate), target)

    def test_what_is_given_up_is_the_difference_of_the_two_gains(self, case):
        decided = decide(case.restricted(Restriction("cortex_mem")))
        result, _ = result_of(decided, leaderboard(decided))
        said = next(one for one in result.answer.because if one.key == "restricted")
        cost = said.facts["without"] - said.facts["within"]
        assert said.facts["kept"] < said.facts["of"] == len(case.candidates.grid)
        assert said.facts["cost"] == pytest.approx(cost, abs=1e-12)
        assert said.facts["low"] < cost < said.facts["high"]
        assert cost > 0  # there are no layers to search here, and that is all that Cortex-Mem does
        assert "layers" in said.facts["not_allowed"]
        attempt = weights_of(decided)[1]
        assert attempt is not None  # what is kept cannot be run there, so the best that can is written beside it
        command = ["steelyard", "export", "search-weights.try.json", "--to", "cortex_mem"]
        assert command in [step.command for step in result.answer.steps]

    def test_no_calls_leave_only_what_reads_no_vectors(self, case):
        """EchoVault's second tier has vectors, which a query that words find nothing for would need."""
        own = case.restricted(Restriction(embedding_calls=0))
        labels = {start.label for start in own.candidates.starts}
        assert {"bm25", "fts"} <= labels
        assert labels.isdisjoint({"vector", "weighted sum", "RRF", "soleri", "moltnet", "tiered", "echovault"})
        most = case.restricted(Restriction(embedding_calls=100))
        assert len(most.candidates.grid) == len(case.candidates.grid)
        assert restriction_cost(decide(most)).key == "restricted_free"

    def test_slow_searches_are_no_candidates(self, case, space, monkeypatch):
        """Searches by keywords take 2 ms, all others 8."""

        def timed(space, config, *_):
            return Latencies([2.0 if config.effective.signals <= {"fts", "bm25"} else 8.0])

        monkeypatch.setattr(choice_limits, "latencies", timed)
        own = case.restricted(Restriction(latency=5))
        assert {start.label for start in own.candidates.starts} == {"bm25", "fts"}
        assert restriction_cost(decide(own)).facts["ms"] == "5"
        with pytest.raises(ConfigError, match="allow more"):
            case.restricted(Restriction(latency=1))
        source = Source(space.dataset, table=case.candidates.recordings[0].table, folder=starter())
        with pytest.raises(ConfigError, match="leave --latency out"):
            replace(case, source=source).restricted(Restriction(latency=5))

    @tabled
    def test_wrong_restrictions_are_refused_before_anything_runs(self, name, value, said):
        with pytest.raises(ConfigError, match=said):
            Restriction(**{name: value})

    def test_the_command_writes_what_the_next_one_exports(self, tmp_path):
        out = tmp_path / "w.json"
        arguments = ["--for", "elasticsearch", "--current", "soleri", "--out", str(out), "--json"]
        record = json.loads(run("recommend", str(starter()), *arguments).stdout)
        (step,) = [one for one in record["answer"]["steps"] if one["key"] == "export"]
        file = step["command"][2]
        assert SearchConfig.load(file).effective.signals <= {"fts", "bm25", "vector"}
        done = run(*step["command"][1:])
        assert done.exit_code == 0, done.output
        assert "--for elasticsearch" in " ".join(record["provenance"]["command"])

    def test_why_fewer_candidates_can_look_better_is_told_where_that_is_within_the_noise(self):
        gains = np.array([0.1, 0.0, 0.2, -0.1])
        worse, better = (
            choice_limits.Best(f"{sign}", sign * gains, Gain.of(sign * 0.05, 0.01)) for sign in (-1, 1)
        )
        counts = {"kept": 1, "of": 2}
        told = [
            choice_limits.describe_cost(Restriction("elasticsearch"), *sides, np.arange(4), "nDCG@10", counts)
            for sides in ((worse, better), (better, worse))
        ]
        assert [one.key for one in told] == ["restricted_no_cost", "restricted"]
        # differences of 0.2, 0, 0.4 and -0.2: error sqrt(.2 / 3 / 4) = .1291, ends 0.1 -+ 1.96 * .1291
        assert [told[1].facts[end] for end in ("gained", "high")] == pytest.approx([0.153, 0.353], abs=5e-4)
