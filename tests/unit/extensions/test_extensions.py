"""The core works without its extensions: it imports none, and says in one line which one is missing."""

import json
import re
from importlib.metadata import EntryPoint

import pytest
from shared import ROOT, beside, run_apart, write_set

from steelyard.base.errors import MachineError
from steelyard.base.extensions import EXTENSIONS as OF_ENGINE
from steelyard_eval.common import EXTENSIONS, extension

PACKAGE = ROOT / "eval" / "steelyard_eval"
ENGINE = ROOT / "engine" / "steelyard"
STARTER = str(ROOT / "qrels" / "starter")
ASKS = beside(__file__)["ASKS"]  # the command that asks for each
VARIABLES = {"rerank": {"ENABLE_CROSS_ENCODER": "true"}, "int8": {"STEELYARD_VECTORS": "int8"}}
BESIDE = {"cortex_client"}  # asked for where the others are there: its command asks for the network, too
COMPARE = ["compare", STARTER, "bm25", "--json"]


def without(names, folder):
    """A copy of both packages that lacks some extensions; what is left is linked."""
    for package in (PACKAGE, ENGINE):
        (folder / package.name / "extensions").mkdir(parents=True)
        for path in (*package.iterdir(), *(package / "extensions").iterdir()):
            if path.name not in (*names, "extensions", "__pycache__"):
                (folder / path.relative_to(package.parent)).symlink_to(path)
    return folder


def run(folder, *commands):
    return run_apart(folder, *commands, LLM_BASE_URL="http://127.0.0.1:1", LLM_MODEL="m")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """What the command of each extension says without it; after all of them another command works."""
    line = {"schema_version": 1, "timestamp": "2026-01-01T00:00:00Z", "query_id": "1", "user_query": "keys"}
    every, found = {**EXTENSIONS, **OF_ENGINE}.keys(), {}
    for names in (every - BESIDE, BESIDE):
        folder = without(names, tmp_path_factory.mktemp("lacking"))
        (folder / "log.jsonl").write_text(json.dumps(line | {"policy": "p", "hits": []}) + "\n")
        asks = [
            ([STARTER if word == "STARTER" else word for word in ASKS[name]], VARIABLES.get(name, {}))
            for name in sorted(names)
        ]
        *told, (code, compared, _) = run(folder, *asks, (COMPARE, {}))
        assert code == 0 and json.loads(compared)["rows"]
        found |= dict(zip(sorted(names), told, strict=True))
    return found


@pytest.mark.parametrize("name", {**EXTENSIONS, **OF_ENGINE})
def test_without_one_its_command_ends_with_one_line_and_another_command_works(name, asked):
    code, out, err = asked[name]
    assert (code, out) == (4, "")
    assert re.search(rf"\b{name}\b", err)
    assert "Traceback" not in err


def test_without_all_of_them_the_core_works(tmp_path):
    """Starter is compared; what takes long is done on twenty queries."""
    entries, queries = ([{"id": f"{kind}{n}", "text": f"key {n % 5} of {n}"} for n in range(20)] for kind in "eq")
    few = write_set(tmp_path / "few", entries, queries, "".join(f"q{n} 0 e{n} 1\n" for n in range(20)))
    gated = [STARTER, "bm25", "--baseline", "base.json"]
    commands = [COMPARE, ["recommend", str(few), "--json"], ["gate", *gated, "--update", "--reason", "first"]]
    commands += [["gate", *gated], ["index", STARTER, "made.db"], ["search", "made.db", "rotate keys"]]
    results = run(without({**EXTENSIONS, **OF_ENGINE}, tmp_path), *((words, {}) for words in commands))
    assert [code for code, _, _ in results] == [0] * len(commands), results


def test_another_package_may_bring_one(monkeypatch):
    monkeypatch.setitem(EXTENSIONS, "serve", ("steelyard_eval.extensions.gone", "a server"))
    with pytest.raises(MachineError):
        extension("serve")
    point = EntryPoint("serve", "json", "steelyard.extensions")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [point])
    assert extension("serve") is json


def test_a_library_that_an_extension_lacks_is_told_by_its_own_name(monkeypatch, tmp_path):
    (tmp_path / "served_elsewhere.py").write_text("import no_such_library_here\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTENSIONS, "serve", ("served_elsewhere", "a server"))
    with pytest.raises(ModuleNotFoundError, match="no_such_library_here"):
        extension("serve")
