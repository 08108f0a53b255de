"""Compiles what numba would compile at the first use: python -m steelyard_eval.precompile, once after installing.

It takes some fifteen seconds, and the machine code is kept in the package's folder, or in the user's cache where
that cannot be written. Without it the first recommendation takes that much longer.
"""

from steelyard_eval.choose.recommend import recommend
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import starter


def main() -> None:
    """Weigh the starter set, which runs every loop that `recommend`, `tune` and `compare` use."""
    recommend(load(starter()), timed=False)


if __name__ == "__main__":
    main()
