"""Where the command `steelyard` and `python -m steelyard_eval` begin: Ctrl-C is heard while modules load, too."""

import gc
import os
import sys

from steelyard_eval.common.process import INTERRUPTED, was_interrupted


def main() -> None:
    """Load the command line and run it; products have one thread, unless OPENBLAS_NUM_THREADS says otherwise."""
    gc.set_threshold(1_000_000)  # new objects: to look for circles after every 700 took a tenth of the time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it as it loads; threads that wait cost more
    try:
        from steelyard_eval.cli.main import main as run  # inside, so that Ctrl-C is heard while it loads

        run(prog_name="steelyard")
    except (KeyboardInterrupt, SystemError) as error:
        if not was_interrupted(error):
            raise
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
