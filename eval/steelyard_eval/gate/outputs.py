"""Writes a gate's result, or its error, where people and tools look: Markdown, JUnit XML, JSON, GitHub Actions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from steelyard.base.errors import SteelyardError
from steelyard.base.files import canonical, regular_target, write_text, write_texts
from steelyard.base.inputs import read_text
from steelyard_eval.common.documents.gate import GateDocument
from steelyard_eval.decide.provenance import day
from steelyard_eval.gate.github import undecided_command, workflow_commands
from steelyard_eval.gate.junit import junit_xml, undecided_xml
from steelyard_eval.gate.markdown import markdown_page, undecided_page

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the file of the step's summary."""


STOPPED = "it was stopped before it had an answer; run it again"


@dataclass(frozen=True)
class Faces:
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
            self._tell([undecided_command(str(error))], undecided_page(str(error)))
            raise

    def write(self, record: GateDocument, *, strict: bool = False) -> None:
        """Write what a gate found."""
        _write(
            {
                self.markdown: markdown_page(record),
                self.junit: junit_xml(record, strict, day(time.time)),
                self.out: canonical(record),
            }
        )
        self._tell(workflow_commands(record, strict), markdown_page(record))

    def _undecided(self, error: str) -> None:
        _write({self.markdown: undecided_page(error), self.junit: undecided_xml(error, day(time.time))})

    def _tell(self, lines: Iterable[str], page: str) -> None:
        if not self.github:
            return
        for line in lines:
            click.echo(line, err=True)  # the runner reads both streams, and stdout may be one JSON document
        if summary := os.environ.get(SUMMARY):
            before = read_text(summary) if Path(summary).exists() else ""
            write_text(summary, before + page)


def _write(faces: Mapping[str | None, str]) -> None:
    write_texts({Path(path): text for path, text in faces.items() if path is not None})
