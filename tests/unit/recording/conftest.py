"""Data sets that tests of recordings write."""

import json

import pytest


@pytest.fixture(scope="session")
def written_set():
    """Writes a data set of these records and labels into a folder, with what its description says."""

    def write(folder, corpus, queries, qrels, **about):
        folder.mkdir(exist_ok=True)
        for name, rows in (("corpus", corpus), ("queries", queries)):
            (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        (folder / "qrels.txt").write_text(qrels)
        (folder / "dataset.json").write_text(json.dumps({"name": folder.name, **about}))
        return folder

    return write
