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
# The learner reads no label here. Its lists have to be those that were shown; the gain has to hold however much an
# entry that nobody saw is credited with.

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
learned.plot()

# %%
import pandas as pd

pd.DataFrame(learned.record["acts"]["kinds"]).round(2)

# %% [markdown]
# ## Is it true?
#
# The acts were simulated from labels, so labels can check what was learned without them.

# %%
current, chosen = (learned.record[name]["strategy"] for name in ("current", "chosen"))
checked = data.compare({"learned": chosen, "current": current}, baseline="current", timed=False).record
pd.DataFrame(checked["comparisons"])[["challenger", "delta", "low", "high", "p"]].round(4)

# %% [markdown]
# ## Simpler rules
#
# Counting clicks keeps the weights near those that were shown. The others correct for places, with less care.

# %%
pd.DataFrame(learned.record["rivals"]).round(4)

# %% [markdown]
# ## When it refuses
#
# With the labels of 59 queries pooled the answer rests on more than clicks. Without 150 distinct queries, or where
# acts do not tell entries apart, nothing is decided: [docs/feedback.md](../docs/feedback.md) says when, and how often
# learning did harm in simulations.

# %%
pooled = data.learn()
print(pooled.sentence)
