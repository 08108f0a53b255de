"""Each layer is read from its own vectors; where the intents of queries are from."""

from types import SimpleNamespace

import numpy as np
import pytest
from shared import tabled, vault_with, write_set

import steelyard_eval as sy
from steelyard import Entry, Query, RecordedEmbedder, Searcher, Vault, find_system, parse_strategy
from steelyard.stores.base import Space
from steelyard_eval.candidates.families import starts
from steelyard_eval.compare import compare
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import load
from steelyard_eval.datasets.vectors import recorded as recorded_vectors
from steelyard_eval.recording.disk import load as read, save
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.vaults import index_dataset, vault_embedder

LAYERED = "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])"


@pytest.fixture
def write(tmp_path):
    """Four entries with text, abstract and overview, and random vectors of the layers named."""

    def made(vectors, **fields):
        rng, rows = np.random.default_rng(7), {}
        entries = [
            {"id": f"e{at}", "title": f"title {at}", "text": f"word{at} token", "details": f"in full {at}"}
            | fields
            for at in range(4)
        ]
        queries = [{"id": "q", "text": "which token"}]
        folder = write_set(tmp_path / "set", entries, queries, "q 0 e1 1\n", text_for_embedding="{title}")
        for name in ("queries", *vectors):
            file = name if name == "queries" else "corpus" if name == "text" else f"corpus.{name}"
            rows[name] = rng.normal(size=(1 if name == "queries" else 4, 5)).astype(np.float16)
            if name == "l2":
                rows[name][3] = 0  # absent
            np.save(folder / f"{file}.small.f16.npy", rows[name])
        return load(folder), {name: own.astype(float) for name, own in rows.items()}

    return made


@tabled
def test_recorded_layers_are_read_row_by_row(write, vectors, l2, recipe):
    dataset, made = write(vectors, l0="one abstract", l1="an overview")
    # One text of all entries stands for one vector, so the layers that tell entries apart are asked.
    space = Workspace.open(dataset)
    config = find_system("plain").config(10, space.model).with_strategy(parse_strategy(LAYERED))
    table = record(space, dataset.queries, [config])
    rows, query = made[l2], made["queries"][0]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    expected = np.where(lengths > 0, rows @ query / np.where(lengths > 0, lengths, 1), np.nan)
    np.testing.assert_allclose(table.columns["l2"], expected, atol=1e-6)
    assert table.fingerprint["layers"] == {"l0": "{l0}", "l1": "{l1}", "l2": recipe}


@pytest.mark.parametrize("fields", [{"l0": "one abstract", "l1": "an overview"}, {}], ids=["layered", "plain"])
def test_a_vault_embeds_l2_where_its_entries_have_layers(write, tmp_path, fields):
    dataset, _ = write((), **fields)
    index_dataset(dataset, str(tmp_path / "v.db"))
    with Vault(tmp_path / "v.db") as vault:
        spaces = {space.layer: space.recipe for space, _ in vault.spaces()}
        embedder = vault_embedder(vault)
        config = find_system("plain").config(10, embedder.model).with_strategy(parse_strategy("l2"))
        hits = Searcher(vault, config, embedder).search("word1 token in full").hits
        assert spaces.get("l2") == ("{text}\n{details}" if fields else None)
        asked = embedder.embed(["word1 token in full"])[0]
        for hit in hits:
            words = f"{hit.entry.text}\n{hit.entry.details}" if fields else f"{hit.entry.title}\n{hit.entry.text}"
            assert hit.score == pytest.approx(float(embedder.embed([words])[0] @ asked), abs=1e-6)
        assert len(hits) == 4


def test_the_directories_of_a_recording_are_kept(tmp_path):
    """The score of the message is 0.2 x 1 + 0.3 x 1 + 0.5 x 1 of vectors that are all the query's."""
    home = "cortex://session/a/timeline"
    entries = [
        {"id": "d", "uri": home, "l0": "the token", "l1": "the token"},
        {"id": "m", "uri": f"{home}/1.md", "text": "the token"},
    ]
    dataset = load(write_set(tmp_path / "set", entries, [{"id": "q", "text": "the token"}], "q 0 m 1\n"))
    store = vault_with(*dataset.entries)
    space = Workspace(dataset, store, RecordedEmbedder("ones", "{title}\n{text}", {"the token": np.ones(2)}))
    space_config = find_system("cortex_mem").config(10, "ones")
    for layer, recipe, id_ in (("l0", "{l0}", "d"), ("l1", "{l1}", "d"), ("l2", "{text}\n{details}", "m")):
        store.put_vectors(Space("ones", layer, recipe), [id_], np.ones((1, 2), dtype=np.float32))
    table = space.searcher(space_config).record(dataset.queries, ("l0", "l1", "l2", "unindexed"), None, "")
    assert table.directory.tolist() == [0, 0]
    save(table, tmp_path / "recording")
    assert read(tmp_path / "recording").directory.tolist() == [0, 0]
    replayed = replay(read(tmp_path / "recording"), space_config)
    assert [replayed.table.entries[entry] for entry in replayed.entry] == ["m"]
    assert replayed.ranking.score.tolist() == pytest.approx([1.0])


def test_a_row_of_zeros_gives_way_to_a_vector_of_the_same_text_and_no_vector_to_another():
    rows = {"l0": [[0, 0], [1, 0]], "l1": None, "text": [[0, 1], [0, 2]]}
    dataset = SimpleNamespace(
        queries=(),
        query_vectors={"m": ()},
        recipe="{text}",
        entries=(Entry("a", l0="red", text="red"), Entry("b", l0="blue", text="blue")),
        vectors={("m", layer): row and np.array(row, dtype=np.float16) for layer, row in rows.items()},
    )
    assert recorded_vectors(dataset, "m").embed(["red", "blue"]).tolist() == [[0, 1], [1, 0]]


BY_INTENT = "by_intent(default=fts, fix_bug=bm25)"
ENTRIES = [{"id": f"e{at}", "text": f"rotate the keys {'often ' * at}"} for at in range(4)]
QUERIES = [
    {"id": "q0", "text": "rotate keys", "intent": "fix_bug"},
    {"id": "q1", "text": "why did we choose to rotate keys", "intent": "find_spec"},
    {"id": "q2", "text": "recent keys", "intent": "find_spec"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    qrels = "q0 0 e0 1\nq1 0 e1 1\nq2 0 e2 1\n"
    return write_set(tmp_path_factory.mktemp("asked"), ENTRIES, QUERIES, qrels, as_of="2026-01-01T00:00:00Z")


def bench(folder, intents=None):
    return sy.load(folder, embedder="lsa", intents=intents)


@tabled
def test_a_table_holds_what_live_search_classifies_or_what_is_given_and_known(folder, system, intents, expected):
    out = folder / f"{system}-{intents}".replace(":", ".")
    bench(folder, intents).record(out, system)
    labels = read(next(out.iterdir())).query_facts.labels["intent"]
    assert [labels.words[code] for code in labels.codes.tolist()] == expected.split(" ")


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
    with pytest.raises(sy.ConfigError, match="--intents classified"):
        bench(folder, "classified").compare("spec_kit", recording=own, timed=False)


def test_a_baseline_is_of_one_of_them(folder, tmp_path):
    baseline = tmp_path / "baseline.json"
    bench(folder).update_baseline("spec_kit", reason="the first", baseline=baseline)
    assert bench(folder).gate(baseline=baseline).verdict == "pass"
    found = bench(folder, "given").gate(baseline=baseline)
    finding, below = found.result.findings
    assert (found.verdict, finding.facts["part"]) == ("mismatch", "queries")
    assert found.result.provenance.intents == "given"
    assert below.key == "gate_digest"


def test_weights_by_intent_are_proposed_only_where_intents_are_given(folder):
    with pytest.raises(sy.ConfigError, match="'labelled' are unknown;"):
        load(folder, "labelled")
    queries = [Query("keys", id=f"q{at}", intent="fix_bug") for at in range(5)]
    for intents, there in ((None, False), ("given", True)):
        found = starts(Source.live(bench(folder, intents).workspace), queries, 10)
        assert any(start.label == "by intent" for start in found) == there


def test_a_comparison_shows_that_a_set_without_layers_was_searched_by_details_alone(write):
    dataset, _ = write(("text",))
    result = compare(dataset, "cortex_mem, bm25", timed=False).result
    (table,) = [table for table in result.tables if table.key == "layers"]
    assert table.rows == [["cortex_mem", 1, 0, 0, 1, 0, 0.0, 0.0, 0.0]]
    (told,) = [notice for notice in result.notices if notice.key == "no_abstract"]
    assert told.facts == {"label": "cortex_mem", "count": 1, "queries": 1}
