"""What people write into notes: front matter that is none, dates and links of all forms, other encodings."""

import json
from pathlib import Path

import pytest
from shared import tabled

from steelyard.base.errors import ConfigError
from steelyard_eval.extensions.importers import Imported, Options, load_store
from steelyard_eval.extensions.importers.arrays import checked

BODY = "The kiln is fired on Monday."


@pytest.fixture
def vault(tmp_path):
    """Writes notes by name, as text or bytes; what a load of them finds, as entries by id."""

    def write(notes, **options):
        for name, text in notes.items():
            path = tmp_path / "vault" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        data = load_store(tmp_path / "vault", "markdown", Options(**options))
        return {entry.id: entry for entry in data.entries}, data.notices

    return write


def told(notices, words):
    return [note for note in notices if words in note]


@tabled
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_that_is_no_yaml_is_kept_as_text_and_counted(vault, header, title, tags, kept, end):
    entries, notices = vault({"note.md": f"---\n{header}\n---\n{BODY}".replace("\n", end)})
    entry = entries["note"]
    assert (entry.title, entry.text, list(entry.tags)) == (title, BODY, tags)
    assert entry.extra.get("front_matter", {}) == kept
    assert told(notices, "no YAML")


@tabled
def test_labels_of_front_matter_are_fields_that_filters_read(vault, header, fields, kept):
    (entry,) = vault({"note.md": f"---\n{header}\n---\n{BODY}"})[0].values()
    assert (entry.category, entry.domain, entry.kind, entry.severity, entry.importance) == tuple(fields)
    assert entry.extra.get("front_matter", {}) == kept


@tabled
def test_prose_between_two_rules_is_prose(vault, prose):
    entries, notices = vault({"note.md": f"---\n{prose}\n---\n{BODY}"})
    assert prose in entries["note"].text and BODY in entries["note"].text
    assert not told(notices, "YAML")


@pytest.mark.parametrize(
    ("value", "kept", "counted"),
    [
        *((odd, odd, 1) for odd in ("1" + ":59" * 2000, "0x" + "f" * 5000, ".inf", "1e999")),
        ("!!int '0x" + "f" * 5000 + "'", "0x" + "f" * 5000, 1),
        *((text, text, 0) for text in ("12:30", "0x1F", ".env")),
        *(("7", 7, 0), ("true", True, 0)),
    ],
)
def test_a_number_that_none_computes_with_costs_its_value_at_most(vault, value, kept, counted):
    notes = {"a.md": f"---\nruns: {value}\n---\n{BODY}", "b.md": f"---\ntitle: {value}\n---\n{BODY}"}
    entries, notices = vault(notes)
    assert [entry.text for entry in entries.values()] == [BODY, BODY]
    assert entries["a"].extra["front_matter"]["runs"] == kept
    assert entries["b"].title == str(kept)
    assert len(told(notices, "2 notes have")) == counted


def test_a_project_of_the_front_matter_is_the_project_else_the_folder_is(vault):
    notes = {"work/a.md": f"---\nproject: shop\n---\n{BODY}", "work/b.md": BODY}
    entries, _ = vault({**notes, "work/c.md": f"---\nproject: [x, y]\n---\n{BODY}"})
    assert [entries[f"work/{name}"].project for name in "abc"] == ["shop", "work", "work"]
    assert "front_matter" not in entries["work/a"].extra and "front_matter" in entries["work/c"].extra
    with pytest.raises(ConfigError, match="--map"):
        vault(notes, columns={"project": "shop"})


def test_keys_inside_front_matter_are_texts_as_json_has_them(vault):
    entries, _ = vault({"note.md": f"---\nm:\n  1: a\n  '1': b\n  2.5: {{3: c}}\n---\n{BODY}"})
    assert entries["note"].extra["front_matter"] == {"m": {"1": "b", "2.5": {"3": "c"}}}


@tabled
def test_dates_are_read_or_kept_and_counted(vault, written, seconds):
    entries, notices = vault({"note.md": f"---\ncreated: {written}\n---\n{BODY}"})
    assert entries["note"].created_at == seconds
    assert len(told(notices, "without created_at")) == (seconds is None)
    if seconds is None:
        assert str(entries["note"].extra["as_written"]["created_at"]) == written


NAMES = ["ovens/Near", "ovens/Near (old)", "ovens/Twice", "Twice", "v1.2/v1.2 notes", "Bru\u0302le\u0301"]


def links(entry):
    return [relation.target for relation in entry.relations]


@tabled
def test_a_link_leads_to_the_note_that_it_means(vault, link, target):
    linking = f"See {link} first." if "\n" not in link else link
    aliased = "---\naliases: [BO, 'Cobalt, first']\n---\nb"
    named = {f"{name}.md": "n" for name in NAMES}
    entries, _ = vault({"ovens/A.md": linking, "glazes/Blue one.md": aliased, **named})
    assert links(entries["ovens/A"]) == ([target] if target else [])


def test_aliases_description_and_summary_are_searched(vault):
    aliased = "---\naliases: Bisque, First firing\ndescription: what leaves the kiln\n---\nAt 1000 degrees."
    summed = "---\nsummary: how shards are recycled\nsource: Ann of the shed\n---\n"
    entries, _ = vault({"a.md": aliased, "b.md": summed, "c.md": "---\nup: '[[Bisque]]'\n---\nx"})
    assert entries["a"].context.split("\n") == ["Bisque", "First firing", "what leaves the kiln"]
    assert "shards are recycled" in entries["b"].context and "Ann of the" in entries["b"].context
    assert links(entries["c"]) == ["a"]


@tabled
def test_other_encodings_are_read_and_counted(vault, text, encoding, counted):
    entries, notices = vault({"a.md": text.encode(encoding)})
    assert entries["a"].text == text
    assert len(told(notices, "not UTF-8")) == counted


def test_what_is_no_note_is_named(vault):
    binary, unmarked = b"\0\x01\x02\xff\xfe\xfd\xfc\xfb\xfa", "no mark".encode("utf-16-le")
    entries, notices = vault({"a.md": "a", "b.md": binary, "c.md": unmarked, "plan.canvas": "{}", ".x/c.md": ""})
    assert list(entries) == ["a"]
    assert [note.split()[:2] for note in notices if "left out" in note] == [["2", "notes"], ["1", "file"]]


NOTE = Path(__file__).with_name("glaze.md").read_text("utf-8")


def test_a_note_of_basic_memory_is_whole(tmp_path):
    (tmp_path / "glaze.md").write_text(NOTE)
    [entry] = load_store(tmp_path, "basic_memory").entries
    assert all(line in entry.text for line in NOTE.split("---\n")[2].split("\n"))
    seen = [(each["category"], each["content"], each["context"]) for each in entry.extra["observations"]]
    assert seen == [("recipe", "Two parts feldspar #blue", "from Ann"), ("warning", "Use `gloves` always", None)]
    found = [(relation.type, relation.target) for relation in entry.relations]
    assert found[:2] == [("part_of", "Kiln"), ("needs", "Sieve")]
    assert sorted(found[2:]) == [("links_to", "Cobalt"), ("links_to", "Lead"), ("links_to", "Shed")]


def test_what_an_index_alone_says_of_a_note_stays(tmp_path):
    (tmp_path / "kiln.md").write_text("---\nname: Kiln\ndescription: fired on Monday\n---\nBricks.")
    (tmp_path / "MEMORY.md").write_text(
        "# Memory\n- [Kiln](kiln.md) - fired on Monday\n- [Kiln](kiln.md): never on Sunday\n"
        "- [Gone](gone.md): lost\n"
    )
    index = {entry.id: entry for entry in load_store(tmp_path).entries}["MEMORY"]
    assert index.text.split("\n")[1:] == ["- [Kiln](kiln.md): never on Sunday", "- [Gone](gone.md): lost"]


def test_a_value_that_strict_json_cannot_hold_costs_itself():
    [(entry, line)] = checked(Imported([{"id": "a", "text": BODY, "m": {1: "a", "1": "b"}}]))
    assert (entry.text, "m" in json.loads(line)) == (BODY, False)
