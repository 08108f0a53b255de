"""What a recording costs is told before the work, from counts alone."""

import logging
import os

import pytest

import steelyard_eval as sy
from steelyard.live.search import Searcher
from steelyard.systems import find_system
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording import record as price
from steelyard_eval.recording.record import record


class BegunError(Exception):
    """The work began."""


def begin(monkeypatch, caplog, queries):
    """The notes that were given when the first search was about to begin."""

    def stopped(*_args):
        raise BegunError

    monkeypatch.setattr(Searcher, "record", stopped)
    space = sy.load(starter()).workspace
    config = find_system("plain").config(10, space.model, os.environ)
    with caplog.at_level(logging.INFO, "steelyard"), pytest.raises(BegunError):
        record(space, list(space.dataset.queries) * queries, [config])
    return [one.getMessage() for one in caplog.records if "about" in one.getMessage()]


def test_a_large_recording_is_told_before_it_begins_and_a_small_one_is_not(monkeypatch, caplog):
    # 159 queries a thousand times; 131 entries bound every list, whatever its depth.
    [told] = begin(monkeypatch, caplog, 1_000)
    assert told.startswith("recording fts, vector of 159,000 queries over 131 entries: about ")
    assert "GB; --split takes" in told
    caplog.clear()
    assert begin(monkeypatch, caplog, 1) == []


def test_lists_are_never_longer_than_the_corpus():
    assert price.price(10, 2, 100, 50)[1] == price.price(10, 2, 10_000, 50)[1] == 10 * 50 * (24 + 2 * 16)
