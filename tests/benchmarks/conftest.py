"""The scripts of this folder import one another by name, as they do when bench.py is run."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
