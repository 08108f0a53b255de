"""search-weights.json: written whole, read back equal, refused by name."""

import gzip
import json
import os
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from shared import tabled

import steelyard
from steelyard.base.errors import ConfigError, MachineError
from steelyard.base.files import canonical
from steelyard.config import SCHEMA_FILE, SearchConfig, schema
from steelyard.extensions.adaptive import AdaptiveRule, Feedback, adapt
from steelyard.finish import Cut
from steelyard.fusion import parse_strategy
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.systems import SYSTEMS, find_system
from steelyard.systems.soleri import DOCUMENTED, FACTORS, SHIPPED

STRATEGY = "tiered(fts, min_results=3, then=weighted_sum(0.42*fts, 0.58*vector, normalize=max))"
PROVENANCE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["provenance"][0][0]
CONFIG = SearchConfig(
    system="echovault",
    profile="documented",
    limit=10,
    strategy=parse_strategy(STRATEGY),
    retrievers={
        "fts": RetrieverConfig(depth=20, field_weights={"title": 1.0, "text": 0.5}),
        "vector": RetrieverConfig(depth=20, model="minilm", filters="after_cut"),
        "l2": RetrieverConfig(),
    },
    finish=(Cut(10),),
    by_intent={"fix_bug": parse_strategy("fts")},
    provenance=PROVENANCE,
)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A short path, because messages show only so much of one."""
    monkeypatch.chdir(tmp_path)
    return Path("search-weights.json")


def changed(*keys, value):
    """The record of CONFIG with one value replaced, found by its keys."""
    record = json.loads(canonical(CONFIG.to_json()))
    inner = record
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return record


def refused(path, text):
    """The message with which a file of this text is refused."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        SearchConfig.load(path)
    return str(raised.value)


class TestRoundTrip:
    def test_what_is_saved_loads_as_an_equal_configuration(self, path):
        CONFIG.save(path)
        assert SearchConfig.load(path) == CONFIG

    @pytest.mark.parametrize("name", SYSTEMS)
    def test_every_system_survives_its_file(self, path, name):
        config = find_system(name).config(7, model="minilm")
        config.save(path)
        assert SearchConfig.load(path) == config
        assert any(isinstance(stage, Cut) and stage.limit == 7 for stage in config.finish)

    def test_what_is_written_keeps_the_published_schema(self):
        Draft202012Validator.check_schema(schema())
        validator = Draft202012Validator(schema())
        assert list(validator.iter_errors(CONFIG.to_json())) == []
        assert list(validator.iter_errors(changed("limit", value=0))) != []

    def test_the_published_file_is_the_schema_with_what_retrievers_declare(self):
        path = Path(steelyard.__file__).parent / SCHEMA_FILE
        published = json.dumps(schema(), indent=2) + "\n"
        assert path.read_text() == published, f"write json.dumps(schema(), indent=2) to {path}"

    def test_whole_numbers_may_be_written_as_floats(self, path):
        """JSON Schema calls 20.0 an integer, and so do writers in JavaScript."""
        path.write_text(json.dumps(changed("retrievers", "fts", "depth", value=20.0) | {"limit": 10.0}))
        config = SearchConfig.load(path)
        assert config == CONFIG
        assert isinstance(config.retrievers["fts"].depth, int)
        assert isinstance(config.limit, int)

    def test_intents_stand_around_the_strategy(self):
        assert str(CONFIG.effective) == f"by_intent(default={STRATEGY}, fix_bug=fts)"
        assert CONFIG.with_strategy(parse_strategy("fts")).strategy == parse_strategy("fts")


class TestBadFiles:
    @pytest.mark.parametrize(
        "odd", ["\ud800", b"x", {1: 2}, {"x"}, reduce(lambda inner, _: [inner], range(300), [])]
    )
    def test_what_is_no_json_value(self, odd):
        with pytest.raises(ConfigError, match=r"JSON \("):
            SearchConfig.from_json(changed("provenance", value={"odd": odd}))

    def test_a_compressed_file_is_read_as_it_is_written(self, tmp_path):
        CONFIG.save(tmp_path / "w.json.gz")
        assert gzip.decompress((tmp_path / "w.json.gz").read_bytes()).startswith(b"{")
        assert SearchConfig.load(tmp_path / "w.json.gz") == CONFIG
        (tmp_path / "w.json.gz").write_bytes(b"{}")
        with pytest.raises(ConfigError, match=r"weights file .*is"):
            SearchConfig.load(tmp_path / "w.json.gz")

    @tabled
    def test_text_that_is_no_configuration(self, path, text, fragment):
        message = refused(path, text.replace("LONG", "9" * 5000).replace("DEEP", "[" * 100_000))
        assert fragment in message
        assert message.startswith("weights file 'search-weights.json'")

    @tabled
    def test_a_bad_value_is_named_with_its_place(self, path, keys, value, fragment):
        assert fragment in refused(path, json.dumps(changed(*keys, value=value)))

    def test_all_faults_are_named_at_once(self, path):
        record = changed("retrievers", "fts", "depth", value=-1) | {"limit": "x", "extra": 1}
        message = refused(path, json.dumps(record))
        assert all(part in message for part in ("retrievers.fts.depth", "'limit'", "unknown key 'extra'"))
        record = changed("by_intent", "fix_bug", value="ftz") | {"strategy": "vectr", "finish": ["cutt(1)"]}
        message = refused(path, json.dumps(record))
        assert all(part in message for part in ("'ftz'", "'vectr'", "'cutt(1)'", "search-weights.json"))


class TestWriting:
    def test_nothing_is_half_written_when_the_rename_fails(self, path, monkeypatch):
        CONFIG.save(path)
        before = path.read_bytes()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(MachineError, match=r"write .*search-weights.json.*No space"):
            CONFIG.with_strategy(parse_strategy("fts")).save(path)
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_a_number_that_is_not_finite_is_never_written(self, path):
        bad = SearchConfig("s", "p", 1, parse_strategy("fts"), {}, (), provenance={"optimism": float("nan")})
        with pytest.raises(ValueError, match="not JSON compliant"):
            bad.save(path)
        assert not path.exists()


def test_a_weights_file_that_is_not_there_is_told_with_its_neighbour(tmp_path):
    find_system("bm25").config(10).save(tmp_path / "search-weights.json")
    with pytest.raises(ConfigError, match=r"you mean 'search-weights.json'\?$"):
        SearchConfig.load(tmp_path / "search-weight.json")
    with pytest.raises(ConfigError, match=r"`steelyard recommend` writes"):
        SearchConfig.load(tmp_path / "other.toml")


PRIORS = ("severity", "recency", "tags", "domain")


def weights(strategy):
    return {term.expr.name: term.weight for term in strategy.terms}


def adapted(system, feedback):
    """Weights with and without vectors."""
    config = adapt(system.config(), feedback, AdaptiveRule(**system.adaptive))
    return weights(config.strategy), weights(config.keywords_only)


class TestFeedback:
    @tabled
    def test_the_semantic_weight_follows_the_rate_of_feedback(self, weighed, feedback, tfidf, others):
        """Without vectors both move every other weight; with them the documented one does, and the shipped one
        holds the weight of vectors and never falls below a quarter.
        """
        counts = Feedback(*feedback[:2], modified=sum(feedback[2:]))
        expected = {"tfidf": tfidf} | dict.fromkeys(PRIORS, others)
        for name, system in (("documented", DOCUMENTED), ("shipped", SHIPPED)):
            hybrid, alone = adapted(system, counts)
            if weighed == "keywords":
                assert alone == pytest.approx(expected, abs=1e-12)
            elif weighed == name:
                cosine = others if name == "documented" else 0.15
                assert hybrid == pytest.approx(expected | {"cosine": cosine}, abs=1e-12)

    @pytest.mark.parametrize("system", [DOCUMENTED, SHIPPED])
    @pytest.mark.parametrize("accepted", (0, 25, 35, 50))
    def test_the_weights_sum_to_1_at_every_rate(self, system, accepted):
        for found in adapted(system, Feedback(accepted, 50 - accepted)):
            assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)

    def test_failed_entries_are_not_counted(self):
        config = DOCUMENTED.config()
        assert adapt(config, Feedback(29, 0, failed=10), AdaptiveRule()) == config
        # Nor do they lower the rate: 30 of 30, not 30 of 60.
        moved = adapt(config, Feedback(30, 0, failed=30), AdaptiveRule())
        assert weights(moved.keywords_only)["tfidf"] == pytest.approx(0.55)

    def test_a_number_below_0_is_refused(self):
        with pytest.raises(ConfigError, match="dismissed=-1"):
            Feedback(31, -1)

    def test_strategies_of_intents_follow_too(self):
        strategy = parse_strategy("weighted_sum(0.5*tfidf, 0.5*fts)")
        config = replace(DOCUMENTED.config(), by_intent={"fix_bug": strategy})
        moved = adapt(config, Feedback(40, 0), AdaptiveRule())
        assert weights(moved.by_intent["fix_bug"]) == pytest.approx({"tfidf": 0.65, "fts": 0.35})

    def test_a_weight_stops_where_the_others_are_used_up(self):
        config = replace(DOCUMENTED.config(), strategy=parse_strategy("weighted_sum(0.9*tfidf, 0.1*fts)"))
        moved = adapt(config, Feedback(40, 0), AdaptiveRule())
        assert weights(moved.strategy) == pytest.approx({"tfidf": 1.0, "fts": 0.0})

    @tabled
    def test_a_strategy_the_rule_does_not_fit_is_refused_however_little_feedback_there_is(self, strategy):
        config = replace(DOCUMENTED.config(), strategy=parse_strategy(strategy))
        with pytest.raises(ConfigError, match=r"write a weighted_sum"):
            adapt(config, Feedback(1, 0), AdaptiveRule(held=("cosine",)))

    def test_the_weights_under_the_names_of_the_document_are_those_of_its_table(self):
        """seeds/soleri.txt, six scoring signals: weight (hybrid), weight (FTS only)."""
        others = ("severity", "temporalDecay", "tagOverlap", "domainMatch")
        table = {"semantic": (0.25, 0.40), "vector": (0.15, 0.00)} | dict.fromkeys(others, (0.15, 0.15))
        hybrid, keywords = weights(DOCUMENTED.searching.strategy), weights(DOCUMENTED.searching.keywords_only)
        assert {
            name: (hybrid[own], keywords.get(own, 0.0)) for name, own in FACTORS.items() if own in hybrid
        } == table
        assert len(hybrid) == 6


def test_a_field_of_echovault_counts_as_much_as_any_other():
    """Its document gives bm25() no weights, and those of FTS5 are 1 by default."""
    assert {*find_system("echovault").config(10).retrievers["fts"].field_weights.values()} == {1.0}
