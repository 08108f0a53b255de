"""Where the command `steelyard` and `python -m steelyard_eval` begin: Ctrl-C is heard while modules load, too."""

from __future__ import annotations

import sys

INTERRUPTED = "interrupted; what was committed is kept, run the command again to go on"


def main() -> None:
    """Load the command line and run it."""
    try:
        from steelyard_eval.cli.main import main as run

        run(prog_name="steelyard")
    except (KeyboardInterrupt, SystemError) as error:
        if not was_interrupted(error):
            raise
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.exit(130)


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: extensions written in C raise SystemError where it falls into them."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind is not None


if __name__ == "__main__":
    main()
