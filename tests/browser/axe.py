"""The accessibility rules of axe-core, which `make test` fetches once into .venv/axe, and nothing ships."""

import os
from pathlib import Path

import pytest

PLACES = (os.environ.get("STEELYARD_AXE", ""), Path(__file__).parents[2] / ".venv" / "axe" / "axe.min.js")
SERIOUS = ("serious", "critical")


def source():
    """The script; the test is skipped where it is not there."""
    for place in PLACES:
        if place and Path(place).is_file():
            return Path(place).read_text("utf-8")
    pytest.skip("axe-core is not in .venv/axe (make .venv/axe/axe.min.js, which needs npm) nor at STEELYARD_AXE")


def serious(page, within="html"):
    """The serious and critical violations on a page, or in a part of it, as rule and the places of it."""
    # Through the debugger: the policy of the page forbids every script but its own.
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": source()})
    found = page.evaluate("at => axe.run(at, {resultTypes: ['violations']})", within)["violations"]
    return {one["id"]: [node["target"] for node in one["nodes"]] for one in found if one["impact"] in SERIOUS}
