"""What the statements of documents are tested with, by its name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for statements and tables
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for by_trec_eval
