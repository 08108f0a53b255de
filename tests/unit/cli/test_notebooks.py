"""Every notebook runs from start to end and prints what its committed version shows."""

import re
import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra notebooks is not installed")
ROOT = Path(__file__).parents[3]
BAR = re.compile(r"\d+%\|.*\| \d+/\d+ \[")  # progress, which is shown after two seconds
EMPTIED = "import os, pandas\nos.chdir({place!r})\npandas.reset_option('display.')\n%reset -f"
"""Takes every name and option of the notebook before."""
SHARED = """import sys
sys.path.append({folder!r})
import functools, pytest, opened_once, steelyard_eval as sy
from steelyard_eval.workbench.workbench import Workbench
opened_once.open_once(pytest.MonkeyPatch())
sy.demo = functools.cache(sy.demo)
Workbench.recommend = functools.cache(Workbench.recommend)"""
"""What a notebook asks of the demo that another one asked before is found once."""


@pytest.fixture(scope="module")
def client():
    """One kernel for all notebooks, which loads the packages once."""
    from nbclient import NotebookClient

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")  # text is folded to the terminal, and test runners set one of their own
        shared = nbformat.v4.new_code_cell(SHARED.format(folder=str(ROOT / "tests" / "unit")))
        first = nbformat.v4.new_notebook(cells=[shared])
        how = {"kernel_name": "python3", "record_timing": False, "shutdown_kernel": "immediate"}
        made = NotebookClient(first, timeout=300, **how)
        with made.setup_kernel():
            made.execute_cell(shared, 0)
            yield made


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_notebook_runs_and_prints_what_is_committed(path: Path, tmp_path: Path, client) -> None:
    committed = nbformat.read(path, 4)
    (tmp_path / "notebooks").mkdir()
    for file in (path, ROOT / "notebooks" / "sessions.jsonl.gz"):
        shutil.copy(file, tmp_path / "notebooks")
    client.nb = fresh = nbformat.from_dict(committed)
    fresh.cells.insert(0, nbformat.v4.new_code_cell(EMPTIED.format(place=str(tmp_path / "notebooks"))))
    client.execute(cleanup_kc=False)
    del fresh.cells[0]
    assert printed(fresh) == printed(nbformat.read(path, 4))
    if "search-weights.json" in "".join(cell.source for cell in committed.cells):
        assert list((tmp_path / "reports").rglob("search-weights*.json"))  # .current.json and .try.json under try


def printed(notebook) -> list[str]:
    """What each cell prints; a long text may come in several pieces, and a busy machine shows bars of progress."""
    cells = [cell.get("outputs", []) for cell in notebook.cells if cell.cell_type == "code"]
    texts = [[out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell] for cell in cells]
    return ["".join(text for text in cell if not BAR.search(text)) for cell in texts]


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_needs_the_workbench_alone_and_its_text_pair_holds_the_same_cells(path: Path) -> None:
    ours = re.findall(r"^(?:import|from) steelyard.*", path.read_text("utf-8"), re.MULTILINE)
    assert ours == ["import steelyard_eval as sy"]
    jupytext = pytest.importorskip("jupytext", reason="the extra notebooks is not installed")
    cells = [(cell.cell_type, cell.source) for cell in jupytext.read(path).cells]
    assert cells == [(cell.cell_type, cell.source) for cell in nbformat.read(path.with_suffix(".ipynb"), 4).cells]
