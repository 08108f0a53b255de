"""Hostile input, bounded by counts: the fuzz targets, properties, and what `make fuzz` has found."""

import copy
import gzip
import json
import re
from dataclasses import replace

import fuzz
import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.unit.shared import vault_with

from steelyard import Entry, Query, Searcher, find_system, fuse, parse_strategy
from steelyard.base.errors import ConfigError, VaultError
from steelyard.fusion import Layered, compile_plan
from steelyard.memory.entry import read_entry
from steelyard.memory.query import MAX_WORDS, clean_query
from steelyard.retrievers.kinds import words_or
from steelyard.systems.echovault import prefix_or
from steelyard_eval.datasets import check
from steelyard_eval.datasets.corpus_and_queries import read_query
from steelyard_eval.recording.replay import replay

anything = st.text(st.characters(), max_size=60)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), anything, st.sampled_from(fuzz.STRATEGIES)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(anything, inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.parametrize("more", [8, pytest.param(150, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_no_input_breaks_a_promise(name, more):
    """The seeds, of which each is accepted, for else all mutants would be refused at the door; so many mutants."""
    seeds = fuzz.TARGETS[name].seeds()
    assert not [own for own in {fuzz.check(name, data) for data in seeds} if re.match(r"\w+Error", own)]
    assert fuzz.run(name, 0, len(seeds) + (more if name != "vault" else more // 5)).faults == {}


def refusing(text):
    def refuse(data):
        raise ConfigError(text)

    return refuse


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (lambda data: str({}[data]), r"KeyError at test_fuzz.py"),
        (refusing("value \x1b[31m is red"), r"message holds _"),
        (lambda data: str(np.float64(1e308) * 10), r"RuntimeWarning"),
        (refusing("expression 'x' at position 7 is not allowed"), ""),
    ],
    ids=["an exception", "a message that moves a terminal", "a warning", "a refusal is none"],
)
def test_the_fuzzer_finds_what_is_planted(monkeypatch, run, fault):
    monkeypatch.setitem(fuzz.TARGETS, "finish", fuzz.Target(run, lambda: [b"cut(1)"], fuzz.mutate_text))
    tally = fuzz.run("finish", 0, 50)
    assert sum(times for _, times in tally.faults.values()) == (50 if fault else 0)
    assert all(re.match(fault, place) for place in tally.faults)
    assert fault or list(tally.outcomes) == ["ConfigError: expression _ at position _ is not allowed"]


@given(values)
def test_any_value_is_an_entry_or_a_fault(value):
    raw = value if isinstance(value, dict) else {"id": value, "text": value, "tags": value, "created_at": value}
    for read in (read_entry, read_query):
        found, faults = read(raw)
        assert (found is None) == bool(faults)


class TestBounds:
    """Work is bounded by counts: what may grow has a limit, and a little beyond it is refused."""

    @pytest.mark.parametrize("name", ["layered", "weighted_sum", "rrf"])
    def test_work_grows_slower_than_the_square_of_the_nesting(self, name, monkeypatch):
        compiled = []
        for cls in {type(parse_strategy(text)) for text in ("fts", "rrf(fts)", "weighted_sum(1*fts)")} | {Layered}:
            original = cls.compile
            monkeypatch.setattr(
                cls, "compile", lambda self, *args, original=original: compiled.append(1) or original(self, *args)
            )
        inner = "layered(1*l0)" if name == "layered" else "fts"
        outer = "weighted_sum" if name == "layered" else name
        fuse(fuzz.world().table, parse_strategy(f"{outer}(1*" * 30 + inner + ")" * 30))

        assert len(compiled) <= 31**2

    @given(st.one_of(anything, st.text("a.\" '", min_size=1, max_size=60)))
    def test_no_builder_makes_more_terms_than_were_counted(self, text):
        try:
            cleaned = clean_query(text)
        except ConfigError:
            return
        for build in (prefix_or, words_or):
            assert build(cleaned).count(" OR ") <= MAX_WORDS

    def test_a_query_of_a_data_set_that_is_too_long_is_a_fault(self):
        folder = fuzz.world().dataset
        rules = {"token " * 1001: "has 1001 words, and may have 1000", "\x01\x1f": "must not be empty"}
        for text, rule in rules.items():
            line = json.dumps({"id": "q0", "text": text}).encode()
            with folder.changed(bytes([folder.names.index("queries.jsonl")]) + line) as path:
                assert any(fault.rule == rule for fault in check(path).faults)

    @pytest.mark.parametrize("levels", [65, 330, 490, 900, 960, 980, 990, 3000, 100_000])
    def test_deep_json_is_refused_by_every_loader(self, levels):
        """Close to Python's own limit it can be read, and neither printed nor copied.

        A feedback log is decoded line by line into known fields; what it has beside them is skipped at any depth.
        """
        deep = b"[" * levels + b"]" * levels
        for name, seed in (("weights", {"provenance": 0}), ("results", {**fuzz.compared(), "answer": 0})):
            assert "Error" in fuzz.check(name, json.dumps(seed).encode().replace(b": 0}", b": " + deep + b"}"))
        for name in ("dataset", "recording"):
            folder = getattr(fuzz.world(), name)
            for at, file in enumerate(folder.names):
                if file.endswith((".json", ".jsonl")):
                    line = folder.files[file].split(b"\n")[0].rstrip(b"}") + b', "extra": ' + deep + b"}"
                    refused = "Error" in fuzz.check(name, bytes([at]) + line)
                    assert refused == (file != "feedback.jsonl")


class TestFound:
    def test_an_explanation_is_json_where_a_list_lacks_the_entry(self):
        """The rank in it is NaN, which JSON has not."""
        table, strategy = fuzz.world().table, parse_strategy("rrf(fts, bm25, vector)")
        lacking = np.flatnonzero(np.isnan(table.columns["fts"]) & ~np.isnan(table.columns["vector"]))
        plan = compile_plan(table, strategy)
        assert len(lacking)
        for row in lacking:
            json.dumps(plan.explain(row).to_json(), allow_nan=False)

    def test_null_is_no_value_of_a_required_field(self):
        for read, record in ((read_entry, {"id": None}), (read_query, {"id": "q", "text": None})):
            found, faults = read(record)
            assert (found, faults[0].rule) == (None, "is missing")

    def test_a_spread_of_huge_values_does_not_overflow(self):
        inner = "weighted_sum(1000000*" * 30 + "fts" + ")" * 30
        strategy = parse_strategy(f"weighted_sum(1*{inner}, normalize=zscore)")
        plain = parse_strategy("weighted_sum(1*fts, normalize=zscore)")
        table = fuzz.world().table
        with np.errstate(all="raise"):
            np.testing.assert_allclose(fuse(table, strategy), fuse(table, plain), atol=1e-9)

    def test_an_entry_that_is_gone_before_it_is_shown_says_so(self, monkeypatch):
        with vault_with(Entry("a", text="token")) as vault:
            searcher = Searcher(vault, find_system("fts").config())
            whole = vault.get
            monkeypatch.setattr(vault, "get", lambda ids, *fields: whole(ids, *fields) if fields else [])
            with pytest.raises(VaultError, match="'a' was deleted"):
                searcher.search("token")

    def test_a_fingerprint_that_lacks_a_parameter_differs_in_it(self):
        table, config = fuzz.world().table, fuzz.world().configs[0]
        left = {name: value for name, value in table.fingerprint.items() if name != "match"}
        with pytest.raises(ConfigError, match=r"recording has None"):
            replay(replace(table, fingerprint=left), config)


def test_a_small_gzip_file_may_be_a_large_corpus():
    """What it holds is read whole: a thousand times its size at most, which is what deflate can do."""
    folder = fuzz.world().dataset
    raw = gzip.compress(b'{"id": "e0", "text": "' + b"a" * 3_000_000 + b'"}\n', mtime=0)
    assert len(raw) < 10_000
    with folder.changed(bytes([folder.names.index("corpus.jsonl.gz")]) + raw) as path:
        assert not [fault for fault in check(path).faults if fault.file == "corpus.jsonl.gz"]


def test_a_query_is_no_sql(monkeypatch):
    """Every value is bound: the text of the statements is the same whatever is asked."""
    statements = set()
    with vault_with(Entry("a", text="token")) as vault:
        searcher = Searcher(vault, find_system("echovault").config())
        vault._db.exec_trace = lambda cursor, sql, bindings: statements.add(sql) or True
        for _ in range(12):  # the words of a searcher that has searched so often are read in another way
            for text in ("token", "tok", "token other", "token-other"):
                searcher.search(Query(text))
        before = set(statements)
        for text in fuzz.HOSTILE_TEXT:
            try:
                searcher.search(text)
            except ConfigError:
                continue
        assert statements == before


@pytest.mark.parametrize("part", ["", "rows", "queries", "notices"])
def test_results_of_others_may_lack_any_key(part):
    """Each is a page or a message; numbers 247, 277 and 292 of a campaign lacked the baseline and an interval."""
    whole = copy.deepcopy(fuzz.compared())
    rows = whole[part] if part else [whole]
    for key in list(rows[0]):
        for lacking in (lambda row, key: row.pop(key, None), lambda row, key: row.update({key: None})):
            changed = copy.deepcopy(whole)
            for row in changed[part] if part else [changed]:
                lacking(row, key)
            fuzz.check("results", json.dumps(changed).encode())
