"""A real browser opens the report from a file: address: it draws, and runs nothing that the data say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard_eval.report import write_report

CHROMIUM = shutil.which("chromium") or next((p for p in ("/usr/bin/chromium",) if Path(p).exists()), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip
PLANTED = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    labels = ("fts", f"vector {PLANTED}")
    results = {
        "schema_version": 1, "split": "test", "limit": 10, "primary": "nDCG@10", "baseline": "fts",
        "dataset": {"name": "workshop", "description": PLANTED},
        "configurations": [{"label": label, "strategy": f"fts {PLANTED}"} for label in labels],
        "results": [
            {"label": label, "metric": "nDCG@10", "mean": 0.4 + at / 10, "low": 0.3, "high": 0.6}
            for at, label in enumerate(labels)
        ],
        "comparisons": [],
        "per_query": [{"id": "q1", "text": PLANTED, "values": {labels[0]: 0.0, labels[1]: 1.0}}],
    }  # fmt: skip
    return write_report(results, tmp_path_factory.mktemp("report"))[0]


def chromium(folder, *arguments):
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_the_page_is_drawn(page, tmp_path):
    picture = tmp_path / "report.png"
    chromium(tmp_path, f"--screenshot={picture}", "--window-size=1200,2400", page.as_uri())
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 1200
    assert len(data) > 20_000  # an empty page of this size is a few thousand bytes


def test_the_table_is_there_and_no_script_ran(page, tmp_path):
    dom = chromium(tmp_path, "--dump-dom", page.as_uri()).stdout
    assert re.search(r"<title>Search strategies on workshop</title>", dom)
    assert "<table>" in dom
    assert dom.count("<circle") == 2
    assert not re.search(r"<script|<img", dom)
    assert "&lt;script&gt;document.title='pwned'" in dom
