"""What serving costs beside the search itself, from the call of a tool to its answer, with a log.

    python tests/benchmarks/serving.py

prints medians in milliseconds: the search alone, what comes on top inside the server, and the round trip of a
client over pipes. On a machine that others use, `chrt -f 5` before it keeps their turns out of the figures.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"
ROUNDS, LIMIT = 3, 5
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def serve(words):
    """A server that notes when lines came and answers went, and how long searches took; printed at its end."""
    from steelyard.live.search import Searcher
    from steelyard_eval.cli.main import main
    from steelyard_eval.extensions.serve.server import MemoryServer

    own, took, call, search = [], [], MemoryServer._call, Searcher.search

    async def calling(self, *words):
        begin = time.perf_counter()
        answer = await call(self, *words)
        own.append(time.perf_counter() - begin)
        return answer

    def searching(self, *words, **options):
        begin = time.perf_counter()
        found = search(self, *words, **options)
        took.append(time.perf_counter() - begin)
        return found

    MemoryServer._call, Searcher.search = calling, searching
    main(["serve", *words], standalone_mode=False)
    on_top = [whole - one for whole, one in zip(own[-len(took) :], took, strict=True)]
    print(json.dumps({"search": 1e3 * median(took), "on_top": 1e3 * median(on_top)}), file=sys.stderr)


def ask(process, number, method, params):
    """One request and its answer; the seconds between."""
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
    begin = time.perf_counter()
    process.stdin.write(line)
    process.stdin.flush()
    process.stdout.readline()
    return time.perf_counter() - begin


def measure(folder):
    from steelyard_eval.datasets import load
    from steelyard_eval.vaults import index_dataset

    data = load(STARTER)
    index_dataset(data, str(folder / "memory.db"), "lsa")
    words = [str(folder / "memory.db"), "--log", str(folder / "log.jsonl")]
    pipe = subprocess.PIPE
    command = [sys.executable, __file__, "--child", *words]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        ask(process, 0, "initialize", HELLO)
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        texts = [query.text for query in data.queries] * ROUNDS
        calls = [{"name": "memory_search", "arguments": {"query": text, "limit": LIMIT}} for text in texts]
        trips = [ask(process, number, "tools/call", call) for number, call in enumerate(calls, 1)]
        process.stdin.close()
        own = json.loads(process.stderr.read().splitlines()[-1])
    return {"searches": len(trips), **own, "round_trip": 1e3 * median(trips)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        serve(sys.argv[2:])
    else:
        with tempfile.TemporaryDirectory() as made:
            print(json.dumps(measure(Path(made))))
