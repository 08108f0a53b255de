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
# From a data set to a comparison to a weights file. The data set is the starter set that comes with
# Steelyard: 131 memories of a software team's agents and 59 graded queries. Put the path of your own
# folder in `DATASET` to ask the same question about your memory.

# %%
# %matplotlib inline
from pathlib import Path

from steelyard_eval.datasets import load
from steelyard_eval.demo import FAMILIES, starter

DATASET = starter()
OUT = Path("../reports/notebook")

dataset = load(DATASET)
print(f"{dataset.name}: {len(dataset.entries)} entries, {len(dataset.queries)} queries")
print("notices:", dataset.notices or "none")

# %% [markdown]
# ## What is in it
#
# A query has a text, judged entries, and sometimes a scope. Grades run from 0 (a tempting mistake) to 3.

# %%
import pandas as pd

titles = {entry.id: entry.title for entry in dataset.entries}
query = dataset.queries[0]
judged = sorted(dataset.qrels[query.id].items(), key=lambda item: (-item[1], item[0]))
print("query:", query.text)
pd.DataFrame([(grade, id_, titles[id_]) for id_, grade in judged], columns=["grade", "entry", "title"])

# %% [markdown]
# ## Compare
#
# Every configuration answers the same queries at the same limit. The first metric is the primary one:
# each configuration is tested against the baseline on it, with Holm's correction. Intervals are BCa
# bootstrap intervals over the queries.

# %%
from steelyard_eval.compare import compare
from steelyard_eval.recording.workspace import Workspace

space = Workspace.open(dataset)
labels = {text: name for name, text in FAMILIES.items()}
comparison = compare(
    dataset, strategies=list(FAMILIES.values()), labels=labels, baseline="fts", timed=False, workspace=space
)
comparison.to_frame().pivot(index="label", columns="metric", values="mean").round(4).sort_values("nDCG@10", ascending=False)

# %%
comparison.plot()

# %% [markdown]
# The intervals are wide: 59 queries tell good from bad, not good from slightly better. The table below
# says what can be concluded; `mde` is the smallest difference these queries would detect.

# %%
pd.DataFrame(comparison.record["comparisons"])[
    ["challenger", "delta", "low", "high", "p_holm", "wins", "ties", "losses", "mde", "verdict"]
].round(4)

# %% [markdown]
# ## Where do they disagree?
#
# Queries on which keywords and vectors differ most.

# %%
rows = [
    {"query": row["text"], "category": row["category"], "bm25": row["values"]["bm25"], "vector": row["values"]["vector"]}
    for row in comparison.record["per_query"]
]
disagree = pd.DataFrame(rows)
disagree["vector - bm25"] = disagree["vector"] - disagree["bm25"]
disagree.sort_values("vector - bm25").round(3).iloc[[0, 1, 2, 3, -4, -3, -2, -1]]

# %% [markdown]
# ## Why did one entry win?
#
# A score is a tree that adds up.

# %%
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system

config = find_system("plain").config(5, space.model).with_strategy(parse_strategy(FAMILIES["weighted sum"]))
result = space.searcher(config).search(query)
print(query.text, "->", result.hits[0].entry.title)
print(result.explain(result.hits[0].entry.id))

# %% [markdown]
# ## Tune
#
# The weights are searched on the training queries; the verdict comes from queries that played no part.
# *keep-default* is a good answer: it says that the gain is not proven.

# %%
from steelyard_eval.tune import tune

tuning = tune(dataset, strategy=FAMILIES["weighted sum"], workspace=space)
tuning

# %%
tuning.plot()

# %% [markdown]
# ## Take it away
#
# The file holds the strategy, how its retrievers search, and the evidence. The engine loads it. The
# vectors of this data set are recorded, so the query below is one of its own; a vault made by
# `steelyard index` can embed any text.

# %%
from steelyard.config import SearchConfig

tuning.config.save(OUT / "search-weights.json")
loaded = SearchConfig.load(OUT / "search-weights.json")
asked = dataset.queries[25]
hits = space.searcher(loaded).search(asked).hits
print("query:", asked.text)
pd.DataFrame(
    [(hit.rank, round(hit.score, 4), hit.entry.id, hit.entry.title) for hit in hits[:5]],
    columns=["rank", "score", "id", "title"],
)
