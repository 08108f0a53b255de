"""The scripts of this folder import one another by name, as they do when bench.py is run."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))
# They have no doctests, and what they race against (ranx alone takes two seconds) is not imported to see that.
collect_ignore = [path.name for path in HERE.glob("*.py") if not path.name.startswith("test_")]
