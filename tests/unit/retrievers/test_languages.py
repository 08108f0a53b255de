"""Words of every language and of code, over tests/data/languages: what is found, and what says that nothing is."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from shared import tabled, vault_with

import steelyard_eval as sy
from steelyard import Entry, Searcher, Vault, find_system
from steelyard.memory.words import language_of, languages_of
from steelyard.stores.analysis import Analysis
from steelyard.systems import keyword_indexes
from steelyard_eval.candidates.settings import idle_options
from steelyard_eval.compare.result import scripts
from steelyard_eval.explain.known_items import dead_retrievers
from steelyard_eval.export.strategy_changes import analysis_notes

FOLDER = Path(__file__).parents[2] / "data" / "languages"
ROWS = {p.stem: [*map(json.loads, p.read_text("utf-8").splitlines())] for p in sorted(FOLDER.glob("*.jsonl"))}
LANGUAGES = sorted(ROWS.keys() - {"mixed"})
RECOMMENDED = {"code": "bm25[bm25.identifiers=both]", "he": "bm25[bm25.ngrams=3]"}
"""What recommend chooses for bm25 where that is not its default."""


def notes(*names):
    """The entries of languages."""
    return [Entry(r["id"], title=r["title"], text=r["text"]) for name in names for r in ROWS[name] if "title" in r]


def asked(name):
    """The queries of a language, with the ids of what is relevant."""
    return [(row["query"], set(row["relevant"])) for row in ROWS[name] if "query" in row]


def searching(entries, system="bm25"):
    """What gives the ids that a system finds, best first."""
    vault, found = vault_with(*entries), find_system(system)
    for index in keyword_indexes([found]):
        vault.ensure_index(index)
    searcher = Searcher(vault, found.config(10), None)
    return lambda text: [hit.entry.id for hit in searcher.search(text).hits]


def share_found(search, queries):
    """The share of the queries that have a relevant note among the first three."""
    return sum(bool(set(search(text)[:3]) & relevant) for text, relevant in queries) / len(queries)


@pytest.fixture(scope="module")
def everything():
    return notes(*LANGUAGES)


@pytest.mark.parametrize("name", LANGUAGES)
def test_bm25_as_recommended_finds_notes_of_each_language_alone_and_among_all(name, everything):
    system = RECOMMENDED.get(name, "bm25")
    alone = share_found(searching(notes(name), system), asked(name))
    assert alone >= 0.8
    assert share_found(searching(everything, system), asked(name)) >= alone - 0.05


@pytest.mark.parametrize("name", ["zh", "ja", "th", "ar", "ru"])
def test_full_text_search_of_our_own_reads_scripts_that_sqlite_cannot(name):
    """FTS5's unicode61 takes a sentence without blanks for one word, and finds none of these queries' notes."""
    assert share_found(searching(notes(name), "fts"), asked(name)) == 1


def test_notes_in_other_languages_are_found_by_what_they_share(everything):
    assert share_found(searching(everything), asked("mixed")) >= 0.9


@pytest.mark.parametrize("name", ["ja", "ko", "hi", "ar", "he", "ru", "de", "fr", "tr"])
def test_composition_and_case_change_no_list(name):
    search, composed = searching(notes(name)), [text for text, _ in asked(name)]
    for text in composed:
        expected = search(text)
        assert search(unicodedata.normalize("NFD", text)) == expected
        if name in ("ru", "de", "fr"):  # in Turkish the small letter of I is another one than in English
            assert search(text.upper().replace("SS", "ß") if name == "de" else text.upper()) == expected
    decomposed = [Entry(e.id, title=unicodedata.normalize("NFD", e.title), text=e.text) for e in notes(name)]
    assert [*map(searching(decomposed), composed)] == [*map(search, composed)]


@tabled
def test_stop_words_tell_the_language(text, language):
    assert language_of(text) == language
    assert languages_of([text] * 3) == (language or "english",)


def test_words_are_counted_anew_when_other_languages_are_declared():
    vault = vault_with(Entry("a", text="Die Häuser und die Wälder"), Entry("b", text="Berge"))
    searcher, found = Searcher(vault, find_system("bm25").config(10), None), []
    for languages in (["english"], ["english", "german"], ["german"]):
        vault.set_languages(languages)
        found.append([hit.entry.id for hit in searcher.search("Haus").hits])
    assert found == [[], ["a"], ["a"]]


@tabled
def test_options_say_how_words_are_split(options, text, words):
    assert Analysis(**options).entry(text) == words


def test_a_query_of_stop_words_and_single_letters_is_searched_by_them():
    texts = {"r": "We plot in R", "b": "To be or not to be", "c": "x"}
    search = searching([Entry(id_, text=text) for id_, text in texts.items()])
    assert (search("R"), search("to be or not to be")) == (["r"], ["b"])


def test_options_are_refused_where_a_system_prescribes_its_words():
    with pytest.raises(sy.ConfigError, match="identifiers"):
        searching(notes("code"), "spec_kit[bm25.identifiers=both]")("keys")
    for wrong in ("bm25[bm25.identifiers=some]", "bm25[bm25.ngrams=9]", "bm25[bm25.ngrams=2.5]"):
        with pytest.raises(sy.ConfigError):
            find_system(wrong)


def test_options_are_tried_where_texts_have_use_for_them():
    plain = [f"The token number {at} is rotated by the worker of the team" for at in range(40)]
    assert idle_options(plain) == {"identifiers", "ngrams"}
    assert idle_options([*plain, *(note.text for note in notes("code"))]) == {"ngrams"}
    assert idle_options([note.text for note in notes("de")]) <= {"identifiers"}


def labelled(name, shift=0):
    """A language as a data set; shifted, each query has the labels of another one."""
    asks = [row for row in ROWS[name] if "query" in row]
    labels = zip(asks, asks[shift:] + asks[:shift], strict=True)
    corpus, queries = [row for row in ROWS[name] if "title" in row], {row["id"]: row["query"] for row in asks}
    return sy.load({"corpus": corpus, "queries": queries, "qrels": {q["id"]: of["relevant"] for q, of in labels}})


def test_a_retriever_that_finds_nothing_or_only_by_accident_is_named_first():
    bench = labelled("th")
    first = bench.compare(["bm25", "echovault"]).result.notices[0]
    assert (first.key, first.facts["signal"], first.facts["labels"]) == ("silent", "fts", ["echovault"])
    assert bench.recommend("echovault").result.notices[0].key == "silent"
    today = replace(bench.dataset, system="echovault")
    assert [notice.facts["signal"] for notice in dead_retrievers(today)] == ["fts"]
    assert labelled("de", 1).compare(["bm25", "fts"]).result.notices[0].key == "accidental"


def test_a_data_set_says_its_language_and_its_vault_keeps_it(tmp_path):
    rows = [{"id": "a", "text": "Häuser"}, {"id": "b", "text": "Berge"}]
    given = {"name": "x", "corpus": rows, "queries": [{"id": "q", "text": "Haus"}], "qrels": {"q": ["a"]}}
    bench = sy.load({**given, "language": "german"})
    assert bench.search("Haus", "bm25").hits[0].entry.id == "a"
    with Vault(tmp_path / "v.db", create=True) as vault:
        vault.set_languages(bench.dataset.language)
    with Vault(tmp_path / "v.db") as vault:
        assert vault.languages() == ("german",)
    with pytest.raises(sy.DataError, match="language"):
        sy.load({**given, "language": "klingon"})


def test_queries_without_a_category_are_told_apart_by_script_and_that_of_their_entries():
    corpus = [{"id": "a", "text": "密钥轮换策略"}, {"id": "b", "text": "rotate the keys"}]
    queries = [{"id": "1", "text": "密钥"}, {"id": "2", "text": "keys"}, {"id": "3", "text": "keys of a"}]
    qrels = {"1": ["a"], "2": ["b"], "3": ["a"]}
    bench = sy.load({"name": "x", "corpus": corpus, "queries": queries, "qrels": qrels})
    assert scripts(bench.dataset, bench.dataset.queries) == ["cjk", "latin", "latin, entry cjk"]


def test_an_export_says_what_the_other_index_has_to_do_for_options_of_bm25():
    config = find_system("bm25[bm25.identifiers=both, bm25.k1=2]").config(10)
    told = [note.partition(":")[0] for note in analysis_notes(config, "bm25")]
    assert told == ["bm25.identifiers=both", "bm25.k1=2"]
