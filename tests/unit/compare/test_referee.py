"""The referee: what an agent that tunes may see of the labels, and when."""

import json
import shutil
from dataclasses import replace

import pytest
from shared import ROOT

import steelyard_eval as sy
from steelyard.memory.query import Query
from steelyard_eval.compare.referee import Referee, drawn


@pytest.fixture
def bench(tmp_path):
    return sy.load(shutil.copytree(ROOT / "qrels" / "starter", tmp_path / "own"), embedder="none")


def kept(bench):
    return json.loads((bench.dataset.path / ".steelyard" / "referee.json").read_text())


def test_looks_never_see_what_the_verdict_is_by_and_a_verdict_is_given_once(bench):
    look = bench.compare("bm25, tfidf", referee="look", timed=False)
    bench.compare("fts", referee="look", timed=False)
    seen = {query.id for query in look.result.queries}
    assert kept(bench) == {"looks": 3, "shown": sorted(seen)}  # fts is compared with the set's own system
    with pytest.raises(sy.ConfigError, match="at most 5"):
        bench.compare([f"weighted_sum(0.{at}*bm25, 1*fts)" for at in range(1, 7)], referee="verdict", timed=False)
    assert kept(bench)["shown"] == sorted(seen)
    verdict = bench.compare("bm25", referee="verdict", timed=False)
    assert set(look.values["bm25"]) == set(verdict.values["bm25"])
    tested = {query.id for query in verdict.result.queries}
    assert not seen & tested
    assert kept(bench) == {"looks": 0, "shown": sorted(seen | tested)}
    with pytest.raises(sy.ConfigError):
        bench.compare("bm25", referee="verdict", timed=False)  # until others have labels


def test_a_question_keeps_its_side_and_takes_those_with_it_that_vary_with_it():
    queries = [
        Query(id=f"q{at}", text=f"question {at}", group=f"g{at // 2}" if at < 40 else "") for at in range(200)
    ]
    sealed = drawn(queries)
    assert 60 < len(sealed) < 140  # of 200; four deviations of half of 180 units
    assert all((f"q{at}" in sealed) == (f"q{at + 1}" in sealed) for at in range(0, 40, 2))
    assert drawn(queries[:100]) == {query.id for query in queries[:100]} & sealed
    pair = next(at for at in range(0, 40, 2) if f"q{at}" in sealed)
    assert drawn(queries, [f"q{pair}"]) == sealed - {f"q{pair}", f"q{pair + 1}"}  # what was shown opens its group


def test_what_cannot_stay_sealed_is_refused(bench):
    with pytest.raises(sy.ConfigError, match="in memory"):
        Referee.of(replace(bench.dataset, in_memory=True))
    few = dict(list(bench.dataset.qrels.items())[:12])
    with pytest.raises(sy.ConfigError, match="10 of each"):
        Referee.of(replace(bench.dataset, qrels=few))
    (bench.dataset.path / ".steelyard").mkdir(exist_ok=True)
    (bench.dataset.path / ".steelyard" / "referee.json").write_text('{"looks": -1.5}')
    with pytest.raises(sy.DataError):
        Referee.of(bench.dataset)
