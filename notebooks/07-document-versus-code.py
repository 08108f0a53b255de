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
# # Document versus code
#
# Each of the five systems is described by its document, and its program does something else in places. A profile
# is one of the two: `soleri` is the document, `soleri:shipped` the program. The pages in `docs/` list every
# statement with the line of the program that departs from it; this notebook asks what the departures cost.

# %%
# %matplotlib inline
import pandas as pd

import steelyard_eval as sy

data = sy.demo()
PROFILES = {
    "soleri": ["shipped"],
    "spec_kit": ["shipped", "js"],
    "echovault": ["shipped"],
    "moltnet": ["shipped"],
    "cortex_mem": ["shipped"],
}

# %% [markdown]
# ## All systems, all profiles
#
# One table on one data set. The systems differ in what they search by, so the order below is that of this data set
# and of no other; `docs/systems.md` has the same table on six collections.

# %%
every = [name for system, others in PROFILES.items() for name in (system, *(f"{system}:{o}" for o in others))]
comparison = data.compare(every, current="soleri", timed=False)
table = comparison.to_frame()
table[table["metric"] == "nDCG@10"].set_index("label")[["mean", "low", "high"]].round(3).sort_values(
    "mean", ascending=False
)

# %%
comparison.plot()

# %% [markdown]
# ## What the program costs beside its document
#
# Each program against its own document, on the same queries. A negative difference means that the program ranks
# worse than its document promises.

# %%
pairs = {f"{system}:{other}": system for system, others in PROFILES.items() for other in others}
tests = pd.concat(
    data.compare([document, program], current=document, timed=False).tests().assign(document=document)
    for program, document in pairs.items()
)
tests.set_index("challenger")[["document", "delta", "low", "high", "p", "wins", "losses"]].round(3)

# %% [markdown]
# ## Which kind of query pays for it?

# %%
values = comparison.per_query()
differences = {program: values[program] - values[document] for program, document in pairs.items()}
pd.DataFrame(differences).groupby(values["category"]).mean().round(3)

# %% [markdown]
# ## One query, both ways
#
# The query on which the program of spec-kit falls furthest behind its document.

# %%
worst = differences["spec_kit:shipped"].idxmin()
print(data.explain(worst, "spec_kit", "spec_kit:shipped", limit=5))
