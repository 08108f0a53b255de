"""A step in a terminal can be done by copying it."""

from steelyard_eval.common.answer import below_in_markdown, in_html, in_terminal, place_of_choice, step_in_terminal

LONG = f"steelyard recommend /home/{'deep/' * 30}notes --current 'rrf(bm25, vector)'"


def test_a_command_stays_on_one_line_whatever_its_length(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert step_in_terminal({"what": "decide by these labels", "command": LONG}) == (
        f"decide by these labels:\n    {LONG}"
    )
    assert step_in_terminal({"what": "", "command": LONG}) == f"    {LONG}"


def test_words_alone_are_folded_and_short_steps_stay_on_a_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert step_in_terminal({"what": "search", "command": "steelyard search"}) == "search: steelyard search"
    assert max(map(len, step_in_terminal({"what": "words " * 30, "command": ""}).split("\n"))) <= 60


def test_a_half_life_is_read_in_four_digits():
    said = {
        "sentence": "Try.",
        "steps": [],
        "formula": "weighted_sum(1*fts, 0.2*recency(half_life=68.96756393652842h))",
    }
    for face in (in_terminal, below_in_markdown, in_html):
        assert "half_life=68.97h" in str(face(said))


def test_a_choice_that_is_not_the_first_row_says_what_decided():
    rows = [{"label": "soleri, tuned"}, {"label": "weighted sum, tuned"}]
    record = {
        "verdict": "try",
        "leaderboard": rows,
        "chosen": {"strategy": "b"},
        "configurations": [
            {"label": "soleri, tuned", "strategy": "a"},
            {"label": "weighted sum, tuned", "strategy": "b"},
        ],
    }
    assert place_of_choice(record).startswith("What was chosen is row 2 here: where labels are few, ")
    assert "2 here: rows" in place_of_choice(record | {"verdict": "ship"})
    assert place_of_choice(record | {"verdict": "keep"}) == ""
    assert place_of_choice(record | {"leaderboard": rows[::-1]}) == ""
