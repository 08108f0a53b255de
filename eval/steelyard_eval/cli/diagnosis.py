"""What `steelyard doctor` found: a row a check, with a remedy for every fault."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from steelyard_eval.common.console import table


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `state` is ok, missing (something optional) or fault (something that Steelyard needs)."""

    name: str
    state: str
    value: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks; the machine is fit when none is a fault."""

    rows: tuple[Check, ...]

    @property
    def fit(self) -> bool:
        """Whether everything required is there."""
        return not any(row.state == "fault" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The document of `steelyard doctor --json`."""
        return {"schema_version": 1, "fit": self.fit, "checks": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        rows = table([asdict(row) for row in self.rows], {"name": "", "state": "state", "value": ""})
        faults = [row for row in self.rows if row.state == "fault"]
        others = [row for row in self.rows if row.state != "fault" and row.remedy]
        remedies = "\n".join(f"{row.name}: {row.remedy}" for row in (*others, *faults))
        verdict = "everything required is there" if self.fit else f"{len(faults)} to fix"
        return "\n\n".join(filter(None, [rows, remedies, verdict]))


def mebibytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 2**20:.0f} MiB"
