"""Where the intents of queries are from: classified as live search does, or given by the data set."""

import json

import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.base.errors import ConfigError
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.recording.disk import load as read

BY_INTENT = "by_intent(default=fts, fix_bug=bm25)"
ENTRIES = [{"id": f"e{at}", "text": f"rotate the keys {'often ' * at}"} for at in range(4)]
QUERIES = [
    {"id": "q0", "text": "rotate keys", "intent": "fix_bug"},
    {"id": "q1", "text": "why did we choose to rotate keys", "intent": "find_spec"},
    {"id": "q2", "text": "recent keys", "intent": "find_spec"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("asked")
    (made / "dataset.json").write_text(json.dumps({"name": "asked", "as_of": "2026-01-01T00:00:00Z"}))
    (made / "corpus.jsonl").write_text("\n".join(map(json.dumps, ENTRIES)))
    (made / "queries.jsonl").write_text("\n".join(map(json.dumps, QUERIES)))
    (made / "qrels.txt").write_text("q0 0 e0 1\nq1 0 e1 1\nq2 0 e2 1\n")
    return made


def bench(folder, intents=None):
    return sy.load(folder, embedder="lsa", intents=intents)


def run(*words):
    return CliRunner().invoke(main, [*map(str, words), "--embedder", "lsa"])


def asked(folder, system, intents):
    """The intents that a recording of a system holds."""
    found = bench(folder, intents)
    out = folder / f"{system}-{intents}".replace(":", ".")
    found.record(out, system)
    table = read(next(out.iterdir()))
    labels = table.asked.labels["intent"]
    return [labels.words[code] for code in labels.codes.tolist()]


@pytest.mark.parametrize(
    ("system", "intents", "expected"),
    [
        (
            "spec_kit",
            None,
            ["understand", "find_decision", "understand"],
        ),  # rotate keys: no keyword; why, choose: 4.0
        ("spec_kit", "given", ["fix_bug", "find_spec", "find_spec"]),
        ("spec_kit:js", "given", ["fix_bug", "understand", "understand"]),  # it has no find_spec, so it classifies
        ("cortex_mem", "given", ["general", "general", "temporal"]),  # none of these words is its own
        ("fts", None, ["", "", ""]),
        ("fts", "given", ["fix_bug", "find_spec", "find_spec"]),
    ],
)
def test_a_table_holds_what_live_search_classifies_or_what_is_given_and_known(folder, system, intents, expected):
    assert asked(folder, system, intents) == expected


def test_searching_explaining_and_comparing_agree_and_tell_which(folder):
    for intents, own in ((None, "find_decision"), ("given", "find_spec")):
        made = bench(folder, intents)
        found = made.search("q1", "spec_kit").result
        assert found.query.intent == own
        record = made.explain("q1", "spec_kit").record
        assert (record["intents"], record["configurations"][0]["intent"]) == (intents or "classified", own)
        shown = [(hit["id"], hit["score"]) for hit in record["configurations"][0]["entries"]]
        assert shown == [(hit.entry.id, hit.score) for hit in found.hits]
        compared = made.compare("spec_kit", timed=False).result.provenance
        assert compared.intents == (intents or "classified")
        assert ("given" in compared.command) == (intents == "given")


def test_a_strategy_by_intent_that_nobody_classifies_for_is_noticed(folder):
    for intents in (None, "given"):
        found = bench(folder, intents).compare([BY_INTENT, "fts", "spec_kit"], timed=False).result
        told = [notice.facts["labels"] for notice in found.notices if notice.key == "unclassified"]
        assert told == ([] if intents else [[BY_INTENT]])


def test_a_recording_keeps_its_own_and_refuses_the_other(folder, tmp_path):
    bench(folder, "given").record(tmp_path / "given", "spec_kit")
    own = next((tmp_path / "given").iterdir())
    assert bench(folder).compare("spec_kit", recording=own, timed=False).result.provenance.intents == "given"
    with pytest.raises(ConfigError, match="--intents classified"):
        bench(folder, "classified").compare("spec_kit", recording=own, timed=False)


def test_a_baseline_is_of_one_of_them(folder, tmp_path):
    baseline = tmp_path / "baseline.json"
    bench(folder).update_baseline("spec_kit", because="the first", baseline=baseline)
    assert bench(folder).gate(baseline=baseline).verdict == "pass"
    found = bench(folder, "given").gate(baseline=baseline)
    finding, below = found.result.findings
    assert (found.verdict, finding.facts["part"]) == ("mismatch", "queries")
    assert found.result.provenance.intents == "given"
    assert below.key == "gate_digest"


def test_another_word_is_refused(folder):
    with pytest.raises(ConfigError, match="'labelled' are unknown;"):
        load(folder, "labelled")
    assert run("compare", folder, "fts", "--intents", "labelled").exit_code == 2
