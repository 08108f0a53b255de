"""Files of the MCP memory server as crashes, forks and older servers leave them."""

import json

import pytest

from steelyard.base.errors import DataError
from steelyard_eval.extensions.importers import load_store

KILN = '{"type":"entity","name":"Kiln 2","entityType":"oven","observations":["Fires at noon"]}'
OWNS = '{"type":"relation","from":"Bo","to":"Kiln 2","relationType":"tends"}'
BO = '{"type":"entity","name":"Bo","entityType":"potter","observations":["Prefers ash glaze"]}'
READ = {"Kiln%202": "Fires at noon", "Bo": "Prefers ash glaze"}
LATER = '{"type":"entity","name":"Bo","entityType":"potter","observations":["Prefers ash glaze","Moved away"]}'
GRAPH = {
    "entities": [{"name": "Kiln 2", "entityType": "oven", "observations": ["Fires at noon"]}, json.loads(BO)],
    "relations": [{"from": "Bo", "to": "Kiln 2", "relationType": "tends"}],
}


def loaded(tmp_path, text, name="memory.jsonl"):
    (tmp_path / name).write_text(text)
    data = load_store(tmp_path / name)
    return {entry.id: entry for entry in data.entries}, data.notices


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{KILN}\n{BO}\n{OWNS}", None),
        (f"{KILN}\n{BO}{OWNS}\n", None),
        (f'{KILN}\n{BO}\n{OWNS}\n{{"type":"entity","na', "4"),
        (f'{KILN}\n{BO}\n{{"type":"relation","fr{OWNS}\n', "3"),
        (f'\n{KILN}\nnonsense\n{BO}\n[1]\n{OWNS}\n{{"type":"tool"}}', "3, 5, 7"),
        (f'{{"type":"_aim","source":"mcp-knowledge-graph"}}\n{KILN}\n{BO}\n{OWNS}', None),
        (json.dumps(GRAPH, indent=2), None),
        (json.dumps({**GRAPH, "entities": ["Shed", *GRAPH["entities"], 7]}), "1"),
        (f"[{KILN},\n{BO},\n{OWNS}]", None),
        (f"{KILN}\n{BO}\n" + OWNS.replace('"from"', '"from_entity"').replace('"to"', '"to_entity"'), None),
        (f"{KILN}\n{BO}\n" + OWNS.replace('"from"', '"source"').replace('"to"', '"target"'), None),
        (f"{KILN}\n{BO}\n" + OWNS.replace("relationType", "relation_type"), None),
        (f"{KILN}\n{BO}\n{OWNS}\n" + '{"type":"entity","name":"x","observations":[' * 3000, "4"),
    ],
)
@pytest.mark.parametrize("name", ["memory.jsonl", "memory.json"])
def test_what_can_be_read_is_read_and_the_rest_counted(tmp_path, text, lines, name):
    entries, notices = loaded(tmp_path, text, name)
    assert {id_: entry.text for id_, entry in entries.items()} == READ
    assert [(r.type, r.target) for r in entries["Bo"].relations] == [("tends", "Kiln%202")]
    told = [note for note in notices if "no entity and" in note]
    assert [note.rpartition("line ")[2] for note in told] == ([lines] if lines else [])


@pytest.mark.parametrize(
    ("observations", "text", "counted"),
    [
        ('[{"content":"Cracked","timestamp":"2026-01-01T00:00:00Z"},"Mended"]', "Cracked\nMended", 0),
        ('"Cracked"', "Cracked", 0),
        ("[]", "", 0),
        ('["Cracked",7]', "Cracked", 1),
    ],
)
def test_observations_of_other_forms(tmp_path, observations, text, counted):
    line = KILN.replace('["Fires at noon"]', observations)
    entries, notices = loaded(tmp_path, f"{line}\n{BO}")
    assert entries["Kiln%202"].text == text
    assert len([note for note in notices if "no entity and" in note]) == counted


def test_an_entity_that_is_there_twice_is_merged_and_names_of_other_case_are_two(tmp_path):
    other = BO.replace('"Bo"', '"bo"')
    entries, notices = loaded(tmp_path, f"{BO}\n{KILN}\n{LATER}\n{other}")
    assert list(entries) == ["Bo", "Kiln%202", "bo"]
    assert entries["Bo"].text == "Prefers ash glaze\nMoved away"
    assert len([note for note in notices if note.startswith("1 entity")]) == 1


def test_a_file_without_anything_is_refused(tmp_path):
    with pytest.raises(DataError, match="neither entities"):
        loaded(tmp_path, '{"type":"entity","observations":["na\n')
