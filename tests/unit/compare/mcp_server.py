"""A small MCP server over stdio, by hand: it answers from a file, in the form that its first argument names.

    python mcp_server.py FORM lists.json

`lists.json` has the ids of every query by its text. Forms that are no answer are what a broken or hostile server
does.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

form, lists = ("", {}) if __name__ != "__main__" else (sys.argv[1], json.loads(Path(sys.argv[2]).read_text()))
SCHEMA = {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}}
SCHEMAS = {
    "renamed": ({"q": {}, "top_k": {}, "session": {}}, ["q"]),
    "demanding": ({"query": {}, "project": {}}, ["query", "project"]),
    "odd": ({"needle": {}}, ["needle"]),
}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def texts(*values):
    written = (value if isinstance(value, str) else json.dumps(value) for value in values)
    return {"content": [{"type": "text", "text": text} for text in written]}


def filler():
    """So many letters before the key that the command names."""
    return "x" * int(sys.argv[3])


def answer(arguments):
    text = arguments.get("query") or arguments.get("q") or arguments.get("needle")
    ids = lists[text][: arguments.get("limit", arguments.get("top_k", 10))]
    hits = [{"title": "no id", "id": id_, "score": 1.0} for id_ in ids]
    forms = {
        "structured": lambda: {**texts("see the structure"), "structuredContent": {"took": 1, "result": hits}},
        "items": lambda: texts(*hits),
        "prose": lambda: texts("".join(f"{at}. **{id_}**: some (score 0.1)\n" for at, id_ in enumerate(ids, 1))),
        "beginnings": lambda: texts({"memories": [{"id": id_[:12]} for id_ in ids]}),
        "titles": lambda: texts({"entities": [{"name": lists["titles"][id_]} for id_ in ids]}),
        "wrapped": lambda: texts({"success": True, "data": {"results": [{"entry": {"id": id_}} for id_ in ids]}}),
        "nothing": lambda: texts({"results": []}),
        "parts": lambda: texts(*["x"] * 60_000),
        "failing": lambda: {**texts("no such index"), "isError": True},
        "unclear": lambda: texts({"answer": "yes"}),
        "surrogate": lambda: texts('{"results": [{"id": "\\ud800"}]}'),
        "deep": lambda: texts("[" * 100_000 + "]" * 100_000),
        "echoing": lambda: {**texts(f"{filler()} {sys.argv[5]}" + " and so on" * 50), "isError": True},
    }
    return forms.get(form, lambda: texts({"results": hits}))()


def disturb():
    """What this form does before it answers a search."""
    if form == "silent":
        time.sleep(600)
    if form == "dying":
        sys.exit(f"{filler()} {sys.argv[5]} and" + " so on" * 329)
    if form == "gone":
        sys.exit("the index is locked")
    endless = {
        "flood": lambda: sys.stdout.write("{" + "x" * 2**20),
        "chatter": lambda: send(method="notifications/message", params={"data": "x" * 10_000}),
        "pinging": lambda: send(id="p", method="ping"),  # and reads no reply
    }
    while form in endless:
        endless[form]()
    if form == "cut":
        sys.stdout.write('{"jsonrpc": "2.0", "id": 3, \n')
    if form == "asking":
        send(id="a", method="ping")
        send(id="b", method="sampling/createMessage", params={})
        replies = [json.loads(sys.stdin.readline()) for _ in range(2)]
        assert replies[0]["result"] == {} and replies[1]["error"]["code"] == -32601
        print("a line that is printed by mistake")
    if form == "complaining":
        sys.stderr.write("x" * 2**22)


def serve():
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            if form == "family":
                command = [sys.executable, "-c", "import time; time.sleep(600)"]
                child = subprocess.Popen(command)
                Path(sys.argv[2] + ".pid").write_text(f"{os.getpid()} {child.pid}")
            send(id=message["id"], result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}})
        elif message["method"] == "tools/list" and "cursor" not in message["params"]:
            send(id=message["id"], result={"tools": [{"name": "save"}], "nextCursor": "2"})
        elif message["method"] == "tools/list":
            properties, required = SCHEMAS.get(form, (SCHEMA, ["query"]))
            schema = {"type": "object", "properties": properties, "required": required}
            send(id=message["id"], result={"tools": [{"name": "search", "inputSchema": schema}]})
        elif form == "refusing":
            send(id=message["id"], error={"code": -32602, "message": "bad arguments"})
        else:
            disturb()
            send(id=message["id"], result=answer(message["params"]["arguments"]))


if __name__ == "__main__":
    serve()
