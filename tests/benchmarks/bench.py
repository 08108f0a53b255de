"""Speed beside peers in one process: `make bench`; --json prints one document, --quick runs tiny sizes.

One thread each. What counts are the ratios, because machines differ: they are of processor time, median to median,
because other programs disturb it less than the clock. Results are compared before anything is
timed; a peer that is not installed is named and left out.
"""

import os

for library in ("OPENBLAS", "OMP", "MKL", "NUMBA", "RAYON"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse
import json
import platform
import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

warnings.filterwarnings("ignore")  # ranx and numba warn about types

import apsw
import keywords
import replay
import tuning
import vectors

PEERS = ("ranx", "bm25s", "tantivy", "faiss-cpu", "optuna", "cmaes", "fastrank")
PACKAGES = ("steelyard", "numpy", "apsw", "sqlite-vec", "pytrec_eval-terrier", "numba", *PEERS)
DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
GROUPS = {
    "replay": lambda quick: replay.races(quick, DATA if DATA.is_dir() else None, 3 if quick else 15),
    "keywords": lambda quick: keywords.races(quick, 40),
    "vectors": lambda quick: vectors.races(quick, 120),
    "layers": lambda quick: vectors.layer_races(quick, 100),
    "tuning": lambda quick: tuning.races(quick, 3 if quick else 9),
}


def machine():
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    versions = {one.name: one.version for one in distributions()}
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "packages": {name: versions[name] for name in PACKAGES if name in versions},
        "missing_peers": [name for name in PEERS if name not in versions],
        "threads": 1,
        "load_before": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
    }


def measure(quick, groups):
    about, begin = machine(), time.perf_counter()
    done = []
    for name in GROUPS:
        done += GROUPS[name](quick) if name in groups else []
    about |= {"load_after": round(os.getloadavg()[0], 2), "seconds": round(time.perf_counter() - begin)}
    cases = [{"group": r.group, "case": r.case, "document": r.document, "notes": r.notes} for r in done]
    return {"machine": about, "cases": cases, "rows": [row for r in done for row in r.rows()]}


def show(report):
    about = report["machine"]
    packages = ", ".join(f"{name} {found}" for name, found in about["packages"].items())
    print(f"{about['cpu']}, {about['cores']} cores, one thread each; load {about['load_before']} before, ", end="")
    print(f"{about['load_after']} after; {about['date']}, {about['seconds']} s in all")
    print(f"Python {about['python']}, SQLite {about['sqlite']}, {packages}")
    if about["missing_peers"]:
        print(f"not installed, so left out: {', '.join(about['missing_peers'])}")
    for case in report["cases"]:
        print(f"\n{case['group']}: {case['case']}")
        rows = [r for r in report["rows"] if (r["group"], r["case"]) == (case["group"], case["case"])]
        found = any(row.get("recall_10") is not None for row in rows)
        last = f"{'recall@10':>11}" if found else ""
        print(f"  {'':52}{'median ms':>10}{'p95 ms':>9}{'CPU ms':>9}{'x ours':>8}{last}")
        for row in rows:
            p95 = "" if row["p95_ms"] is None else f"{row['p95_ms']:.2f}"
            times = f"{row['median_ms']:>10.2f}{p95:>9}{row['cpu_ms']:>9.2f}{row['ratio']:>8.2f}"
            share = f"{row['recall_10']:>11.4f}" if row.get("recall_10") is not None else ""
            print(f"  {row['contender']:52}{times}{share}")
        if case["document"]:
            text, limit = case["document"]
            print(f"  {text}; {'met' if rows[0]['median_ms'] <= limit else 'not met'} here, by the median of ours")
        for note in case["notes"]:
            print(f"  {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run, not how fast is it")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the table of a document made with --json")
    parser.add_argument("--only", nargs="+", choices=GROUPS, help="these groups alone")
    asked = parser.parse_args()
    if asked.show:
        show(json.loads(asked.show.read_text(encoding="utf-8")))
        return
    report = measure(asked.quick, set(asked.only or GROUPS))
    print(json.dumps(report, indent=2)) if asked.json else show(report)


if __name__ == "__main__":
    main()
