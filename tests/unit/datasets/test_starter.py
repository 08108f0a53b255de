"""The data set that comes with Steelyard tells every signal apart, so that each of them can be tried on it."""

import numpy as np
import pytest

from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace


@pytest.fixture(scope="module")
def workspace():
    return Workspace.open(load(starter()))


@pytest.fixture(scope="module", params=SYSTEMS)
def recorded(request, workspace):
    config = SYSTEMS[request.param].config(10, workspace.model, {})
    return config.effective, record(workspace, workspace.dataset.split("all"), [config])


def test_no_signal_of_any_system_is_constant(recorded):
    strategy, table = recorded
    used = strategy.signals - {"unindexed"}  # the files of folders, of which this set has none
    derived = {name: PRIORS[name](table, {}).values for name in used & PRIORS.keys()}
    values = derived | {name: table.column(name) for name in used - PRIORS.keys()}
    assert values
    assert [name for name, own in values.items() if np.nanmin(own) == np.nanmax(own)] == []
