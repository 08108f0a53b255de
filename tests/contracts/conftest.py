"""Modules that the contract tests share are imported by name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for worlds
sys.path.append(str(Path(__file__).parents[1] / "faults"))  # for noninterference
