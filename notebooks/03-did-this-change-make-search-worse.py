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
# # Did this change make search worse?
#
# A team runs one strategy and keeps changing it. The gate compares each change with a committed baseline, query by
# query, and answers *pass*, *fail* or *inconclusive*. In continuous integration the same is `steelyard gate`.

# %%
# %matplotlib inline
import tempfile
from pathlib import Path

import pandas as pd

import steelyard_eval as sy
from steelyard.systems import find_system

pd.set_option("display.max_colwidth", 60)
data = sy.demo()
baseline = Path(tempfile.mkdtemp()) / "baseline.json"

# %% [markdown]
# ## What is there today
#
# The baseline keeps the values, lists and scores of every query, sealed. It says why it was written.

# %%
today = "weighted_sum(0.4*bm25, 0.6*vector, normalize=minmax)"
data.update_baseline({"search": today}, because="what we run today", baseline=baseline)
data.gate(baseline=baseline).to_frame()[["label", "verdict", "check", "finding"]]

# %% [markdown]
# Nothing changed, so every list and every score has to be the same to the last bit. No statistics are needed.
#
# ## How far can the gate be trusted?
#
# How often would it notice a drop of nDCG@10 by the budget, .04, with these 152 labelled queries? Student's noncentral t
# distribution tells, from the spread of the differences that were seen or of a typical change. The same with no drop
# tells how often it cries wolf.

# %%
(power,) = data.gate(baseline=baseline).result.table("gate_check")
print(f"caught {power['detection_rate']:.0%}, false alarms {power['false_alarms']:.0%} at most")

# %% [markdown]
# ## A change that passes
#
# Words are found by SQLite instead of by our own BM25. That touches many queries, and the labels show that it costs
# less than the budget of .04.

# %%
passed = data.gate({"search": "weighted_sum(0.4*fts, 0.6*vector, normalize=minmax)"}, baseline=baseline)
print(passed)

# %% [markdown]
# ## A change that fails
#
# Somebody loses the vectors. The queries that lost most come with both rankings.

# %%
failed = data.gate({"search": "bm25"}, baseline=baseline)
print(failed.sentence)
failed.worst()[["query", "text", "before", "now"]].round(3)

# %% [markdown]
# ## A change that these labels cannot judge
#
# Another system finds as much, but shows what was replaced above what took its place in a few more lists. That may be
# chance. The gate says so; whether that blocks is the team's choice (`--strict`).

# %%
unclear = data.gate({"search": "spec_kit:js"}, baseline=baseline)
print(unclear.sentence)

# %%
changes = {"passed": passed, "failed": failed, "unclear": unclear}
pd.concat({name: found.to_frame() for name, found in changes.items()})[
    ["verdict", "delta", "low", "high", "p_worse", "top10_changed"]
].round(3).droplevel(1)

# %% [markdown]
# ## Many small steps
#
# Each change may lose a little less than the gate can see. So every contender is also compared with an anchor, an older
# baseline that moves only when search got significantly better.

# %%
pd.DataFrame(unclear.result.table("gate_rule"))[["side", "verdict", "composite", "p_worse", "upper"]].round(3)

# %% [markdown]
# ## Take it away
#
# A weights file is a contender like any other. `steelyard init` writes the first baseline and a workflow that gates
# every pull request.

# %%
find_system("moltnet").config(10).save("../reports/notebook/search-weights.json")
data.gate({"search": "../reports/notebook/search-weights.json"}, baseline=baseline).sentence
