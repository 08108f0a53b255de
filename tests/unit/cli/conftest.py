"""A vault that tests of commands read."""

import pytest
from shared import STARTER, done


@pytest.fixture(scope="session")
def vault(tmp_path_factory):
    path = tmp_path_factory.mktemp("vault") / "memory.db"
    done("index", STARTER, path)
    return path
