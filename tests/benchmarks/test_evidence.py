"""The evidence goes on where it stopped: a row is made once, and none is begun after the time is over."""

from evidence import Folder


def test_a_row_is_made_once_and_read_afterwards(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"gain": 0.25}

    for _ in range(2):
        assert Folder(tmp_path, minutes=1).row("rule-scifact-40", make) == {"gain": 0.25}
    assert made == [1]


def test_no_row_is_begun_after_the_time_but_those_there_are_read(tmp_path):
    Folder(tmp_path, minutes=1).row("there", lambda: {"gain": 0.5})
    over = Folder(tmp_path, minutes=-1)

    assert over.row("there", dict) == {"gain": 0.5}
    assert over.row("missing", dict) is None
