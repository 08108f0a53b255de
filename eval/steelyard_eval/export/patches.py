"""Patches of the constants in which other programs keep their weights.

``patches.json`` has the lines, of the newest program and of that which its document describes; a patch is a
unified diff without context, for ``git apply --unidiff-zero``.
"""

from collections.abc import Mapping
from importlib import resources

from steelyard.base.files import STRICT_JSON
from steelyard.grammar import number_text

PATCHED = "no configuration of it has these: apply the patch to its source, git apply --unidiff-zero"


def patched(target: str, values: Mapping[str, float]) -> dict[str, str]:
    """The patches of a target, by name: each sets the lines of constants to these values."""
    patches: dict[str, str] = {}
    sources = STRICT_JSON.decode(resources.files(__package__).joinpath("patches.json").read_text("utf-8"))
    for name, source in sources[target].items():
        patch = [f"# {source['of']}", f"--- a/{source['path']}", f"+++ b/{source['path']}"]
        for number, line, old, key in source["lines"]:
            if values[key] != float(old):
                new = line.format(number_text(values[key]))
                patch += [f"@@ -{number} +{number} @@", f"-{line.format(old)}", f"+{new}"]
        patches |= {name: "\n".join([*patch, ""])} if len(patch) > 3 else {}
    return patches
