"""The result of a gate as annotations of GitHub Actions (workflow commands: ::error title=...::message)."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.base.errors import visible
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.structs import Result

LEVELS = {"fail": "error", "mismatch": "error", "inconclusive": "warning", "pass": "notice"}


def render(result: Result, strict: bool = False) -> Iterator[str]:
    """A line for every finding that is not fine, or one that all is."""
    findings = [finding for finding in result.findings if finding.verdict != "pass"]
    if not findings:
        yield _command("notice", "steelyard gate", say(result.answer))
    for finding in findings:
        level = "error" if strict and finding.verdict == "inconclusive" else LEVELS[finding.verdict]
        yield _command(level, f"steelyard gate: {finding.contender or finding.facts['part']}", say(finding))


def undecided(error: str) -> str:
    """The line of a gate that an error ended."""
    return _command("error", heading("github_undecided"), "; ".join(error.splitlines()))


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(visible(title))}::{_message(visible(message))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
