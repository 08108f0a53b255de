"""The commands of the command line, thin: they read options, call the API, and print.

The module of a command is imported when the command is named, so that `steelyard --help` loads nothing that
searches.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

import click

from steelyard_eval.cli.commands.shared_options import mannered

COMMANDS = {
    "act": "Log what was done with the entries of a search.",
    "check": "Validate a data set and report every fault at once.",
    "compare": "Compare systems, strategies, weights files, runs, endpoints.",
    "context": "Print relevant entries, filled up with recent ones.",
    "demo": "Do the main job on the data set that comes with the package.",
    "doctor": "Check this machine, and vault files page by page.",
    "explain": "Explain one query, signal by signal.",
    "export": "Translate a search-weights.json for another system.",
    "gate": "Say whether search got worse since the committed baseline.",
    "get": "Print whole entries by id, including details.",
    "import": "Read the store of another program into a data set.",
    "index": "Build or update a vault: entries, indexes, vectors.",
    "init": "Write a first baseline, and a workflow that gates changes.",
    "judge": "Label pairs of query and entry, the most telling first.",
    "learn": "Learn weights from a feedback log.",
    "list": "List every entry that passes the filters, newest first.",
    "recommend": "Say which strategy and which weights to use, and why.",
    "record": "Save what retrievers return, to compare and tune on later.",
    "report": "Write HTML, Markdown, JSON and CSV from a result.",
    "runs": "List what was measured so far, and what changed.",
    "search": "Search a vault, or several as tiers of one memory.",
    "serve": "Serve a vault to agents, as an MCP server.",
    "tune": "Choose the settings and weights of one strategy.",
}
"""Every command with its line in `steelyard --help`. A new one stands in the module of its name."""
_MODULES = {
    "context": "search",
    "get": "search",
    "import": "importing",
    "init": "gate",
    "list": "search",
    "record": "compare",
    "tune": "recommend",
}
"""Modules of the commands that stand beside another one."""


MEANT = {
    "annotate": "judge", "benchmark": "compare", "diff": "runs", "eval": "compare", "evaluate": "compare",
    "history": "runs", "label": "judge", "load": "import", "mcp": "serve", "optimise": "recommend",
    "optimize": "recommend", "query": "search", "suggest": "recommend", "test": "gate", "undo": "runs",
    "validate": "check", "why": "explain",
    "loop": "import FOLDER; learn FOLDER --from transcripts; recommend FOLDER; gate FOLDER",
    "feedback": "learn FOLDER --from ubi:FILES", "floor": "recommend FOLDER --floor lost=10%",
    "interleave": "serve VAULT --log LOG --explore FILE", "refresh": "import SOURCE FOLDER",
    "reindex": "index VAULT --rebuild", "simulate": "learn FOLDER --from transcripts",
}  # fmt: skip
"""What people type who know other programs or an earlier Steelyard, and what does it."""


@cache
def load_command(name: str) -> click.Command:
    """Import a command with all that it needs."""
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    commands = {value.name: value for value in vars(module).values() if isinstance(value, click.Command)}
    return mannered(commands[name])
