"""A registry refuses a name that is taken, and finds what an installed package brings."""

from types import SimpleNamespace

import pytest

from steelyard import node as registry
from steelyard.base.errors import ConfigError
from steelyard.finish import STAGES
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.fusion.ranks import Isr, RankSum, Rrf
from steelyard.node import Registry
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS


class Halves(RankSum):
    keyword = "halves"
    shown_as = "halves"
    formula = "1 / 2^rank in {}"

    def points(self, rank, place):
        return 0.5**rank


@pytest.mark.parametrize("held", [FAMILIES, PRIORS, STAGES, RETRIEVER_KINDS, SYSTEMS], ids=lambda one: one.kind)
def test_a_name_that_is_taken_is_refused(held):
    name, one = next(iter(held.items()))
    with pytest.raises(ConfigError, match=name):
        held[name] = object()
    assert held[name] is one

    held[name] = one  # the same again is no second one


def test_both_homes_of_a_name_are_told():
    mine = type("Mine", (Isr,), {"keyword": "rrf", "__module__": "mine.fusions"})
    with pytest.raises(ConfigError) as raised:
        Registry("fusion", "keyword", [Rrf, mine])
    assert "mine.fusions" in str(raised.value)
    assert "steelyard.fusion.ranks" in str(raised.value)


def test_a_package_brings_a_fusion_under_an_entry_point(monkeypatch):
    brought = {"steelyard.fusions": {"halves": SimpleNamespace(load=lambda: Halves)}}
    monkeypatch.setattr(registry, "_brought", lambda group: brought.get(group, {}))
    try:
        assert str(parse_strategy("halves(fts, 2*vector)")) == "halves(fts, 2*vector)"
    finally:
        FAMILIES.pop("halves", None)


def test_thousands_of_names_that_nobody_has_are_looked_up_at_once(monkeypatch):
    asked = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: asked.append(group) or [])
    registry._brought.cache_clear()
    with pytest.raises(ConfigError):
        parse_strategy(f"rrf({', '.join(f'n{i}' for i in range(1000))})")
    registry._brought.cache_clear()
    assert sorted(asked) == ["steelyard.fusions", "steelyard.signals"]
