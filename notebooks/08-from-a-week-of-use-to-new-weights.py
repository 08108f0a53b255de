# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a week of use to new weights
#
# Agents search a memory all day, and hardly ever say what helped. Their sessions lie on disk, though: what was shown,
# and which entries were then opened or cited. This notebook reads a week of such sessions, watches the evidence grow,
# and ends with new weights. The sessions are **made by us** and marked as simulated; `--from transcripts` reads your own
# in the same way.

# %%
# %matplotlib inline
import gzip
import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown

import steelyard_eval as sy

place = Path("../reports/notebook/week")
shutil.rmtree(place, ignore_errors=True)
shutil.copytree(sy.demo().dataset.path, place / "mine", ignore=shutil.ignore_patterns("feedback*"))
about = json.loads((place / "mine" / "dataset.json").read_text())
about["files"].pop("feedback.jsonl.gz", None)
(place / "mine" / "dataset.json").write_text(json.dumps(about))
data = sy.load(place / "mine")

# %% [markdown]
# ## A week of sessions
#
# In use is a mix of keywords and vectors that somebody once typed in. An agent asks `memory_search`, opens entries and
# cites them. Here are 600 searches of one week, of 50 sessions. One call of the tool, as Claude Code keeps it:

# %%
today = "weighted_sum(0.8*bm25, 0.2*vector, normalize=minmax)"
sessions = Path("sessions.jsonl.gz")
with gzip.open(sessions, "rt", encoding="utf-8") as lines:
    searched = next(line for line in lines if "tool_use" in line)
json.loads(searched)["message"]["content"]

# %% [markdown]
# ## What is read of them
#
# Only ids, places, scores and acts are written. The texts of the queries stay in memory, where they are needed to
# search again. A line of the log that `learn` writes, and what it found in all:

# %%
decided = data.learn(source=f"transcripts:{sessions}", current=today)
log = (place / "mine" / "feedback.transcripts.jsonl").read_text().splitlines()
first = json.loads(next(line for line in log if '"actions":[{' in line))
hidden = ("query_key", "search", "client_id", "policy", "query_id")  # hashes under a key of your own
{name: value if name != "hits" else value[:2] for name, value in first.items() if name not in hidden}

# %%
print(*decided.notices[:2], sep="\n")

# %% [markdown]
# ## Evidence, day by day
#
# What would the learner have said on the first, the fourth and the last evening? The bars are distinct queries, which
# decide how sure one can be; the line is the gain of the weights that come nearest, with two errors on both sides,
# before any label is read.

# %%
with gzip.open(sessions, "rt", encoding="utf-8") as lines:
    dated = [(json.loads(line)["timestamp"][:10], line) for line in lines]
rows = []
for day in sorted({day for day, _ in dated})[::3]:  # each takes as long as one `steelyard learn`
    until = place / f"{day}.jsonl"
    until.write_text("".join(line for of, line in dated if of <= day), encoding="utf-8")
    log = place / f"log-{day}.jsonl"
    learned = data.learn(log, source=f"transcripts:{until}", current=today, labels=False)
    gains = [row for row in learned.result.table("gains") if row["imputed"] == 0.5]
    view = {"gain": gains[0]["gain_by"], "error": gains[0]["error"]} if gains else {"gain": 0.0, "error": 0.0}
    facts = next(said.facts for said in learned.result.notices if said.key == "learn_log")
    rows.append({"day": day, "queries": facts["distinct"], **view})
evidence = pd.DataFrame(rows)

# %%
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
top.bar(evidence["day"], evidence["queries"], color="0.6")
top.set_ylabel("distinct queries")
bottom.errorbar(evidence["day"], evidence["gain"], yerr=2 * evidence["error"], marker="o", capsize=4)
bottom.axhline(0, color="0.5", linewidth=1)
bottom.set_ylabel("gain, nDCG@10")
bottom.tick_params(axis="x", rotation=30)
figure.tight_layout()

# %% [markdown]
# Repeated questions add little: the bars flatten long before the week is over. What settles it are other questions, or
# labels of some of these.
#
# ## Labels decide
#
# With labels of 15 queries or more they decide, and the acts of the week sharpen them. What is written goes beside what
# is in use, and replaces nothing.

# %%
Markdown(decided.sentence)

# %%
files = decided.save_weights(place / "search-weights.json")
[path.name for path in files]

# %% [markdown]
# A line of cron does all of this every week: import again, `learn --from transcripts`, `recommend`, `gate`.
# [docs/loop.md](../docs/loop.md#every-week-by-cron) has it.
