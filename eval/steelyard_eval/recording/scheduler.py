"""A Dask cluster as an executor of recordings."""

from __future__ import annotations

from concurrent.futures import Executor
from importlib import import_module
from typing import cast

from steelyard.base.errors import MachineError, shown
from steelyard.base.extras import require

PATIENCE = 10.0
"""Seconds that a scheduler may take to answer."""


def scheduled(address: str) -> Executor:
    """The executor of the cluster whose scheduler is at this address, such as ``tcp://127.0.0.1:8786``.

    Its workers need this version of Steelyard, and the cache folder (STEELYARD_CACHE) at the same path. Raises
    MachineError without the extra, and when no scheduler answers.
    """
    require("dask", "--jobs tcp://HOST:PORT")
    distributed = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"no Dask scheduler answers at {shown(address)} ({shown(str(error), 80)}); start one: dask scheduler"
        ) from None
    return cast("Executor", client.get_executor(pure=False))
