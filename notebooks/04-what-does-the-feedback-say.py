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
# A log of accepted and dismissed results costs nothing, and it misleads. People act on what they are shown, and the old
# weights decide what that is. The log of the demo is **simulated**, so the truth is known.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
learned = data.learn(labels=False)
print(learned.sentence)

# %% [markdown]
# The learner read no label here, so at most it offers a try. No log can tell an act that follows worth from one that
# follows a signal.

# %%
learned.to_frame().round(4)

# %% [markdown]
# ## Where people look, and what an act is worth
#
# People act more often on relevant entries at every place, and less often on all entries further down.

# %%
learned.plot(what="places")

# %% [markdown]
# The log also tells how much each kind of act is worth. A lift of 1 says nothing; below 1 it speaks against an entry.

# %%
for row in learned.result.table("acts"):
    print({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()})

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
# With labels the answer rests on more than acts. The labelled queries correct what the acts say of the others, so wrong
# acts cost precision and not truth. [docs/feedback.md](../docs/feedback.md) says how often that did harm.

# %%
decided = data.learn()
print(decided.sentence)
decided.to_frame().head(2).round(4)

# %% [markdown]
# Which signal do acts follow, besides the label?

# %%
decided.plot(what="follows")
