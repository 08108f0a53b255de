"""Compiles what numba would compile at the first use: python -m steelyard_eval.precompile, once after installing.

It takes some seconds, and the machine code is kept in the package's folder, or in the user's cache where that
cannot be written. Without it the first recommendation on a large data set takes that much longer.
"""

from steelyard_eval.candidates import compiled_loops
from steelyard_eval.learn import first_ten


def main() -> None:
    """Compile every loop that searches for weights."""
    compiled_loops.compiled()
    first_ten.loop()


if __name__ == "__main__":
    main()
