"""A vault that tests of commands read."""

import pytest
from shared import done

from steelyard_eval.datasets.manifest import starter


@pytest.fixture(scope="session")
def vault(tmp_path_factory):
    path = tmp_path_factory.mktemp("vault") / "memory.db"
    done("index", starter(), path)
    return path
