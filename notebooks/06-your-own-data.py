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
# Three tables are enough: what is searched, what is asked, and what is relevant. Here they are made of workshop, the
# data set of the package. Yours come from a database, a CSV file or a folder; data frames work as well.

# %%
# %matplotlib inline
import steelyard_eval as sy

source = sy.demo().dataset
asked = [query for query in source.queries if query.answerable]
entries = [{"id": e.id, "title": e.title, "text": e.text, "tags": list(e.tags)} for e in source.entries]
queries = [{"id": query.id, "text": query.text} for query in asked]
labels = {query.id: dict(source.qrels[query.id]) for query in asked}

data = sy.load(entries, queries, labels)
found = data.recommend("bm25", timed=False)
print(found.sentence)

# %% [markdown]
# `"bm25"` is what you run today. Only `id` and `text` are needed; further columns (`title`, `created_at`, `tags`,
# `importance`, ...) become signals.

# %%
data.check()

# %% [markdown]
# No vectors came with the tables, so an LSA model is fitted on the texts, and the results say so. With an extra,
# `embedder="minilm-int8"` embeds them locally; `vectors=` takes those you have.

# %%
found.to_frame()[["label", "mean", "gain", "gain_low", "gain_high"]].round(3).head(6)

# %% [markdown]
# ## Take it away
#
# The engine and `steelyard search --weights` read the weights file.

# %%
folder = "../reports/notebook/own"
[path.name for path in found.save_weights(f"{folder}/search-weights.json")]

# %% [markdown]
# ## Into another engine
#
# Not every strategy can be said in every engine, and an export that would lose something is refused with a strategy
# that can be said. So tune one of those. OpenSearch fuses lists by a weighted sum of normalised scores.

# %%
tuning = data.tune("weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)", timed=False)
tuning.save_weights(f"{folder}/opensearch-weights.json")
print(data.export(f"{folder}/opensearch-weights.json", "opensearch"))

# %% [markdown]
# ## Keep it that way
#
# A baseline remembers the values of every query. From then on the gate says whether a change made search worse;
# `steelyard init` writes the same with a workflow for GitHub.

# %%
data.update_baseline("bm25", baseline=f"{folder}/baseline.json", reason="first baseline")
print(data.gate(baseline=f"{folder}/baseline.json"))
