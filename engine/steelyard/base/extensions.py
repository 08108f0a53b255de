"""Parts that the core works without: each is found by its name, and imported when something first asks for it.

No module of the core imports an extension, so a folder of one can be left out. A package of your own may bring one
that is not here, under the entry point `steelyard.extensions`: the name, and a module with the same functions.
"""

import re
import shlex
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from steelyard.base.errors import MachineError
from steelyard.base.files import data

Table = Mapping[str, tuple[str, str]]
"""Name -> its module, and what it is for."""
EXTENSIONS: Table = data(__package__, "extensions.json")


def extension(name: str, table: Table = EXTENSIONS) -> Any:  # noqa: ANN401 -- a module, known by its functions alone
    """The module of an extension; MachineError, with what to do, where it is not installed."""
    module, what = table[name]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        every, absent = {**EXTENSIONS, **table}, f"{error.name}."
        lacking = next((other for other, (own, _) in every.items() if absent.startswith(f"{own}.")), "")
        if not lacking:  # a library that it needs, whose own error tells more
            raise
    from importlib.metadata import entry_points  # it loads the package email

    for point in entry_points(group="steelyard.extensions", name=name):
        return point.load()
    raise MachineError(
        f"{what} needs the extension {lacking}, which is not installed here; install all of Steelyard again"
    )


EXTRAS: dict[str, list[str]] = data(__package__, "extras.json")
"""Extra of the distribution -> modules it brings."""


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that cannot be imported here."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def installing(extra: str) -> str:
    """The command that installs what an extra brings, package by package.

    It does not name our own package: whoever owns that name in an index decides what comes by it.
    """
    from importlib import metadata  # it loads the package email, and few ask

    try:
        lines = metadata.requires("steelyard") or []
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        lines = []
    found = [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    return shlex.join(["pip", "install", *(found or [f".[{extra}]"])])


def require(extra: str, what: str) -> None:
    """MachineError, naming the extra, when a module of it cannot be imported."""
    if missing := missing_modules(extra):
        raise MachineError(f"{what} needs {', '.join(missing)}, not installed here; run {installing(extra)}")
