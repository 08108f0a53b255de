"""Kills a server between two of its system calls, or wherever it is, while a client searches and reports acts.

What was acknowledged has to be in the log: the list of every search that was answered, and every act that was.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

ASKED = "how do we rotate keys"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "killed", "version": "1"}}
MOST = 12  # searches that are answered before a kill, each with an act
LATEST = 0.02  # seconds after a request within which the kill falls


def forked(vault, log):
    """A server in a child of ours, which has imported everything: its number, and both ends of its pipes."""
    from steelyard_eval.cli.main import main

    down, up = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(down[0], 0)
            os.dup2(up[1], 1)
            os.closerange(3, 64)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")  # those of the parent may be of other files
            main(["serve", str(vault), "--system", "bm25", "--log", str(log)])
        finally:
            os._exit(3)
    os.close(down[0])
    os.close(up[1])
    return child, os.fdopen(down[1], "wb", buffering=0), os.fdopen(up[0], "rb")


class Asking:
    def __init__(self, to, back):
        self.to, self.back, self.number = to, back, 0
        self.lists, self.acts = set(), set()
        self.answer(self.send("initialize", HELLO))
        self.to.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def send(self, method, params):
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.to.write(json.dumps(request).encode() + b"\n")
        return self.number

    def call(self, tool, **arguments):
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, number):
        for raw in self.back:
            message = json.loads(raw) if raw.endswith(b"\n") else {}
            if message.get("id") == number:
                return message["result"]
        return None

    def found(self, answer):
        """Note a search that was answered; its list, and its first entry."""
        document = json.loads(answer["content"][0]["text"])
        self.lists.add(document["query_id"])
        return document["query_id"], document["hits"][0]["id"]

    def acted(self, query_id, entry):
        """Report an act, and note that it was acknowledged."""
        answer = self.answer(self.call("memory_feedback", query_id=query_id, id=entry, action="used"))
        if answer is not None and not answer.get("isError"):
            self.acts.add((query_id, entry))


def disturb(vault, log, draw):
    child, to, back = forked(vault, log)
    with to, back:
        asking = Asking(to, back)
        for turn in range(draw.randrange(MOST)):
            asking.acted(*asking.found(asking.answer(asking.call("memory_search", query=f"{ASKED} {turn}"))))
        # One request is under way, of either kind, when the kill falls.
        last, begin = asking.call("memory_search", query=ASKED), time.perf_counter()
        if draw.random() < 0.5 and (answer := asking.answer(last)):
            query_id, entry = asking.found(answer)
            last = asking.call("memory_feedback", query_id=query_id, id=entry, action="used")
            begin, acting = time.perf_counter(), (query_id, entry)
        else:
            acting = None
        wait = draw.random() * LATEST
        while time.perf_counter() - begin < wait:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        answer = asking.answer(last)
        if answer is not None:
            asking.acts.add(acting) if acting else asking.found(answer)
    return asking


def lacking(log, lists, acts):
    """What was acknowledged and is not in the log, and how many lines are broken."""
    shown, done, broken = set(), set(), 0
    for raw in Path(log).read_bytes().split(b"\n"):
        try:
            one = json.loads(raw) if raw else {}
        except ValueError:
            broken += 1
            continue
        if "user_query" in one:
            shown.add(one["query_id"])
        done |= {(one["query_id"], act["object_id"]) for act in one.get("actions", ())}
    return [*(lists - shown), *(acts - done)], broken
