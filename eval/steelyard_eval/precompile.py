"""Compiles what the first use would compile: python -m steelyard_eval.precompile, once after installing.

It takes some seconds. Machine code of loops is kept in the package's folder, or in the user's cache where that
cannot be written; without it the first recommendation on a large data set takes that much longer. The bytecode of
modules is written beside them even where PYTHONDONTWRITEBYTECODE is set, as in many containers: without it each
command compiles them again.
"""

import sys
import tempfile


def main() -> None:
    """Compile every loop that searches for weights, and every module that recommends and reports."""
    sys.dont_write_bytecode = False
    from sklearn import ensemble, model_selection  # noqa: F401 -- reports on more labels load them

    from steelyard_eval.candidates import compiled_loops
    from steelyard_eval.choose.recommend import recommend
    from steelyard_eval.datasets.in_memory import load_dict
    from steelyard_eval.learn import first_ten

    compiled_loops.compiled()
    first_ten.loop()
    notes = {"a": "rotate keys", "b": "cache indexes", "c": "retry jitter"}
    known = load_dict({"corpus": notes, "queries": notes, "qrels": {name: {name: 1} for name in notes}})
    with tempfile.TemporaryDirectory() as folder:
        recommend(known, embedder="lsa").report(folder)


if __name__ == "__main__":
    main()
