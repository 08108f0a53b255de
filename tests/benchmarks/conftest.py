"""The scripts of this folder have no doctests: what they race against is not imported to see that."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
