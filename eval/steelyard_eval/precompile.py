"""Compiles what numba would compile at the first use: python -m steelyard_eval.precompile, once after installing.

It takes some seconds, and the machine code is kept in the package's folder, or in the user's cache where that
cannot be written. Without it the first recommendation on a large data set takes that much longer.
"""

from steelyard_eval.candidates import lanes
from steelyard_eval.learn import top10


def main() -> None:
    """Compile every loop that searches for weights."""
    lanes.compiled()
    top10.loop()


if __name__ == "__main__":
    main()
