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
# # Which strategy is right for this memory?
#
# Four strategies fuse keywords and vectors, and five systems use them. Each answers the same 152 queries of
# workshop, the data set that comes with Steelyard. `sy.load("path/of/yours")` asks the same about your memory.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
comparison = data.compare(
    {
        "weighted sum": "weighted_sum(0.4*bm25, 0.6*vector, normalize=minmax)",
        "RRF": "rrf(bm25, vector)",
        "tiered": "tiered(bm25, min_results=10, then=rrf(bm25, vector))",
        "layered": "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.3)",
        **{name: name for name in ("soleri", "spec_kit", "echovault", "moltnet", "cortex_mem")},
    },
    current="bm25",
    timed=False,
)
print(comparison.sentence)

# %%
table = comparison.to_frame().pivot(index="label", columns="metric", values="mean")
table[["nDCG@10", "R@10", "RR@10"]].round(3).sort_values("nDCG@10", ascending=False)

# %%
comparison.plot()

# %% [markdown]
# The lines are 95% intervals. Where two overlap widely, these queries cannot tell the two apart.
#
# ## What is proven?
#
# Each strategy is tested against bm25, and Holm's correction allows for nine tests. `detectable` is the smallest
# difference that these queries find four times in five.

# %%
comparison.tests().round(4)

# %% [markdown]
# ## Where do keywords and vectors disagree?
#
# These are the queries on which they differ most.

# %%
values = data.compare("bm25, vector", timed=False).per_query()[["text", "bm25", "vector"]]
values.assign(difference=values["vector"] - values["bm25"]).sort_values("difference").round(3).iloc[
    [0, 1, 2, 3, -4, -3, -2, -1]
]

# %% [markdown]
# ## Why did one entry win?
#
# A ranking, signal by signal. The contributions of an entry add up to its score.

# %%
explanation = data.explain("q012", "weighted_sum(0.4*bm25, 0.6*vector, normalize=minmax)", limit=5)
print(explanation)

# %%
explanation.plot()

# %% [markdown]
# ## Compare your own search
#
# Any function from a query to ids can be compared. So can a run file or an HTTP endpoint. This one finds the entries
# that hold the longest word of the query, newest first.


# %%
def longest_word(query):
    word = max(query.text.lower().split(), key=len)
    found = [entry for entry in data.dataset.entries if word in entry.text.lower()]
    return [entry.id for entry in sorted(found, key=lambda entry: (-(entry.created_at or 0), entry.id))]


data.compare(["bm25", longest_word], timed=False).tests().round(4)

# %% [markdown]
# ## Take the answer away
#
# `recommend` searches all strategies and weights, and proves its choice on queries that did not choose it. The file
# holds the strategy, how its retrievers search, and the evidence. The engine loads it, and notebook 02 explains it.

# %%
recommended = data.recommend(timed=False)
print(recommended.sentence)
recommended.save_weights("../reports/notebook/search-weights.json")
data.search("q012", "../reports/notebook/search-weights.json", limit=5).to_frame()[["rank", "score", "id", "title"]].round(4)
