"""Known items: a healthy index finds all of them, and what a broken one misses is named."""

from dataclasses import replace

import numpy as np
import pytest
from shared import STARTER, document, tabled

from steelyard.memory.entry import Entry
from steelyard_eval.datasets import load
from steelyard_eval.explain.known_items import ask_known_items, broken_vectors, known_items

WORDS = [f"word{at}" for at in range(16)]


@pytest.fixture(scope="module")
def dataset():
    """200 entries of two fields, each sentence of words that no other one has in this order."""
    rng = np.random.default_rng(0)

    def sentence(at, field):
        return " ".join([f"{field}{at}", *rng.choice(WORDS, 5), f"{field}end{at}"]) + "."

    entries = tuple(
        Entry(f"m{at}", title=f"Title {at}", text=sentence(at, "t"), why=sentence(at, "w"), type="note")
        for at in range(200)
    )
    return replace(load(STARTER), entries=entries, queries=(), qrels={}, vectors={}, query_vectors={})


def found_in(dataset, fields):
    """A contender that searches these fields alone, by shared words."""

    def search(query):
        asked = set(query.text.split())
        texts = {entry.id: " ".join(getattr(entry, name) for name in fields) for entry in dataset.entries}
        scores = {id_: len(asked & set(text.split())) for id_, text in texts.items()}
        return sorted(scores, key=lambda id_: -scores[id_])[:10]

    return search


def test_a_healthy_index_finds_all_of_them(dataset):
    found = ask_known_items(dataset, "bm25", embedder="none")
    assert (found["questions"], found["missed"]) == (200, 0)
    assert found["sentence"].startswith("bm25 misses 0") and found["sentence"].endswith("(0%).")


def test_a_field_that_is_not_indexed_is_named(dataset):
    found = ask_known_items(dataset, found_in(dataset, ["text"]), embedder="none")
    asked = {row["kind"]: (row["questions"], row["missed"]) for row in found["kinds"]}
    assert asked["field text"][1] == 0
    why = asked["field why"]
    assert why[1] > 0.9 * why[0]
    assert f"Of field why: {why[1]} of {why[0]}; is it indexed?" in found["sentence"]
    assert "Of type note" not in found["sentence"]  # all are notes, which explains nothing


def test_the_same_sentence_in_another_entry_counts_as_found(dataset):
    twins = [replace(entry, id=f"{entry.id}x") for entry in dataset.entries]

    def search(query):
        return [id_ + "x" for id_ in found_in(dataset, ["text", "why"])(query)]

    doubled = replace(dataset, entries=(*dataset.entries, *twins))
    assert ask_known_items(doubled, search, embedder="none")["missed"] == 0


def test_empty_and_shared_vectors_are_counted(dataset):
    vectors = np.random.default_rng(1).random((200, 4)).astype(np.float16)
    vectors[3], vectors[5] = 0, vectors[4]
    own = replace(dataset, vectors={("e5", "text"): vectors})
    assert broken_vectors(own) == [{"model": "e5", "entries": 200, "empty": 1, "same": 1}]
    assert "1 of 200 are empty, and 1 are" in ask_known_items(own, "bm25", embedder="none")["sentence"]


def test_entries_without_a_sentence_are_left_out(dataset):
    short, enough = Entry("a", text="too short"), Entry("b", text="four words are enough")
    assert [item.entry for item in known_items(replace(dataset, entries=(short, enough)))] == ["b"]
    none = ask_known_items(replace(dataset, entries=(short,)), "bm25", embedder="none")
    assert none["sentence"].startswith("No entry has")


def test_the_command_asks():
    assert document("check", STARTER, "--known-items", "--current", "bm25")["known_items"]["questions"] > 100


@tabled
def test_notes_of_scripts_without_blanks_are_asked_for_and_found(dataset, language, notes):
    entries = tuple(Entry(f"n{at}", title="", text=text) for at, text in enumerate(notes))
    found = ask_known_items(replace(dataset, entries=entries), "bm25", embedder="none")
    assert (found["questions"], found["missed"]) == (3, 0), language
