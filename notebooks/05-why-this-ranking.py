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
# # Why this ranking?
#
# A mean tells which configuration is better. To know why, look at the queries on which two of them differ, and at
# one ranking signal by signal. The data set is workshop; `sy.load("path/of/yours")` takes yours.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
RRF = "rrf(bm25, vector)"

# %% [markdown]
# ## Which kind of query fails?
#
# Means of nDCG@10 by category. A configuration that is good on the whole may be poor where it matters to you.

# %%
comparison = data.compare(["bm25", "vector", "echovault", RRF], current="bm25", timed=False)
values = comparison.per_query()
values.groupby("category").mean(numeric_only=True).round(3)

# %% [markdown]
# ## Which queries does it lose?
#
# The queries on which EchoVault falls furthest behind the vectors that it could have used.

# %%
lost = values.assign(loss=values["vector"] - values["echovault"]).sort_values("loss", ascending=False)
lost[["text", "category", "vector", "echovault", "loss"]].round(3).head(6)

# %% [markdown]
# ## One query, signal by signal
#
# The first of them. EchoVault searches by keywords first, and embeds the query only when they find too little. The
# second table is what the vectors say, and the last one lists what moved, and by which signal.

# %%
worst = lost.index[0]
explanation = data.explain(worst, "echovault", "vector", limit=5)
print(explanation)

# %%
explanation.plot()

# %% [markdown]
# ## Where is the entry that should be there?
#
# Any entry can be asked about, ranked or not: its place and its signals under both configurations.

# %%
grades = data.dataset.qrels[worst]
wanted = max(sorted(grades), key=grades.get)
print(data.explain(worst, "echovault", "vector", entry=wanted, limit=3))

# %% [markdown]
# ## Does a fusion repair it?
#
# Both lists, fused by their ranks, on the same query and on all of them.

# %%
print(data.explain(worst, "echovault", RRF, limit=5))

# %%
comparison.tests().round(4)

# %% [markdown]
# A single query explains; only all of them decide. The interval of the difference above is what one may act on.
