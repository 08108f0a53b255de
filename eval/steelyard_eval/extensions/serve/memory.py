"""The memory that is served: a vault and weights that are opened again when their files change.

What cannot be opened is refused with a warning, and what was served before stays. Searches run in a few threads of
the state that they began with; it is closed when the last of them has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import SteelyardError
from steelyard_eval.vaults.read import OpenVault, RankedBy

WORKERS = 4
"""Threads that search: each has its connection to the vault before anybody asks."""
PATIENCE = 10.0
"""Seconds in which they have it."""
_log = logging.getLogger(__name__)
State = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Served:
    """What the command line names: the vault, its scopes, how it is searched, and what is interleaved.

    `share` is that of the searches, `against` the other ranking, drawn weights without one; `hnsw` is as in
    `open_vault`.
    """

    vault: str
    scopes: Sequence[str] = ()
    by: str = "echovault"
    share: float = 0.0
    against: str | None = None
    hnsw: int | None = None

    def opened(self) -> OpenVault:
        """Open all of it; SteelyardError where a file is not what it should be."""
        other = None if self.against is None else RankedBy.of(self.against)
        explored = (self.share, other) if self.share else None
        return OpenVault(self.vault, self.scopes, RankedBy.of(self.by), explored, self.hnsw)

    @property
    def state(self) -> State:
        """What changes when somebody writes one of the files."""
        files = (self.vault, f"{self.vault}-wal", self.by, self.against)  # a system is no file, and never changes
        return tuple(_state(name) for name in files if name is not None)


def _state(name: str) -> tuple[int, int, int] | None:
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Generation:
    """One state of the memory, with the threads that search it."""

    def __init__(self, served: Served) -> None:
        self.state = served.state
        self.vault = served.opened()
        self.pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="steelyard-serve")
        together = threading.Barrier(WORKERS)
        try:
            for arrival in [self.pool.submit(self._arrive, together) for _ in range(WORKERS)]:
                arrival.result(PATIENCE)
        except BaseException:
            self.close()
            raise

    def _arrive(self, together: threading.Barrier) -> None:
        """Open this thread's connection: later the file at the path may be another one, or none."""
        with self.vault.snapshot():
            together.wait(PATIENCE)

    def close(self) -> None:
        """Close the vault when the last search has ended."""
        self.pool.shutdown()
        self.vault.close()


class Memory:
    """What is served now. One thread calls `renewed` at a time, and then `exchange`."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.now = Generation(served)
        self._looked = self.now.state

    def changed(self) -> bool:
        """Whether a file is another one than when it was last looked at, or a database has changed."""
        return self._served.state != self._looked or self.now.vault.outdated()

    def renewed(self) -> Generation | None:
        """The files as they are now, opened; None, with a warning, where they cannot be."""
        self._looked = self._served.state
        try:
            return Generation(self._served)
        except SteelyardError as error:
            _log.warning("what was served before stays: %s", error)
            return None

    def exchange(self, new: Generation) -> None:
        """Serve a new state from now on."""
        old, self.now = self.now, new
        threading.Thread(target=old.close, name="steelyard-closing", daemon=True).start()

    def close(self) -> None:
        """Close what is served."""
        self.now.close()
