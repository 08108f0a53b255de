"""The script that computes scores without the engine, by its name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for recomputed
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for by_trec_eval
