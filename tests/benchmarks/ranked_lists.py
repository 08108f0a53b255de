"""Ranked lists of contenders over every query of a data set, those without an answer included."""

import os
from pathlib import Path

from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.live.identity import share
from steelyard.systems import SYSTEMS, find_system, plain_name
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace


def configured(text, limit, model=""):
    """The configuration of a system, or of a strategy over the lists of `plain`."""
    name = plain_name(text)[0]
    if name in SYSTEMS or f"{name}:documented" in SYSTEMS:
        return find_system(text).config(limit, model, {})
    config = find_system("plain").config(limit, model, {})
    return config.with_strategy(parse_strategy(text))


def ranked_lists(dataset, contenders, limit, embedder="auto", queries=None):
    """By label the lists of the queries (all by default); contenders are texts or configurations by label."""
    workspace = Workspace.open(dataset, embedder)
    asked = dataset.queries if queries is None else queries
    configs = {
        label: one if isinstance(one, SearchConfig) else configured(one, limit, workspace.model)
        for label, one in contenders.items()
    }
    found, labels = {}, list(configs)
    for group in share(configs.values()):
        own = {labels[at]: configs[labels[at]] for at in group}
        table = record(workspace, asked, own.values())
        found |= {label: replay(table, config) for label, config in own.items()}
    return {label: found[label] for label in labels}


def data(name):
    """The folder of a collection."""
    return Path(os.environ.get("STEELYARD_DATA", "../shared/data")) / name
