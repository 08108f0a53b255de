"""A data set in a folder, from records, and lines of sessions: every test that needs a small one writes it so."""

import json


def contents(folder):
    """What stands in every file, by its path."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_lines(path, records):
    """The file, whose folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def write_set(folder, corpus, queries=(), qrels="", **about):
    """The folder; of texts the entries are m1, m2 and so on, and the queries q1, q2."""
    for name, rows in (("corpus", corpus), ("queries", queries)):
        named = ({"id": f"{'mq'[name == 'queries']}{at}", "text": row} for at, row in enumerate(rows, 1))
        records = [own if isinstance(row, str) else row for row, own in zip(rows, named, strict=True)]
        write_lines(folder / f"{name}.jsonl", records)
    (folder / "qrels.txt").write_text(qrels)
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", **about}))
    return folder


def told(base, who, content):
    """A line of a session of Claude Code."""
    return {**base, "type": who, "message": {"role": who, "content": content}}


def called(base, key, name, args, answer, *more):
    """The lines of a call of a tool, with what was said beside it, and of its answer."""
    call = {"type": "tool_use", "id": key, "name": name, "input": args}
    result = {"type": "tool_result", "tool_use_id": key, "content": answer}
    return [told(base, "assistant", [call, *more]), told(base, "user", [result])]
