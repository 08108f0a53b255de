"""Writes a gate's result, or its error, where people and tools look: Markdown, JUnit XML, JSON, GitHub Actions."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from steelyard.base.errors import SteelyardError
from steelyard.base.files import read_text, regular_target, write_text, write_texts
from steelyard_eval.common.console import wrapped
from steelyard_eval.common.process import day
from steelyard_eval.gate.gate import update
from steelyard_eval.gate.setup import Gate
from steelyard_eval.result import document
from steelyard_eval.result.structs import Result
from steelyard_eval.views import gate_formats

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
STOPPED = "it was stopped before it had an answer; run it again"


@dataclass(frozen=True)
class GateOutputs:
    """The files that are asked for; in GitHub Actions also annotations and the summary of the step."""

    markdown: str | None = None
    junit: str | None = None
    out: str | None = None
    github: bool = False

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Whatever ends a gate inside before `write`, no file says what an earlier one found; errors are written.

        The document, which has no form for this, is removed.
        """
        self._undecided(STOPPED)
        if self.out is not None:
            regular_target(Path(self.out)).unlink(missing_ok=True)
        try:
            yield
        except SteelyardError as error:
            self._undecided(str(error))
            self._tell([gate_formats.undecided_annotation(str(error))], gate_formats.undecided_page(str(error)))
            raise

    def write(self, result: Result, *, strict: bool = False) -> None:
        """Write what a gate found."""
        page, xml = gate_formats.pull_request(result), gate_formats.junit(result, strict, day(time.time))
        _write({self.markdown: page, self.junit: xml, self.out: document.render(result)})
        self._tell(gate_formats.annotate(result, strict), page)

    def _undecided(self, error: str) -> None:
        _write(
            {
                self.markdown: gate_formats.undecided_page(error),
                self.junit: gate_formats.undecided_junit(error, day(time.time)),
            }
        )

    def _tell(self, lines: Iterable[str], page: str) -> None:
        if not self.github:
            return
        for line in lines:
            click.echo(line, err=True)  # the runner reads both streams, and stdout may be one JSON document
        if summary := os.environ.get(SUMMARY_VARIABLE):
            before = read_text(summary) if Path(summary).exists() else ""
            write_text(summary, before + page)


def _write(faces: Mapping[str | None, str]) -> None:
    write_texts({Path(path): text for path, text in faces.items() if path is not None})


def updated(gate: Gate, named: list[str] | None, reason: str, accept_worse: bool) -> tuple[dict[str, object], str]:
    """Write the baseline anew, as a document and as text."""
    gating, copy = update(gate, named, reason=reason, accept_worse=accept_worse)
    document: dict[str, object] = {"files": [str(gate.path)], "gate": gating and gating.record}
    document |= {"replaced": str(copy)} if copy else {}
    lines = [wrapped(gating.sentence)] if gating else []
    lines += [f"written: {gate.path}", *([f"the baseline before is kept as {copy}"] if copy else [])]
    return document, "\n".join(lines)
