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
# Each of the five systems has a document, and in places its program does something else. `soleri` ranks as the
# document says, `soleri:shipped` as the program does. What do the departures cost?

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
PROGRAMS = ["soleri:shipped", "spec_kit:shipped", "spec_kit:js"]
PROGRAMS += ["echovault:shipped", "moltnet:shipped", "cortex_mem:shipped"]
for program in PROGRAMS:
    document = program.partition(":")[0]
    print(data.compare([document, program], current=document, timed=False).sentence)

# %% [markdown]
# ## All systems, all profiles
#
# The systems differ in what they search by, so this order is that of this data set alone. `docs/systems.md` has the
# same table on six collections.

# %%
documents = dict.fromkeys(program.partition(":")[0] for program in PROGRAMS)
comparison = data.compare([*documents, *PROGRAMS], current="soleri", timed=False)
table = comparison.to_frame()
table[table["metric"] == "nDCG@10"].set_index("label")[["mean", "low", "high"]].round(3).sort_values(
    "mean", ascending=False
)

# %%
comparison.plot()

# %% [markdown]
# ## Which kind of query pays for it?
#
# The mean difference of nDCG@10 by category, program less document.

# %%
values = comparison.per_query()
for program in PROGRAMS:
    values[f"{program} - document"] = values[program] - values[program.partition(":")[0]]
values.groupby("category")[[f"{program} - document" for program in PROGRAMS]].mean().round(3)

# %% [markdown]
# ## One query, both ways
#
# The query on which the program of spec-kit falls furthest behind its document.

# %%
worst = values["spec_kit:shipped - document"].idxmin()
print(data.explain(worst, "spec_kit", "spec_kit:shipped", limit=5))
