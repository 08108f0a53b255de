"""Writes a gate's result where people and their tools look: Markdown, JUnit XML, JSON, GitHub Actions."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from steelyard.base.files import canonical, write_text, write_texts
from steelyard.base.inputs import read_text
from steelyard_eval.common.documents.gate import GateDocument
from steelyard_eval.decide.provenance import day
from steelyard_eval.gate.github import workflow_commands
from steelyard_eval.gate.junit import junit_xml
from steelyard_eval.gate.markdown import markdown_page

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the file of the step's summary."""


def write_faces(
    record: GateDocument,
    *,
    strict: bool = False,
    markdown: str | None = None,
    junit: str | None = None,
    out: str | None = None,
    github: bool = False,
) -> None:
    """Write the files that are asked for; in GitHub Actions also annotations and the summary of the step."""
    faces = {
        markdown: markdown_page(record),
        junit: junit_xml(record, strict, day(time.time)),
        out: canonical(record),
    }
    write_texts({Path(path): text for path, text in faces.items() if path is not None})
    if github:
        _github(record, strict)


def _github(record: GateDocument, strict: bool) -> None:
    for line in workflow_commands(record, strict):
        click.echo(line, err=True)  # the runner reads both streams, and stdout may be one JSON document
    if summary := os.environ.get(SUMMARY):
        before = read_text(summary) if Path(summary).exists() else ""
        write_text(summary, before + markdown_page(record))
