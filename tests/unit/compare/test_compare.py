"""Comparing: what is shared, what is left out, and text that means harm."""

import dataclasses
import json

import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.workspace import Workspace

HARM = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def dataset():
    return load(starter())


def test_systems_that_retrieve_alike_share_one_recording_and_give_what_they_give_alone(dataset):
    together = compare(dataset, ("fts", "bm25", "vector", "rrf(fts, bm25)"), timed=False)
    alone = compare(dataset, ("bm25",), timed=False)

    assert together.values["bm25"]["nDCG@10"].tolist() == alone.values["bm25"]["nDCG@10"].tolist()


def test_a_query_without_judgments_is_left_out_and_counted(dataset):
    extra = dataclasses.replace(dataset, queries=(*dataset.queries, Query("rotate keys", id="unjudged")))

    found = compare(extra, ("bm25",), embedder="none", timed=False)

    assert "unjudged" not in found.queries
    assert found.result.provenance.data.queries == len(dataset.split("all")) + 1
    assert found.result.provenance.data.judged == len(dataset.split("all"))


def test_an_unknown_baseline_is_told_with_the_nearest(dataset):
    with pytest.raises(ConfigError, match="you mean 'bm25'"):
        compare(dataset, ("bm25", "fts"), baseline="bm26", embedder="none", timed=False)


def test_alone_it_names_the_command_that_compares_with_what_is_used(dataset):
    """Starter's dataset.json says "system": "echovault", which the command takes; bm25 stands in for none."""
    for system, used in (("echovault", "echovault"), ("", "bm25")):
        found = compare(dataclasses.replace(dataset, system=system), ("fts",), embedder="none", timed=False)
        (step,) = found.result.answer.steps
        assert (step.key, step.facts) == ("compare_today", {"today": used})
        assert step.command[-3:] == ["fts", "--current", used]

    said = CliRunner().invoke(main, ["compare", str(starter()), "fts", "--embedder", "none", "--json"]).stdout
    assert json.loads(said)["provenance"]["baseline"] == "echovault"


def test_one_configuration_twice_is_refused(dataset):
    with pytest.raises(ConfigError, match="named twice"):
        compare(dataset, ("bm25", "bm25:documented"), embedder="none", timed=False)


def test_the_limit_is_the_largest_cutoff_unless_it_is_given(dataset):
    found = compare(dataset, ("bm25",), metrics=("nDCG@3", "R@7"), embedder="none", timed=False)

    assert found.result.provenance.limit == 7
    assert found.result.metric == "nDCG@3"


def test_without_an_embedder_tiers_and_sums_answer_by_what_is_left(dataset):
    found = compare(
        dataset, ("fts", "echovault", "weighted_sum(0.5*fts, 0.5*vector)"), embedder="none", timed=False
    )

    strategies = [row.cost.embedded for row in found.result.rows]
    assert strategies == [0, 0, 0]
    # the sum lost its vector: half of the fts score ranks as fts does
    assert found.values["weighted_sum(0.5*fts, 0.5*vector)"]["nDCG@10"].tolist() == (
        found.values["fts"]["nDCG@10"].tolist()
    )


def test_a_reduced_strategy_is_reported_as_it_ran(dataset):
    found = compare(dataset, ("fts", "echovault"), embedder="none", timed=False)

    row = found.result.row("echovault")
    assert (row.strategy, row.family) == ("fts", "single")
    (told,) = [notice for notice in found.result.notices if notice.key == "reduced"]
    assert (told.facts["label"], told.facts["left"], told.facts["missing"]) == ("echovault", "fts", ["vector"])


@pytest.mark.parametrize(
    ("strategy", "family"),
    [
        ("comb_mnz(fts, bm25)", "CombMNZ"),
        ("comb_max(fts, bm25)", "CombMAX"),
        ("log_isr(fts, bm25)", "log ISR"),
        ("rrf(fts, bm25)", "RRF"),
        ("tiered(fts, then=bm25)", "tiered"),
    ],
)
def test_every_fusion_is_compared_under_the_name_of_its_family(dataset, strategy, family):
    found = compare(dataset, [strategy], embedder="none", timed=False)

    (row,) = found.result.rows
    assert row.family == family
    assert row.strategy.startswith(strategy.partition("(")[0])


def test_without_a_metric_there_is_nothing_to_say(dataset):
    with pytest.raises(ConfigError, match="metric is named"):
        compare(dataset, ("fts",), metrics=(), embedder="none", timed=False)


def test_judged_is_always_told_and_a_limit_below_a_cutoff_too(dataset):
    found = compare(dataset, ("fts",), metrics=("nDCG@10",), limit=5, embedder="none", timed=False)

    assert found.result.rows[0].means.keys() == {"nDCG@10", "Judged@10"}
    (told,) = [notice for notice in found.result.notices if notice.key == "shallow"]
    assert told.facts == {"limit": 5, "metrics": ["nDCG@10", "Judged@10"]}


def test_harmful_text_stays_text_in_a_notebook(dataset):
    entries = (*dataset.entries, Entry(HARM.replace("\x1b", "e"), title=HARM, text=HARM))
    hostile = dataclasses.replace(dataset, name=HARM, description=HARM, entries=entries)
    space = Workspace.open(hostile, "none")

    found = compare(hostile, ("bm25", "weighted_sum(1*fts)"), embedder="none", timed=False, workspace=space)

    assert "<script" not in found._repr_html_()
    assert "\x1b" not in repr(found) + str(found)


def test_the_same_seed_gives_the_same_document(dataset):
    first, second = (compare(dataset, ("bm25", "fts"), embedder="none", timed=False).to_json() for _ in range(2))

    assert first == second
