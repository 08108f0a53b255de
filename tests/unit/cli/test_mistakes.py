"""What new users type, and what they are told: the value, the rule, what to do instead."""

import json
import shlex
import shutil
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from shared import document, done, run, tabled, write_set

import steelyard_eval as sy
from steelyard.systems import find_system
from steelyard_eval.cli.main import main

MANIFEST = {"name": "tiny", "text_for_embedding": "{title} {text}", "as_of": "2026-01-01"}
ENTRIES = [{"id": f"e{n}", "title": f"note {n}", "text": f"words about {what}"} for n, what in enumerate("abcd")]
QUERIES = [{"id": "q1", "text": "words about a"}, {"id": "q2", "text": "note of b"}]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A sound data set of four entries and two queries, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return write_set(tmp_path / "tiny", ENTRIES, QUERIES, "q1 0 e0 1\nq2 0 e1 1\n", **MANIFEST)


class TestFirstCommands:
    @tabled
    def test_one_message_says_what_to_write(self, tiny, words, told):
        found = run(*words)
        assert (found.exit_code, found.stdout) == (2, "")
        assert told in found.stderr
        assert "Traceback" not in found.stderr

    @pytest.mark.parametrize("command", [("recommend",), ("tune", "plain")], ids=["recommend", "tune"])
    def test_where_nothing_can_be_written_is_told_before_the_work(self, tiny, command, monkeypatch):
        monkeypatch.setattr("steelyard_eval.choose.recommend.recommend", None)  # not to be reached
        assert "name a file to write" in done(command[0], tiny, *command[1:], "--out", tiny, code=4).stderr

    def test_a_vault_needs_no_queries_and_labels_need_some(self, tiny):
        (tiny / "queries.jsonl").unlink()
        done("check", tiny, code=2)  # its labels are of queries that are gone
        (tiny / "qrels.txt").unlink()
        done("index", tiny, "own.db")
        assert document("search", "own.db", "note", "--system", "bm25")["hits"]
        (tiny / "queries.csv").write_text("q1,what")
        assert "queries.csv" in run("check", tiny).stdout

    @pytest.mark.parametrize("command", ["check", "compare", "recommend"])
    def test_a_folder_of_notes_is_to_be_imported(self, tmp_path, command, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "notes" / "deep").mkdir(parents=True)
        (tmp_path / "notes" / "deep" / "one.md").write_text("# One\n")
        told = done(command, "notes", code=2).output
        assert ("steelyard import notes" in told, "missing" in told) == (True, False)

    def test_init_says_what_an_existing_baseline_gates(self, tiny):
        assert "gated with bm25" in done("init", tiny, "--current", "bm25").stdout
        again = done("init", tiny, "--current", "fts").stdout
        assert again.startswith(f"{tiny} is gated with bm25\n")  # and not with fts, which nothing gates
        command = again.split("in its place: steelyard ")[1].split(" --reason")[0]
        done(*command.split(), "--reason", "fts is what we use")
        assert "fts" in done("gate", tiny).stdout

    def test_what_init_commits_leaves_out_what_no_gate_reads(self, tiny):
        log = tiny / "feedback.jsonl"
        assert ":!" not in done("init", tiny, "--current", "bm25").stdout
        (tiny / "judgments").mkdir()
        unread = {"judgments/judge.jsonl", "qrels.txt.bak", log.name}
        for name in unread:
            (tiny / name).write_text("")
        words = shlex.split(done("init", "tiny").stdout.split("commit what the gate reads: ")[1].splitlines()[0])
        assert words[-3:] == [":!tiny/judgments", ":!tiny/qrels.txt.bak", ":!tiny/feedback.jsonl"]
        subprocess.run(["git", "init", "-q"], check=True)
        subprocess.run(words, check=True)
        added = subprocess.run(["git", "ls-files", "tiny"], check=True, capture_output=True, text=True)
        assert "tiny/qrels.txt" in added.stdout
        assert unread.isdisjoint(line.removeprefix("tiny/") for line in added.stdout.splitlines())
        about = json.loads((tiny / "dataset.json").read_text())
        (tiny / "dataset.json").write_text(json.dumps({**about, "files": {log.name: sha256(b"").hexdigest()}}))
        assert "feedback" not in done("init", "tiny").stdout  # whose hash the gate compares

    def test_init_beside_the_baseline_of_another_data_set_says_that_it_gates_nothing_here(self, tiny):
        other = tiny.with_name("other")
        shutil.copytree(tiny, other)
        (other / "dataset.json").write_text(json.dumps({**MANIFEST, "name": "other"}))
        (other / "qrels.txt").write_text("q1 0 e2 1\nq2 0 e1 1\n")
        done("init", tiny, "--current", "bm25")
        refused = done("init", other, "--current", "bm25", code=2).output
        assert "'tiny', not 'other'" in refused
        options = refused.split("to gate both, add ")[1].split()
        origin = ("--install", f"git+https://git.example.org/a/b.git@{'1f' * 20}")
        done("init", other, "--current", "bm25", *options, *origin)
        done("gate", other, *options[:2])
        done("gate", tiny)
        assert "other" in Path(options[3]).read_text()


class TestExplain:
    @tabled
    def test_explain_without_a_query_lists_the_worst_and_the_command_that_explains_it(self, tiny, name, options):
        """It asks for a and is judged to want d, which all entries match less well; q2 names what it wants."""
        queries = tiny / "queries.jsonl"
        queries.write_text(queries.read_text().replace('"q1"', json.dumps(name)))
        (tiny / "qrels.txt").write_text(f"{name} 0 e3 1\nq2 0 e1 1\n")
        shown = done("explain", tiny, "bm25", *options.split()).stdout
        assert next(line for line in shown.splitlines() if line.startswith((name, "q2"))).startswith(name)
        command = shown.split("steelyard ")[1].strip()
        assert options in command
        assert f"query {name}: words" in run(*shlex.split(command)).stdout

    def test_the_id_of_a_query_wins_over_a_configuration(self, tiny):
        queries = tiny / "queries.jsonl"
        queries.write_text(queries.read_text().replace('"q1"', '"fts"'))
        (tiny / "qrels.txt").write_text("fts 0 e2 1\n")
        assert "query fts: words" in run("explain", tiny, "fts").stdout

    @tabled
    def test_what_is_neither_a_query_nor_a_configuration_is_told_by_what_was_typed(self, tiny, word, told):
        """The data set is called as its folder is: this is what was typed, and no name in dataset.json."""
        mine = tiny.with_name("mine")
        shutil.copytree(tiny, mine)
        assert told in run("explain", mine, word).stderr
        assert run("compare", mine, "bm25", "fts").stdout.count("mine (all): 2 queries") == 1

    def test_explain_explains_what_is_used_today_where_none_is_named(self, tiny):
        assert "\nbm25\n" in run("explain", tiny, "q1").stdout
        (tiny / "dataset.json").write_text(json.dumps({**MANIFEST, "system": "fts"}))
        assert "\nfts\n" in run("explain", tiny, "q1").stdout
        assert "before: fts\n" in run("explain", tiny, "q1", "--against", "bm25").stdout
        assert "\nfts\n" in str(sy.load(tiny).explain("q1"))

    def test_init_leaves_weights_of_another_data_set_alone(self, tiny):
        """The default name is that of every data set in a folder; whoever names the file has it gated."""
        file = tiny.parent / "search-weights.json"
        replace(find_system("fts").config(10), provenance={"dataset": "other"}).save(file)
        begun = done("init", tiny, "--workflow", "a.yml").stdout
        assert "--current search-weights.json takes it" in begun
        named = ("--workflow", "b.yml", "--baseline", "b.json", "--current", file.name)
        assert f"gated with {file.name}" in done("init", tiny, *named).stdout
        replace(find_system("fts").config(10), provenance={"dataset": MANIFEST["name"]}).save(file)
        own = ("--workflow", "c.yml", "--baseline", "c.json")
        assert f"gated with {file.name}" in done("init", tiny, *own).stdout

    def test_a_table_that_cannot_be_written_costs_no_answer(self, tiny):
        (tiny / "qrels.txt").write_text("")
        found = done("compare", tiny, "bm25", "fts", "--out", "table.tex", code=2)
        assert not Path("table.tex").exists()
        assert "bm25" in found.stdout
        assert "name a .json" in found.stderr
        checked = sy.load(tiny).check()
        with pytest.raises(sy.ConfigError, match=r"name a \.json"):
            checked.save("check.tex")


COMMANDS = ["search {} red", "doctor {}", "check {}", "act {} a b", "init {}", "refresh {}"]


@pytest.mark.parametrize("command", COMMANDS)
@tabled
def test_a_password_in_an_address_is_never_said_again(command, address):
    told = done(*command.format(address).split(), code=2).output
    assert ("hun" in told, "PGPASSWORD or" in told) == (False, True)


def test_weights_of_two_models_are_refused_together(tiny, monkeypatch):
    """Else each message would name the other's model, in turns. The model of a file may be any text."""
    monkeypatch.setenv("COLUMNS", "400")
    files = {"minilm.json": "minilm", "other.json": "a\nb"}
    for file, model in files.items():
        find_system("vector").config(10, model).save(file)
    assert r"'minilm.json': 'minilm'; 'other.json': 'a\nb'" in done("compare", tiny, *files, code=2).stderr


# What strangers tried and found sound: filters, words that are syntax elsewhere, vectors that are none

WORDS, ODD = json.loads(Path(__file__).with_name("queries.json").read_text("utf-8")).values()
"""A query with the entry that holds its words; what no entry needs to answer, and no query may fail on."""


@pytest.fixture(scope="module")
def syntax(tmp_path_factory):
    """A vault of the texts, and the id of each."""
    names = {text: f"e{at:02}" for at, text in enumerate(dict.fromkeys(WORDS.values()))}
    folder = tmp_path_factory.mktemp("syntax")
    texts = write_set(folder / "set", [{"id": id_, "text": text} for text, id_ in names.items()])
    done("index", texts, folder / "db")
    return folder / "db", names


@pytest.mark.parametrize("system", ["plain", "echovault", "soleri", "moltnet", "spec_kit"])
def test_words_that_are_syntax_elsewhere_find_what_holds_them_and_only_no_words_are_a_fault(syntax, system):
    place, names = syntax
    for query, text in WORDS.items():
        hits = document("search", place, query, "--system", system)["hits"]
        assert names[text] in [(hit.get("entry") or hit)["id"] for hit in hits], (query, text)
    for query in ODD:
        done("search", place, "--system", system, "--json", "--", query)
    for query in ("", "   ", "\t"):
        done("search", place, query, "--system", system, code=2)


REQUIRED = [name for name, one in main.commands.items() if any(param.required for param in one.params)]
REQUIRED += ["tune mine", "export bm25", "record mine", "vault list", "vault act"]


@pytest.mark.parametrize("words", REQUIRED)
def test_a_forgotten_argument_is_a_mistake_and_nothing_runs(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run(*words.split())
    assert (outcome.exit_code, outcome.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert "Missing" in outcome.stderr
