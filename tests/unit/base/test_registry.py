"""A registry refuses a name that is taken, and finds what an installed package brings."""

from importlib.metadata import EntryPoint

import pytest

from steelyard.base.errors import ConfigError
from steelyard.finish import STAGES
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.fusion.ranks import Isr, RankSum, Rrf
from steelyard.registry import Registry
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS
from steelyard.signals import PRIORS


class Reciprocal(RankSum):
    keyword = "halves"
    shown_as = "halves"
    formula = "1 / 2^rank in {}"

    def points(self, rank, place):
        return 0.5**rank


@pytest.mark.parametrize(
    "registry", [FAMILIES, PRIORS, STAGES, RETRIEVER_KINDS, SCORER_KINDS], ids=lambda r: r.kind
)
def test_a_name_that_is_taken_is_refused(registry):
    name, one = next(iter(registry.items()))
    with pytest.raises(ConfigError, match=name):
        registry[name] = object()
    assert registry[name] is one

    registry[name] = one  # the same again is no second one


def test_both_homes_of_a_name_are_told():
    with pytest.raises(ConfigError) as raised:
        Registry(
            "fusion", "keyword", [Rrf, type("Mine", (Isr,), {"keyword": "rrf", "__module__": "mine.fusions"})]
        )
    assert "mine.fusions" in str(raised.value)
    assert "steelyard.fusion.ranks" in str(raised.value)


def test_a_package_brings_a_fusion_under_an_entry_point(monkeypatch):
    asked = []

    def points(group, name):
        asked.append((group, name))
        return [EntryPoint(name, f"{__name__}:Reciprocal", group)] if name == "halves" else []

    monkeypatch.setattr("importlib.metadata.entry_points", points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Reciprocal)
    try:
        assert str(parse_strategy("halves(fts, 2*vector)")) == "halves(fts, 2*vector)"
    finally:
        FAMILIES.pop("halves", None)
    assert asked == [("steelyard.fusions", "halves")]  # ours are not looked up
