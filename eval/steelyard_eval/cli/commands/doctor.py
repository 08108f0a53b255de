"""The command doctor: whether this machine and these vaults are in order."""

from __future__ import annotations

import sys

import click

from steelyard.base.errors import MachineError
from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.doctor import diagnose


@click.command()
@click.argument("vaults", nargs=-1, metavar="[VAULT...]", type=click.Path())
@json_option
def doctor(vaults: tuple[str, ...], as_json: bool) -> None:
    """Check this machine (versions, SQLite, extras, folders, fonts), and vault files page by page."""
    diagnosis = diagnose(vaults)
    put(diagnosis.to_json(), as_json, str(diagnosis))
    if not diagnosis.fit:
        sys.exit(MachineError.exit_code)
