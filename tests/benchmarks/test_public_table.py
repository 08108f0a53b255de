"""The table that ships is of today: its data, its queries, its contenders, and on two collections its figures."""

from importlib import resources

import numpy as np
import pytest
from pools import PLACES, Lists, digest
from priors import CLASSES, NAMES, document

from steelyard.base.files import STRICT_JSON
from steelyard_eval.choose import public
from steelyard_eval.datasets import load

TABLE = STRICT_JSON.decode(resources.files("steelyard_eval.choose").joinpath(public.FILE).read_text("utf-8"))
AT = {one["name"]: at for at, one in enumerate(TABLE["about"]["collections"])}


@pytest.mark.parametrize("name", NAMES)
def test_what_decides_a_column_is_as_it_was(data_root, name):
    assert TABLE["about"]["collections"][AT[name]]["digest"] == digest(load(data_root / name)), (
        f"the column of {name} is stale; run `make priors`"
    )


@pytest.mark.parametrize("name", ["madial", pytest.param("locomo-sessions", marks=pytest.mark.nightly)])
def test_the_code_of_today_finds_the_same_figures(data_root, tmp_path, name):
    found = Lists.of(name, tmp_path)
    assert data_root.is_dir()

    assert {label: row[AT[name]] for label, row in TABLE["means"]["minilm"].items()} == pytest.approx(
        dict(zip(found.labels, found.truth.tolist(), strict=True)), abs=1e-4
    ), f"search changed; run `make priors` with --only for all collections: {' '.join(NAMES)}"


def test_a_column_is_measured_alone_and_the_others_stay(monkeypatch, tmp_path):
    labels = tuple(TABLE["means"]["minilm"])
    gains = np.zeros((2, len(labels), PLACES), dtype=np.int8)
    gains[:, :, 0] = 1
    gains[1, labels.index("bm25"), 0] = 0  # finds the answer of one query of two; the default, of both
    own = Lists("locomo", labels, labels, gains, gains, np.ones(2), "new", "none", "minilm", "of today")
    monkeypatch.setattr(Lists, "of", lambda name, folder, kind="recorded": own)

    made = document(TABLE, ["locomo"], tmp_path, "2026-11-24")

    at = AT["locomo"]
    told = {"name": "locomo", "sha256": "new", "licence": "none", "date": "2026-11-24", "digest": "of today"}
    assert made["about"]["collections"][at] == {**told, "queries": 2}
    for kind in CLASSES.values():
        assert (made["means"][kind]["bm25"][at], made["variances"][kind]["bm25"][at]) == (0.5, 0.5)
        for side in ("means", "variances"):
            for label, row in made[side][kind].items():
                assert (
                    row[:at] + row[at + 1 :] == TABLE[side][kind][label][:at] + TABLE[side][kind][label][at + 1 :]
                )
    assert made["relevance"] == TABLE["relevance"]
