"""The check of a vault file by `steelyard doctor`: its schema, every page, and how it is searched."""

from __future__ import annotations

from steelyard.base.errors import SteelyardError
from steelyard.base.machine import PRECISION, VARIABLE, budget, precision
from steelyard.stores.opened import open_vault
from steelyard.stores.sqlite import Vault
from steelyard_eval.cli.diagnosis import Check, mebibytes


def check_vault(path: str) -> Check:
    """Check a vault: its schema on opening, then every page (SQLite's quick_check)."""
    try:
        with open_vault(path) as vault:
            faults = vault.faults()
            recall = _recall(vault)
            value = "; ".join([f"{vault.count()} entries", *_memory(vault, recall), *_words(vault)])
    except SteelyardError as error:
        return Check(f"vault {path}", "fault", str(error)[:300], "restore a copy, or index the data set again")
    if faults:
        return Check(f"vault {path}", "fault", faults[0], "restore a copy, or index the data set again")
    if recall is not None and recall < 1:
        return Check(f"vault {path}", "fault", value, f"unset {PRECISION}, and report this: it must not happen")
    return Check(f"vault {path}", "ok", value)


def _recall(vault: Vault) -> float | None:
    """What a scan in 8 bits a number finds of the nearest entries of a sample; None without such a scan."""
    spaces = [space for space, _ in vault.spaces()]
    return min(map(vault.sampled_recall, spaces), default=None) if precision() == "int8" else None


def _memory(vault: Vault, recall: float | None) -> list[str]:
    """How the vectors of the largest space are searched."""
    sizes, most = vault.vector_bytes(), budget()
    largest = max(sizes.values(), default=0)
    if not largest:
        return []
    if largest > most:
        less = max(vault.vector_bytes("int8").values())
        hint = f"; {mebibytes(less)} would do with {PRECISION}=int8" if less <= most and less < largest else ""
        return [f"vectors of {mebibytes(largest)} are left to sqlite-vec: {VARIABLE} is {mebibytes(most)}{hint}"]
    if recall is None:
        return [f"vectors of up to {mebibytes(largest)}, searched in memory"]
    return [f"vectors of up to {mebibytes(largest)} in 8 bits a number, searched in memory; recall {recall:.4f}"]


def _words(vault: Vault) -> list[str]:
    """What is kept of the words of entries."""
    indexes = vault.word_indexes()
    behind = max((changes for _, changes in indexes), default=0)
    return [f"word indexes: {len(indexes)}, changes since: {behind}"] if indexes else []
