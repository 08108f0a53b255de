"""A recommendation for a target exports to it, one within a budget keeps it, and both say what that costs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import run

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard_eval.candidates import choice_limits
from steelyard_eval.candidates.candidates import build_candidates, of_config, record_all
from steelyard_eval.candidates.choice_limits import Restriction
from steelyard_eval.candidates.families import starts
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.candidates.source import Source, read_current
from steelyard_eval.choose.answer import restriction_cost
from steelyard_eval.choose.choice import Choice, decide
from steelyard_eval.choose.leaderboard import leaderboard
from steelyard_eval.choose.recommend import METRICS, weights_of
from steelyard_eval.choose.result import result_of
from steelyard_eval.compare.lists_and_latency import Latencies
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.export import TARGETS, export
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.spread import Gain
from steelyard_eval.recording.workspace import Workspace


@pytest.fixture(scope="module")
def space():
    whole = load(starter())
    return Workspace.open(replace(whole, queries=whole.queries[:60]), "lsa")


@pytest.fixture(scope="module")
def case(space):
    """Everything laid out once, against echovault, which few targets express."""
    source, measures = Source.live(space), parse_measures(["nDCG@10", *METRICS])
    queries = [query for query in space.dataset.queries if query.id in space.dataset.qrels]
    used = read_current("echovault", 10, source)
    tried = starts(source, queries, 10, used.label, used.config)
    laid = build_candidates(record_all(source, queries, tried), tried, LabelScorer(measures[0]))
    return Choice(source, queries, measures, laid, of_config(used, laid, measures), 10)


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
        own = case.restricted(Restriction("cortex_mem"))
        decided = decide(own)
        result, _ = result_of(decided, leaderboard(decided))
        said = (
            result.answer.because[0] if result.answer.because[0].key == "restricted" else result.answer.because[1]
        )
        cost = said.facts["without"] - said.facts["within"]
        assert said.facts["kept"] < said.facts["of"] == len(case.candidates.grid)
        assert said.facts["cost"] == pytest.approx(cost, abs=1e-12)
        assert said.facts["low"] < cost < said.facts["high"]
        assert cost > 0  # there are no layers to search here, and that is all that Cortex-Mem does
        assert "layers" in said.facts["not_allowed"]
        attempt = weights_of(decided, lambda: 0.0)[1]
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
        over = replace(
            case, source=Source(space.dataset, table=case.candidates.recordings[0].table, folder=starter())
        )
        with pytest.raises(ConfigError, match="leave --latency out"):
            over.restricted(Restriction(latency=5))

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("target", "elastic", "unknown target 'elastic'; did you mean 'elasticsearch'"),
            *(("latency", value, f"latency {value} is") for value in (-1, float("nan"))),
            *(("embedding_calls", value, f"embedding_calls {value} is") for value in (-5, 101)),
        ],
    )
    def test_wrong_restrictions_are_refused_before_anything_runs(self, name, value, said):
        with pytest.raises(ConfigError, match=said):
            Restriction(**{name: value})

    def test_the_command_writes_what_the_next_one_exports(self, tmp_path):
        out = tmp_path / "w.json"
        arguments = ["--for", "elasticsearch", "--current", "soleri", "--out", str(out), "--json"]
        ended = run("recommend", str(starter()), *arguments)
        record = json.loads(ended.stdout)
        (step,) = [one for one in record["answer"]["steps"] if one["key"] == "export"]
        file = step["command"][2]
        assert SearchConfig.load(file).effective.signals <= {"fts", "bm25", "vector"}
        done = run(*step["command"][1:])
        assert done.exit_code == 0, done.output
        assert "--for elasticsearch" in " ".join(record["provenance"]["command"])

    def test_why_fewer_candidates_can_look_better_is_told_where_that_is_within_the_noise(self):
        gains = np.array([0.1, 0.0, 0.2, -0.1])
        worse, better = (choice_limits.Best("x", sign * gains, Gain.of(sign * 0.05, 0.01)) for sign in (-1, 1))
        told = [
            choice_limits.said_of_cost(Restriction("elasticsearch"), *sides, np.arange(4), "nDCG@10", {}).key
            for sides in ((worse, better), (better, worse))
        ]
        assert told == ["restricted_no_cost", "restricted"]
