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
# A team runs one strategy, and somebody loses the vectors. The gate compares the change with a committed baseline,
# query by query. It answers *pass*, *fail* or *inconclusive*; in continuous integration `steelyard gate` does the same.

# %%
# %matplotlib inline
import steelyard_eval as sy

data, baseline = sy.demo(), "../reports/notebook/gate/baseline.json"
today = "weighted_sum(0.4*bm25, 0.6*vector, normalize=minmax)"
data.update_baseline({"search": today}, reason="what we run today", baseline=baseline)

failed = data.gate({"search": "bm25"}, baseline=baseline)
print(failed.sentence)

# %% [markdown]
# These queries lost most.

# %%
failed.worst()[["query", "text", "before", "now"]].round(3)

# %% [markdown]
# ## Nothing changed
#
# The baseline keeps the values, lists and scores of every query, sealed. Without a change every list and every score
# is the same to the last bit, and no statistics are needed.

# %%
data.gate(baseline=baseline).to_frame()[["label", "verdict", "check", "finding"]]

# %% [markdown]
# ## How far can the gate be trusted?
#
# How often would it notice a drop of nDCG@10 by the budget, .04, with these 152 labelled queries? Student's noncentral
# t distribution tells, from the spread of the differences that were seen. Without a drop it tells how often the gate
# fails for nothing.

# %%
(power,) = data.gate(baseline=baseline).result.table("gate_check")
print(f"caught {power['detection_rate']:.0%}, false alarms {power['false_alarms']:.0%} at most")

# %% [markdown]
# ## A change that passes
#
# SQLite finds the words instead of our own BM25. That touches many queries. The labels show that it costs less than
# the budget of .04.

# %%
passed = data.gate({"search": "weighted_sum(0.4*fts, 0.6*vector, normalize=minmax)"}, baseline=baseline)
print(passed)

# %% [markdown]
# ## A change that these labels cannot judge
#
# Another system finds as much, but in a few more lists it shows what was replaced above what took its place. That may
# be chance. The gate says so, and `--strict` makes it block.

# %%
unclear = data.gate({"search": "spec_kit:js"}, baseline=baseline)
print(unclear.sentence)
unclear.to_frame()[["verdict", "delta", "low", "high", "p_worse", "top10_changed"]].round(3)

# %% [markdown]
# ## Many small steps
#
# Each change may lose a little less than the gate can see. So every contender is also compared with an anchor, an older
# baseline that moves only when search got significantly better.

# %%
for row in unclear.result.table("gate_rule"):
    print(f"{row['side']}: {row['verdict']}, probability that it is worse {row['p_worse']:.3f}")

# %% [markdown]
# ## Take it away
#
# A weights file is a contender like any other. `steelyard init` writes the first baseline and a workflow that gates
# every pull request.

# %%
data.tune("moltnet", timed=False).save_weights("../reports/notebook/gate/search-weights.json")
data.gate({"search": "../reports/notebook/gate/search-weights.json"}, baseline=baseline).sentence
