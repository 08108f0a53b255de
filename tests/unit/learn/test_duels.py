"""The table of interleaved rankings."""

from steelyard_eval.learn.learned_text import duelled


def duel(other, wins, ties, losses, preferred, p):
    return {"other": other, "wins": wins, "ties": ties, "losses": losses, "preferred": preferred, "p": p}


def test_duels_are_rows_with_the_share_that_preferred_where_any_decided():
    rows = duelled(
        [duel("bm25", 6, 1, 2, 0.75, 0.2891), duel("", 0, 4, 0, None, 1.0), duel("fts", 0, 0, 0, None, 1.0)]
    )
    assert [line.split() for line in rows.splitlines()[2:]] == [
        ["bm25", "6/1/2", "75%", "0.2891"],
        ["all", "together", "0/4/0", "-", "1.0000"],
    ]
    assert duelled([duel("fts", 0, 0, 0, None, 1.0)]) == "no list of this log was interleaved"
