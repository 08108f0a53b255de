"""Which configurations share a recording, and what of a recording a replay may not change."""

from dataclasses import replace

import pytest

from steelyard.base.errors import ConfigError
from steelyard.live.sources import identity
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.recording.sharing import agree, share


def plain(**parameters):
    """The system plain with these parameters of bm25."""
    config = find_system("plain").config()
    bm25 = replace(config.retrievers["bm25"], parameters=parameters)
    return replace(config, retrievers={**config.retrievers, "bm25": bm25})


def test_the_baselines_share_one_recording_and_the_systems_have_their_own():
    names = ["fts", "bm25", "vector", "plain", "echovault", "echovault:shipped", "moltnet", "moltnet:shipped"]
    configs = [find_system(name).config() for name in names]

    assert share(configs) == [[0, 1, 2, 3], [4], [5], [6, 7]]


def test_other_parameters_need_another_recording_where_the_retriever_is_used():
    fts = find_system("fts").config()

    assert share([plain(), plain(k1=0.9), plain(k1=1.2), fts]) == [[0, 2, 3], [1]]


def test_a_replay_refuses_other_parameters_by_name():
    with pytest.raises(ConfigError, match=r"^retrievers.bm25.k1 is 0.9,"):
        agree(plain(k1=0.9), identity(plain()) | {"model": ""})


def test_a_depth_is_no_part_of_it():
    agree(find_system("fts").config(200), identity(find_system("fts").config(10)) | {"model": ""})


def test_texts_embedded_otherwise_make_another_recording(monkeypatch):
    fts = find_system("fts")
    other = replace(fts, profile="other", reading=replace(fts.reading, recipe="{text}"))
    monkeypatch.setitem(SYSTEMS, "fts:other", other)

    assert share([fts.config(), other.config()]) == [[0], [1]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k1": -1}, "k1 is -1; it must lie between 0 and 1000"),
        ({"b": 1.5}, "b is 1.5; it must lie between 0 and 1 "),
        ({"b": float("nan")}, "b is nan; it must"),
        ({"k": 1}, "unknown parameter 'k' of bm25; did you mean 'k1'?"),
    ],
)
def test_parameters_out_of_their_ranges(parameters, message):
    with pytest.raises(ConfigError) as caught:
        identity(plain(**parameters))
    assert message in str(caught.value)


def test_functions_without_a_name_are_refused():
    """Two of them would be equal in every recording."""
    with pytest.raises(ConfigError, match="has no name"):
        Reading(KeywordIndex("x", ("title",)), "{title}", match=lambda text: text)
