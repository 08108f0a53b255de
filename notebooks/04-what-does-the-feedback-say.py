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
# # What does the feedback say?
#
# A log of accepted and dismissed results is cheap, and it misleads: people act on what they are shown, and they are
# shown what the old weights put on top. This notebook learns from such a log, and asks how far that can be believed.
# The log of the demo is **simulated**, so the truth is known.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()

# %% [markdown]
# ## What the log suggests
#
# The learner reads no label here, so at most it offers a try: no log tells an act that follows worth from one that
# follows a signal.

# %%
learned = data.learn(labels=False)
print(learned.sentence)
learned.to_frame().round(4)

# %% [markdown]
# ## Where people look, and what an act is worth
#
# Relevant entries are acted upon more often at every place, and all entries less often further down. How much each
# kind of act is worth is learned from the log: a lift of 1 says nothing, below 1 it speaks against an entry.

# %%
learned.plot(what="places")

# %%
import pandas as pd

pd.DataFrame(learned.result.table("acts")).round(2)

# %% [markdown]
# ## Is it true?
#
# The acts were simulated from labels, so labels can check what was learned without them.

# %%
current = learned.result.rows[0].strategy
checked = data.compare({"learned": learned.attempt, "current": current}, current="current", timed=False)
checked.tests()[["challenger", "delta", "low", "high", "p"]].round(4)

# %% [markdown]
# ## Labels decide, acts sharpen
#
# With the labels of a third of the queries the answer rests on more than acts. What acts say of the other queries is
# corrected by the labelled ones, so wrong acts would cost precision and not truth. [docs/feedback.md](../docs/feedback.md)
# says how often that did harm in simulations. (Here all queries are labelled, so that the rest of the labels is left out.)

# %%
from dataclasses import replace

from steelyard_eval.learn import learn

third = {query.id for query in data.dataset.queries[::3]}
labels = {query: grades for query, grades in data.dataset.qrels.items() if query in third}
decided = learn(replace(data.dataset, qrels=labels))
print(decided.sentence)
decided.to_frame().head(2).round(4)

# %% [markdown]
# Which signal do acts follow, besides the label?

# %%
decided.plot(what="follows")
