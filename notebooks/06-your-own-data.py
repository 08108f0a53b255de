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
# # Your own data
#
# From a table of memories to a recommendation, an exported file, and a gate in continuous integration. Here the
# table is made of workshop, the data set of the package; yours comes from a database, a CSV file or a folder.

# %%
# %matplotlib inline
from pathlib import Path

import pandas as pd

import steelyard_eval as sy

source = sy.demo().dataset

# %% [markdown]
# ## Three tables
#
# What is searched, what is asked, and what is relevant. Only `id` and `text` are needed; further columns (`title`,
# `created_at`, `tags`, `importance`, ...) become signals.

# %%
asked = [query for query in source.queries if query.answerable]
entries = pd.DataFrame(
    {"id": e.id, "title": e.title, "text": e.text, "tags": list(e.tags), "importance": e.importance}
    for e in source.entries
)
queries = pd.DataFrame({"id": query.id, "text": query.text} for query in asked)
labels = pd.DataFrame(
    {"query": query.id, "entry": entry, "grade": grade}
    for query in asked
    for entry, grade in source.qrels[query.id].items()
)
entries.head(3)

# %%
data = sy.load(entries, queries, labels)
data.check()

# %% [markdown]
# No vectors came with the tables, so an LSA model is fitted on the texts, and the results say so. With an extra,
# `embedder="minilm-int8"` embeds them locally; `vectors=` takes those you have.

# %% [markdown]
# ## Use this, try this, or keep what you have
#
# `current` is what you run today; here plain BM25.

# %%
found = data.recommend("bm25", timed=False)
print(found.sentence)

# %%
found.to_frame()[["label", "mean", "gain", "gain_low", "gain_high"]].round(3).head(6)

# %% [markdown]
# ## Take it away
#
# The weights file, read by the engine and by `steelyard search --weights`.

# %%
folder = Path("../reports/notebook")
[path.name for path in found.save_weights(folder / "search-weights.json")]

# %% [markdown]
# ## Into another engine
#
# Not every strategy can be said in every engine, and an export that would lose something is refused with a strategy
# that can be said. So tune one of those. OpenSearch fuses lists by a weighted sum of normalised scores.

# %%
tuning = data.tune("weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)", timed=False)
tuning.save_weights(folder / "opensearch-weights.json")
print(data.export(folder / "opensearch-weights.json", "opensearch"))

# %% [markdown]
# ## Keep it that way
#
# A baseline remembers the values of every query. From then on the gate says whether a change made search worse;
# `steelyard init` writes the same with a workflow for GitHub.

# %%
data.update_baseline("bm25", baseline=folder / "baseline.json", because="first baseline")
print(data.gate(baseline=folder / "baseline.json"))
