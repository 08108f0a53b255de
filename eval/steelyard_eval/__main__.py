"""Where the command `steelyard` and `python -m steelyard_eval` begin: Ctrl-C is heard while modules load, too."""

from __future__ import annotations

import sys

INTERRUPTED = "interrupted; what was committed is kept, run the command again to go on"


def main() -> None:
    """Load the command line and run it."""
    try:
        from steelyard_eval.cli import main as run

        run(prog_name="steelyard")
    except KeyboardInterrupt:
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
