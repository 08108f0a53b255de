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
# # Which weights, and do they hold?
#
# EchoVault merges keywords and vectors as 0.3 and 0.7. Tuning chooses other weights on the labelled queries, and
# proves them on queries that did not choose.

# %%
# %matplotlib inline
import steelyard_eval as sy

data = sy.demo()
tuned = data.tune("echovault", timed=False)
print(tuned.sentence)

# %%
tuned.plot("curve")

# %% [markdown]
# The curve is exact: it shows every change of nDCG@10 along the weight, on the queries that tuning may see.

# %% [markdown]
# ## By hand
#
# The explorer needs a live kernel. Every slider is a weight. The grey band of its curve is where nothing changes, the
# blue band is the best. Arrow keys step, *pin* keeps a setting, *adopt* writes a weights file.

# %%
explorer = data.explore()
explorer

# %% [markdown]
# Labels decide what holds. This is how you give them: one query, all that was found for it, a key for each grade. The
# contenders are hidden, and the answers are files.

# %%
data.judge(["bm25", "rrf(bm25, vector)"], out="../reports/notebook/judgments")

# %% [markdown]
# ## What the chosen weights show, and what they keep
#
# The weights fit these queries. The promise is what is left of the gain on queries that did not choose: each fifth of
# the queries is judged by a choice made on the other four.

# %%
result = tuned.result
today, promise = result.row(result.provenance.baseline), result.decision.gain
shown = result.choice.means[result.metric].mean - today.means[result.metric].mean
print(f"these queries show {shown:+.3f}")
print(f"the promise is     {promise.mean:+.3f} [{promise.low:+.3f}, {promise.high:+.3f}]")
print(result.decision.verdict)

# %% [markdown]
# The split `test` had no part in that, so it can be measured on:

# %%
held_out = data.compare({"tuned": tuned.config, "echovault": "echovault"}, split="test", timed=False)
held_out.to_frame()[["label", "metric", "mean", "low", "high"]].round(3).head(4)

# %% [markdown]
# ## Is it one good query?
#
# The gain, query by query, over what is used today.

# %%
tuned.plot("queries")

# %% [markdown]
# ## In scikit-learn
#
# `signal_frame` has a row for each query and candidate, and `FusionTuner` is an estimator. So scikit-learn's own searches
# work. The groups keep queries whole.

# %%
from sklearn.model_selection import GridSearchCV, GroupKFold

X, y, groups = data.signal_frame()
strategies = [
    "rrf(bm25, vector, k=10)",
    "rrf(bm25, vector, k=60)",
    "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)",
]
search = GridSearchCV(sy.FusionTuner(), {"strategy": strategies}, cv=GroupKFold(5)).fit(X, y, groups=groups)
print(search.best_estimator_.strategy_)
print(f"out of fold: {search.best_score_:.3f}")

# %% [markdown]
# Would a learned model reach more? `tuned.report` and `--ceiling` measure that, too. It never ships.

# %%
(ceiling,) = tuned.with_ceiling().result.table("ceiling")
above = ceiling["above"]
print(f"a learned model reaches {ceiling['interval'].mean:.3f}")
print(f"against tuned weights: {above.mean:+.3f} [{above.low:+.3f}, {above.high:+.3f}]")

# %% [markdown]
# ## The file
#
# Under *ship* the file holds what was chosen, under *keep* the current weights. Under *try* there are two files
# instead, named by what they hold: what you run, and what to try.

# %%
[path.name for path in tuned.save_weights("../reports/notebook/search-weights.json")]
