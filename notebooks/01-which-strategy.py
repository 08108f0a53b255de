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
# From a data set to a comparison to a weights file. The data set is workshop, which comes with
# Steelyard: 512 memories of an invented team and its agents, and 200 queries, of which 152 have an answer. Write
# `sy.load("path/of/yours")` to ask the same questions about your memory; tables and dictionaries load as well.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
data.check()

# %% [markdown]
# ## Compare
#
# Every contender answers the same queries at the same limit. A contender is a system (`echovault`), a strategy
# (`rrf(bm25, vector)`), a weights file, a TREC run of the engine you use today, a search endpoint, or a function.
# The first metric is the primary one: each contender is tested against the baseline on it, with Holm's correction.

# %%
comparison = data.compare(
    "fts, bm25, vector, echovault, soleri, moltnet, rrf(bm25, vector), "
    "tiered=tiered(fts, min_results=10, then=rrf(fts, vector))",
    current="fts",
    timed=False,
)
comparison.to_frame().pivot(index="label", columns="metric", values="mean").round(4).sort_values(
    "nDCG@10", ascending=False
)

# %%
comparison.plot()

# %% [markdown]
# The intervals are wide: 152 queries tell good from bad, not good from slightly better. The table below
# shows what can be concluded; `detectable` is the smallest difference that these queries would detect.

# %%
comparison.tests().round(4)

# %% [markdown]
# ## Where do they disagree?
#
# Queries on which keywords and vectors differ most.

# %%
values = comparison.per_query()[["text", "bm25", "vector"]]
values.assign(difference=values["vector"] - values["bm25"]).sort_values("difference").round(3).iloc[
    [0, 1, 2, 3, -4, -3, -2, -1]
]

# %% [markdown]
# ## Why did one entry win?
#
# A ranking, signal by signal; the contributions of an entry add up to its score.

# %%
explanation = data.explain("q012", "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)", limit=5)
print(explanation)

# %%
explanation.plot()

# %% [markdown]
# ## Bring your own search
#
# Any function from a query to ids is a contender, and so is a run file or an HTTP endpoint. Here: the entries that
# hold the longest word of the query, newest first.


# %%
def longest_word(query):
    word = max(query.text.lower().split(), key=len)
    found = [entry for entry in data.dataset.entries if word in entry.text.lower()]
    return [entry.id for entry in sorted(found, key=lambda entry: (-(entry.created_at or 0), entry.id))]


data.compare(["bm25", longest_word], timed=False).tests().round(4)

# %% [markdown]
# ## Tune
#
# Each labelled query serves to choose and, left out in its turn, to prove. To keep the current weights is a good
# answer: it means that no gain is proven. `data.recommend()` asks the same of every family at once (notebook 02).

# %%
tuning = data.tune("rrf(bm25, vector)", timed=False)
tuning

# %%
tuning.plot("curve")

# %% [markdown]
# ## Take it away
#
# The file holds the strategy, how its retrievers search, and the evidence. The engine loads it. The
# vectors of this data set are recorded, so the query below is one of its own; a vault made by
# `steelyard index` can embed any text.

# %%
tuning.save_weights("../reports/notebook/search-weights.json")
data.search("q012", "../reports/notebook/search-weights.try.json", limit=5).to_frame()[["rank", "score", "id", "title"]].round(4)
