"""What people write into notes: front matter that is none, dates and links of all forms, other encodings."""

import json
import unicodedata
from pathlib import Path

import pytest

from steelyard_eval.extensions.importers import Options, load_store
from steelyard_eval.extensions.importers.arrays import checked
from steelyard_eval.extensions.importers.base import Imported

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


FRONT_MATTER = {
    # header: title, tags, what its values are kept as
    "title: Repair: the glaze cracks\ntags: [kiln]": ("Repair: the glaze cracks", ["kiln"], {}),
    "title: {{title}}\nauthor: {{author}}": ("note", [], {"title": "{{title}}", "author": "{{author}}"}),
    "path: `D:\\ovens\\2`\ntags:\n\t- kiln\n\t- clay": ("note", ["kiln", "clay"], {"path": "`D:\\ovens\\2`"}),
    "a: &x [1]\nb: *x\ntitle: Anchors": ("Anchors", [], {"a": [1], "b": "*x"}),
    "title: 'Ann's kiln'\nn: 3": ("Ann's kiln", [], {"n": 3}),
    "title: Deep\nx: " + "[" * 70 + "]" * 70: ("Deep", [], {"x": "[" * 70 + "]" * 70}),
    "title: Tag\nx: !!python/object/apply:os.system [ls]": (
        "Tag",
        [],
        {"x": "!!python/object/apply:os.system [ls]"},
    ),
}


@pytest.mark.parametrize("header", FRONT_MATTER)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_that_is_no_yaml_is_kept_as_text_and_counted(vault, header, end):
    entries, notices = vault({"note.md": f"---\n{header}\n---\n{BODY}".replace("\n", end)})
    title, tags, kept = FRONT_MATTER[header]
    entry = entries["note"]
    assert (entry.title, entry.text, list(entry.tags)) == (title, BODY, tags)
    assert entry.extra.get("front_matter", {}) == kept
    assert told(notices, "no YAML")


@pytest.mark.parametrize(
    "prose",
    [
        "The wheel was moved to the shed.",
        "The wheel was moved.\nDone: by Ann",
        "We met in the shed and decided: new bricks.",
        "- a list\n- of things",
        "# A heading of a note",
    ],
)
def test_prose_between_two_rules_is_prose(vault, prose):
    entries, notices = vault({"note.md": f"---\n{prose}\n---\n{BODY}"})
    assert prose in entries["note"].text and BODY in entries["note"].text
    assert not told(notices, "YAML")


@pytest.mark.parametrize(
    ("value", "kept", "counted"),
    [
        ("1" + ":59" * 2000, "1" + ":59" * 2000, 1),
        ("0x" + "f" * 5000, "0x" + "f" * 5000, 1),
        (".inf", ".inf", 1),
        ("1e999", "1e999", 1),
        ("!!int '0x" + "f" * 5000 + "'", "0x" + "f" * 5000, 1),
        ("12:30", "12:30", 0),
        ("0x1F", "0x1F", 0),
        (".env", ".env", 0),
        ("7", 7, 0),
        ("true", True, 0),
    ],
)
def test_a_number_that_none_computes_with_costs_its_value_at_most(vault, value, kept, counted):
    entries, notices = vault(
        {"a.md": f"---\nruns: {value}\n---\n{BODY}", "b.md": f"---\ntitle: {value}\n---\n{BODY}"}
    )
    assert [entry.text for entry in entries.values()] == [BODY, BODY]
    assert entries["a"].extra["front_matter"]["runs"] == kept
    assert entries["b"].title == str(kept)
    assert len(told(notices, "2 notes have")) == counted


def test_keys_inside_front_matter_are_texts_as_json_has_them(vault):
    entries, _ = vault({"note.md": f"---\nm:\n  1: a\n  '1': b\n  2.5: {{3: c}}\n---\n{BODY}"})
    assert entries["note"].extra["front_matter"] == {"m": {"1": "b", "2.5": {"3": "c"}}}


# By hand: date -u -d 2026-03-01 +%s is 1772323200.
MARCH = 1772323200.0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-03", MARCH),
        ("20260301", MARCH),
        ("202603010130", MARCH + 5400),
        ("2026-03-01 00:00:00 +0000", MARCH),
        ("2026-03-01 01:00 UTC", MARCH + 3600),
        ("1772323200", MARCH),
        ("1772323200000", MARCH),
        ("1772323200000000", MARCH),
        ("2026", 1767225600.0),  # date -u -d 2026-01-01 +%s
        ("01/03/2026", None),
        ("March 1st, 2026", None),
        ("2026-13-41", None),
        ("[2026]", None),
    ],
)
def test_dates_are_read_or_kept_and_counted(vault, written, seconds):
    entries, notices = vault({"note.md": f"---\ncreated: {written}\n---\n{BODY}"})
    assert entries["note"].created_at == seconds
    assert len(told(notices, "without created_at")) == (seconds is None)
    if seconds is None:
        assert str(entries["note"].extra["as_written"]["created_at"]) == written


def links(entry):
    return [relation.target for relation in entry.relations]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[x](../glazes/Blue%20one.md)", "glazes/Blue%20one"),
        ("[x](<../glazes/Blue one.md>)", "glazes/Blue%20one"),
        ('[x](Near.md "a title")', "ovens/Near"),
        ("[x](/ovens/Near.md)", "ovens/Near"),
        ("[x](glazes/Blue%20one.md)", "glazes/Blue%20one"),
        ("[x](Near%20(old).md)", "ovens/Near%20(old)"),
        ("[[Near]]", "ovens/Near"),
        ("[[glazes/Blue one|that one]]", "glazes/Blue%20one"),
        ("| [[Blue one\\|that one]] |", "glazes/Blue%20one"),
        ("![[Blue one#^a1]]", "glazes/Blue%20one"),
        ("[[BO]]", "glazes/Blue%20one"),
        ("[[Cobalt, first]]", "glazes/Blue%20one"),
        ("[[v1.2 notes]]", "v1.2/v1.2%20notes"),
        ("[[" + unicodedata.normalize("NFC", "Brûlé") + "]]", "Bru\u0302le\u0301"),
        ("[x](../Br%C3%BBl%C3%A9.md)", "Bru\u0302le\u0301"),
        ("[[Not there]]", "Not%20there"),
        ("[x](../Not%20there.md)", "Not%20there"),
        ("[x](https://example.org/page.md)", None),
        ("`[[Near]]`", None),
        ("```\n[[Near]]\n```", None),
    ],
)
def test_a_link_leads_to_the_note_that_it_means(vault, link, target):
    entries, _ = vault(
        {
            "ovens/A.md": f"See {link} first." if "\n" not in link else link,
            "ovens/Near.md": "n",
            "ovens/Near (old).md": "n",
            "ovens/Twice.md": "n",
            "Twice.md": "n",
            "glazes/Blue one.md": "---\naliases: [BO, 'Cobalt, first']\n---\nb",
            "v1.2/v1.2 notes.md": "n",
            unicodedata.normalize("NFD", "Brûlé.md"): "n",
        }
    )
    assert links(entries["ovens/A"]) == ([target] if target else [])


def test_aliases_description_and_summary_are_searched(vault, tmp_path):
    entries, _ = vault(
        {
            "a.md": "---\naliases: Bisque, First firing\ndescription: what leaves the kiln\n---\nAt 1000 degrees.",
            "b.md": "---\nsummary: how shards are recycled\nsource: Ann of the shed\n---\n",
            "c.md": "---\nup: '[[Bisque]]'\n---\nx",
        }
    )
    assert entries["a"].context.split("\n") == ["Bisque", "First firing", "what leaves the kiln"]
    assert "shards are recycled" in entries["b"].context and "Ann of the" in entries["b"].context
    assert links(entries["c"]) == ["a"]


@pytest.mark.parametrize(
    ("content", "text", "counted"),
    [
        ("caf\u00e9".encode("latin-1"), "caf\u00e9", 1),
        ("\u201cquoted\u201d".encode("windows-1252"), "\u201cquoted\u201d", 1),
        ("kiln caf\u00e9".encode("utf-16"), "kiln caf\u00e9", 0),
        (b"\xef\xbb\xbfkiln", "kiln", 0),
    ],
)
def test_other_encodings_are_read_and_counted(vault, content, text, counted):
    entries, notices = vault({"a.md": content})
    assert entries["a"].text == text
    assert len(told(notices, "not UTF-8")) == counted


def test_what_is_no_note_is_named(vault):
    entries, notices = vault(
        {
            "a.md": "a",
            "b.md": b"\0\x01\x02\xff\xfe\xfd\xfc\xfb\xfa",
            "c.md": "no mark".encode("utf-16-le"),
            "plan.canvas": "{}",
            ".x/c.md": "",
        }
    )
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
