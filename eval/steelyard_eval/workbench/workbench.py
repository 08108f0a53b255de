"""One object for all jobs on a data set: check, compare, recommend, tune, learn, explain, gate, search, record.

What does a job is imported by its method: the command line reads its options off these methods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from steelyard_eval.common import SYSTEMS, extension

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from steelyard.memory.query import Query
    from steelyard_eval.candidates.signal_frame import Framed
    from steelyard_eval.choose.recommend import Recommendation
    from steelyard_eval.common.configurations import NamedConfig
    from steelyard_eval.compare.contenders import Given, GivenMany
    from steelyard_eval.compare.source import Source
    from steelyard_eval.datasets import Dataset
    from steelyard_eval.datasets.in_memory import Judged, Rows
    from steelyard_eval.datasets.logs import HeldLog
    from steelyard_eval.explain import QueryExplanation
    from steelyard_eval.explain.explanation import SearchHits
    from steelyard_eval.export import Export
    from steelyard_eval.gate.setup import Gate
    from steelyard_eval.learn import Learned
    from steelyard_eval.notebook.explorer.widget import Explorer
    from steelyard_eval.notebook.label.widget import Judge
    from steelyard_eval.recording.history import Runs
    from steelyard_eval.recording.workspace import Workspace
    from steelyard_eval.views.frames import Answered, Gating
    from steelyard_eval.workbench.data_check import Checked

R = TypeVar("R", bound="Answered")


class Workbench:
    """A data set with the jobs that can be run on it; `steelyard_eval.load` makes one.

    The data set is indexed at most once, when a job first needs it, and kept in memory.

    Parameters
    ----------
    dataset: What is searched, and how it is judged.
    embedder: The source of the vectors; see `Workspace.open`.
    jobs: Processes that search for recordings; results are the same.
    """

    def __init__(self, dataset: Dataset, embedder: str = "auto", jobs: int | Executor = 1) -> None:
        self.dataset = dataset.embedded_by(embedder)
        self.embedder = embedder
        self.jobs = jobs

    def __repr__(self) -> str:
        return repr(self.dataset).replace("Dataset", "Workbench", 1)

    @cached_property
    def workspace(self) -> Workspace:
        """The data set, indexed, with its embedder."""
        from steelyard_eval.recording.workspace import Workspace

        return Workspace.open(self.dataset, self.embedder, jobs=self.jobs)

    def check(self, *, null: bool = False) -> Checked:
        """Return counts, and notices on what is odd without being a fault; `load` refuses a set with faults.

        With `null` labels are shuffled 200 times: does the best contender still lead what is used today?
        """
        from steelyard_eval.datasets import Report
        from steelyard_eval.workbench.data_check import Checked, with_null

        made = Checked(Report((), self.dataset.notices, self.dataset))
        return with_null(made, embedder=self.embedder) if null else made

    def compare(
        self,
        contenders: GivenMany | None = None,
        *more: Given,
        current: Given | None = None,
        metrics: str | Sequence[str] = "nDCG@10,R@10,RR@10,RecallAll@10,Judged@10",
        split: str | None = None,
        limit: int | None = None,
        recording: str | Path | None = None,
        write_runs: str | Path | None = None,
        verify: bool = False,
        seed: int = 0,
        timed: bool = True,
        ceiling: bool = False,
        newest: bool = False,
        referee: Literal["look", "verdict"] | None = None,
    ) -> Answered:
        """Compare contenders on the same judged queries, or without judgments how far their lists agree.

        Returns means with intervals, tests, lists, latency and cost.
        Raises ConfigError for an unknown contender, metric or split, with the valid names, and for a split without
        queries; DataError for a run or a recording that is damaged or belongs to another data set.

        Parameters
        ----------
        contenders: Several stand in one string, separated by commas, in a list, or in a mapping from labels; by
            default the usual systems. `more` are further ones, after a string or one contender. Each is one of
            these:

            - the text of a system, a strategy, a weights file, a TREC run or an endpoint, as for the command;
            - a function from a query, with its `text`, to ids, best first, or to pairs of id and score;
            - a retriever of LangChain, LlamaIndex or Haystack, whose documents name entries of the data set;
            - an object with `transform(frame)`, such as a pipeline of PyTerrier: from a table with the columns
              qid, query and, where any has one, filter (JSON) to one with qid, docno and score;
            - a run in memory: a DataFrame with the columns qid, docno and score, a run of ranx, or a mapping
              from queries to the scores of documents, or to ids, best first.
        current: What you use today: a label, or any contender. The others are tested against it (default: the
            `system` in dataset.json if it is compared, else the first contender).
        metrics: Metrics by their names in ir_measures, separated by commas. The first one is tested. R@2000t and
            nDCG@2000t count what 2000 tokens hold (characters / 4), of lists of 100.
        split: train, dev, test or all (default: the data set's choice).
        limit: Length of every list (default: the largest cutoff of the metrics).
        recording: Replay this folder, which `record` wrote, instead of searching.
        write_runs: Write every list as a TREC run to this folder.
        verify: Compute every metric again with ir_measures, and compare.
        seed: Seed of the tests.
        timed: Time the searches.
        ceiling: Add what a learned model over all signals reaches; reports and notebooks have that anyway.
        newest: Add the newest generation of each system that is named, or of all systems, such as soleri:newest.
        referee: For whoever tries many: look compares on one half of the labelled queries, and counts; verdict
            opens the other half, once, for at most five contenders (default: all queries).
        """
        from steelyard_eval.candidates.ceiling import with_ceiling
        from steelyard_eval.compare import compare
        from steelyard_eval.compare.contenders import with_newest
        from steelyard_eval.compare.referee import Referee

        given = [cast("Given", contenders), *more] if more else contenders
        given = with_newest(given) if newest else given
        halves, data = None, self.dataset
        if referee:
            halves = Referee.of(self.dataset)
            data, current, ceiling = halves.half(referee), current or data.today, False
        found = compare(
            data, given, baseline=current, metrics=metrics, split=split, limit=limit, recording=recording,
            runs=write_runs, verify=verify, seed=seed, timed=timed, workspace=lambda: self.workspace,
        )  # fmt: skip
        if halves and referee:
            found = halves.counted(referee, found)
        elif ceiling or (found.values and any(row.kind != "lists" for row in found.result.rows)):
            found = replace(found, ceiling=lambda own, values: with_ceiling(own, values, self._source(recording)))
        return self._kept(found.with_ceiling() if ceiling else found)

    def compare_stages(
        self, config: Given | None = None, *, metrics: str = "nDCG@10", split: str | None = None, seed: int = 0
    ) -> Answered:
        """Say which parts of a search pay nothing: it is compared with itself without each signal and stage.

        Returns what changes in the first ten, the change of the metric with its interval, and what is saved.
        Raises ConfigError without labels, and for a search of a single part.

        Parameters
        ----------
        config: A system, a strategy or a weights file (default: what is used today).
        metrics, split, seed: As for `compare`.
        """
        from steelyard_eval.workbench.variants import compare_stages

        return self._kept(compare_stages(self.workspace, config or self.dataset.today, metrics, split, seed))

    def compare_models(
        self, strategy: Given | None = None, *, old: str, new: str, metrics: str = "nDCG@10", seed: int = 0
    ) -> Answered:
        """Say whether the embedding model may be changed: one strategy, with weights of its own for either model.

        Each query is measured under weights that were chosen without it. Returns a row a model, with what its
        searches cost. Raises ConfigError without labels, and for two names of one model.

        Parameters
        ----------
        strategy: A system, a strategy or a weights file (default: what is used today, or rrf(bm25, vector)).
        old, new: Embedders, as for `load`.
        metrics: As for `compare`; the first one is compared.
        seed: Seed of the folds.
        """
        from steelyard_eval.workbench.variants import compare_models

        return self._kept(compare_models(self.dataset, strategy, old, new, metrics, seed))

    def signal_frame(self, split: str | None = None, recording: str | Path | None = None) -> Framed:
        """Return (X, y, groups) of the labelled queries of a split, for `FusionTuner` and other estimators.

        X is a DataFrame with a row for each query and candidate: query, entry, and a column for each signal, NaN
        where a retriever did not return the entry. y has the grades, 0 without a label; groups number queries that
        vary together, for `GroupKFold`. Values of metrics are those of `compare`. With a `recording` nothing is
        searched.
        """
        from steelyard_eval.candidates.signal_frame import signal_frame
        from steelyard_eval.datasets.groups import judged

        return signal_frame(self._source(recording), judged(self.dataset, self.dataset.split(split)))

    def _source(self, recording: str | Path | None) -> Source:
        from steelyard_eval.compare.source import Source

        return Source.live(self.workspace) if recording is None else Source.of_recording(self.dataset, recording)

    def recommend(
        self,
        current: Given | None = None,
        *,
        only: Given | None = None,
        weights_only: bool = False,
        metric: str = "nDCG@10",
        limit: int | None = None,
        recording: str | Path | None = None,
        model_labels: str | Path | None = None,
        seed: int = 0,
        timed: bool = False,
        target: str = "",
        latency: float | None = None,
        embedding_calls: float | None = None,
        tokens: int | None = None,
        ceiling: bool = False,
    ) -> Recommendation:
        """Recommend the strategy and weights to use instead of what is used today, over all families or in one.

        Returns the decision (ship, try or keep), leaderboard and costs; `save_weights` writes the weights file.
        Raises ConfigError for an unknown contender or metric, or lists without a `current`; for an `only` that has
        lists alone, or nothing to tune; DataError for a recording that is damaged or belongs to another data set.

        Parameters
        ----------
        current: What you use today (default: the `system` in dataset.json, else bm25; for tune, its strategy).
        only: Tune only this system, strategy or weights file, on the split train, else dev, else all but test.
        weights_only: Tune only the weights; keep the settings (k, scale, depths, half-lives) as written.
        metric: Metric that decides, by its name in ir_measures.
        limit: Length of the lists (default: the cutoff of the metric).
        recording: Replay this folder, which `record` wrote, instead of searching.
        model_labels: Labels file written by `judge --model`. If the model agrees with you, your labels count for
            more.
        seed: Seed of the folds.
        timed: Time live search in every row, which takes a second or more.
        target: Choose only what this export target can express, such as elasticsearch or echovault.
        latency: Choose only configurations whose median latency is at most this many milliseconds.
        embedding_calls: Choose only configurations that embed at most this many of 100 queries (0: no vectors).
        tokens: End every list where this many tokens are full (characters / 4), and decide on what is left:
            nDCG@2000t in place of nDCG@10.
        ceiling: Add what a learned model over all signals reaches; reports and notebooks have that anyway.
        """
        from steelyard_eval.choose.recommend import recommend

        judged = extension("model_judge").model_labels(model_labels, self.dataset) if model_labels else None
        found = recommend(
            self.dataset, current, only=only, weights_only=weights_only, metric=metric, limit=limit, seed=seed,
            timed=timed, recording=recording, model_labels=judged, target=target, latency=latency,
            embedding_calls=embedding_calls, tokens=tokens,
            workspace=self.workspace if recording is None else None,
        )  # fmt: skip
        return self._kept(found.with_ceiling() if ceiling else found)

    def tune(self, strategy: Given, **options: Any) -> Recommendation:  # noqa: ANN401 -- those of `recommend`
        """Tune one strategy: `recommend` with `only`; the other parameters are those of `recommend`."""
        return self.recommend(only=strategy, **options)

    def learn(
        self,
        feedback: str | Path | HeldLog | None = None,
        current: Given | None = None,
        *,
        source: str = "",
        keep_queries: bool = False,
        rule: str = "labels",
        labels: bool = True,
    ) -> Learned:
        """Learn weights from a feedback log and labels, which decide.

        Returns the decision and what it rests on; `save_weights` writes the weights file.
        Raises DataError when there is no log, it is damaged, or no line of it fits the data set; ConfigError for
        an unknown rule or contender.

        Parameters
        ----------
        feedback: Feedback log (default: the data set's own).
        current: Configuration behind the logged results and used today (default: the policy of most results).
        source: ``KIND`` or ``KIND:PATH``: first make the log from files of another program, such as transcripts,
            and write it to `feedback` (default: `feedback.KIND.jsonl` in the data set's folder).
        keep_queries: Also store the texts of queries in the log.
        rule: labels: labels decide, actions refine. adaptive: the rule in Soleri's document.
        labels: Let labels decide, from 15 labelled queries on (60 if you run a fusion). Without, nothing ships.
        """
        from steelyard_eval.learn import learn

        log: str | Path | HeldLog | None = feedback
        if source:
            use = extension("usage").gather(self.dataset, source, log=feedback, keep_queries=keep_queries)
            use.write()
            log = use.held
        return self._kept(learn(self.dataset, log, current, rule=rule, labels=labels, workspace=self.workspace))

    def explore(
        self,
        contender: str | NamedConfig | None = None,
        current: Given | None = None,
        *,
        metric: str = "nDCG@10",
        limit: int | None = None,
        recording: str | Path | None = None,
    ) -> Explorer:
        """Open the live explorer in a notebook: move weights and parameters, see what every move does.

        Returns the widget; `exploration` is what it shows, as numbers.
        Raises MachineError without the extra `notebooks`; ConfigError for unknown names, or no labels.

        Parameters
        ----------
        contender: System or strategy to start from (default: `current`).
        current: Contender to compare every move with (default: the `system` in dataset.json, else bm25).
        metric: Metric to show, by its name in ir_measures.
        limit: Length of the lists (default: the cutoff of the metric).
        recording: Replay this folder, which `record` wrote with all queries, instead of searching.
        """
        from steelyard.base.extensions import require

        require("notebooks", "the explorer")
        from steelyard_eval.compare.contenders import read_config
        from steelyard_eval.measures.metrics import parse_measures
        from steelyard_eval.notebook.explorer.exploration import Exploration
        from steelyard_eval.notebook.explorer.explored_data import ExplorerData
        from steelyard_eval.notebook.explorer.widget import Explorer  # it needs the extra

        source = self._source(recording)
        lists = source.lists
        used = current or (self.dataset.today if lists is None else f"rrf({', '.join(lists)})")
        bench = ExplorerData.of(source, parse_measures([metric])[0], limit)
        start = None if contender is None else read_config(contender, lists or ())
        return Explorer(Exploration(bench, start, used))

    def judge(
        self,
        contenders: GivenMany | None = None,
        out: str | Path | None = None,
        *,
        judge: str = "judge",
        second_judge_of: str = "",
        split: str | None = None,
        seed: int = 0,
        random: bool | None = None,
    ) -> Judge:
        """Open the judging widget in a notebook: label what is found for a query, on one screen.

        Returns the widget; its judgments are files in `out`.
        Raises MachineError without the extra `notebooks`; ConfigError for unknown contenders, and for judges whose
        names are no file names.

        Parameters
        ----------
        contenders: Contenders to choose between. The pool of a query is their top ten results. By default what
            `recommend` needs next. Without labels, or with labels of single pairs: single pairs of the usual
            strategies (`choose.public.CONTENDERS`), where each answer decides the next pair, until the verdict is
            settled. Otherwise `random` queries.
        out: Folder of the judgments (default: judgments in the folder of the data set, or in the current folder if
            the data set is in memory). Each judgment is saved at once.
        judge: Your name as judge. Each judge has their own files.
        second_judge_of: Label again the pairs that this judge labelled, to measure agreement (kappa).
        split: Queries of this split (default: all).
        seed: Seed of the order.
        random: True: label all results of queries drawn at random; these labels can lead to ship. False: label
            single pairs. By default as above.
        """
        from steelyard.base.extensions import require

        require("notebooks", "the judging widget")
        from steelyard_eval.notebook.label.judgment_file import folder_of
        from steelyard_eval.notebook.label.open import open_judging
        from steelyard_eval.notebook.label.widget import Judge  # it needs the extra

        folder = folder_of(self.dataset) if out is None else Path(out)
        return Judge(
            open_judging(
                self.dataset, contenders, folder, judge, second_judge_of, split, seed, random=random,
                workspace=lambda: self.workspace,
            )
        )  # fmt: skip

    def explain(
        self,
        query_id: str,
        config: Given | None = None,
        against: Given | None = None,
        *,
        entry: str | None = None,
        limit: int | None = None,
    ) -> QueryExplanation:
        """Explain the ranking of one query, signal by signal, and what a second configuration changes.

        Returns the list, every score as a tree, why relevant entries are missing, and what `against` moves.
        Raises ConfigError for an unknown query, entry or configuration, with the nearest names.

        Parameters
        ----------
        query_id: One of the data set's queries.
        config: A system, a strategy or a weights file (default: the `system` in dataset.json, else bm25).
        against: Also explain what this contender changes. The configuration is before, this is after. Contenders
            with only lists (TREC runs) are compared by ranks.
        entry: Entry to explain in full, ranked or not.
        limit: Length of the lists (default: the weights file's limit, else 10).
        """
        from steelyard_eval.explain import explain

        return explain(self.workspace, query_id, config, against, entry=entry, limit=limit)

    def gate(
        self,
        contenders: GivenMany | None = None,
        *,
        baseline: str | Path = "reports/baseline.json",
        reason: str = "",
        budget: float = 0.04,
        block_slices: bool = False,
        split: str | None = None,
        limit: int | None = None,
        tokens: int | None = None,
    ) -> Gating:
        """Say whether search got worse since the committed baseline: pass, fail, inconclusive or mismatch.

        Returns the verdict, its sentence, every contender, and the gate's own power.
        Raises DataError for a baseline that is missing, cut short or edited by hand; ConfigError for a contender
        that the baseline does not know.

        Parameters
        ----------
        contenders: Contenders to test (default: all of the baseline).
        baseline: Baseline file; `update_baseline` writes it.
        reason: Write a first baseline with this reason if there is none.
        budget: Drop of nDCG@10 that the gate must rule out to pass.
        block_slices: Also fail if a category or intent is significantly worse.
        split: Queries of this split (default: the baseline's).
        limit: Length of the lists (default: the baseline's).
        tokens: End every list where this many tokens are full (default: the baseline's).
        """
        from steelyard_eval.gate.gate import check, update

        bounds = {"budget": budget, "block_slices": block_slices}
        opened = partial(self._gate, baseline, split=split, limit=limit, tokens=tokens, **bounds)
        gate = opened()
        if reason and gate.baseline is None:
            update(gate, contenders, reason=reason)
            gate = opened()
        return self._kept(check(gate, contenders))

    def update_baseline(
        self,
        contenders: GivenMany | None = None,
        *,
        reason: str,
        baseline: str | Path = "reports/baseline.json",
        accept_worse: bool = False,
        split: str | None = None,
        limit: int | None = None,
        tokens: int | None = None,
    ) -> Path:
        """Write a baseline of these contenders, or of those that the old one names, and return its file.

        The old one is kept beside it as ``baseline.json.bak``. Raises ConfigError when search got worse and that
        is not accepted, or `reason` is empty; nothing is written.
        """
        from steelyard_eval.gate.gate import update

        gate = self._gate(baseline, split=split, limit=limit, tokens=tokens)
        update(gate, contenders, reason=reason, accept_worse=accept_worse)
        return gate.path

    def runs(self) -> Runs:
        """The kept runs of this data set: a table, `trend(metric)` and `between(before, after)`.

        Raises DataError for a file of runs that is damaged.
        """
        from steelyard_eval.recording.history import Runs

        return Runs(self.dataset)

    def _kept(self, found: R) -> R:
        """The result, once its numbers are among the runs of the data set."""
        from steelyard_eval.recording.saved_runs import keep

        keep(self.dataset, found.result)
        return found

    def _gate(self, baseline: str | Path, **options: Any) -> Gate:  # noqa: ANN401 -- the fields of a gate
        from steelyard_eval.gate.setup import Gate
        from steelyard_eval.recording.workspace import Workspace

        @cache
        def opened(embedder: str) -> Workspace:
            return self.workspace if embedder == self.embedder else Workspace.open(self.dataset, embedder)

        chosen = None if self.embedder == "auto" else self.embedder
        return Gate.of(self.dataset, baseline, chosen, opened, **options)

    def search(self, query: str | Query, config: Given = "echovault", *, limit: int | None = None) -> SearchHits:
        """Search the data set live.

        Returns hits with scores and signals, and notices on what could not be computed.
        Raises ConfigError for an unknown configuration, and for a query text that is empty or too long.

        Parameters
        ----------
        query: The id of a query of the data set, or any text. With recorded vectors, only queries of the data set
            have a vector; other texts are searched by keywords, and the result says so.
        config: A system, a strategy or a weights file.
        limit: Number of results (default: the weights file's limit, else 10).
        """
        return self.searcher(config, limit=limit)(query)

    def searcher(
        self, config: Given = "echovault", *, limit: int | None = None
    ) -> Callable[[str | Query], SearchHits]:
        """Make ready what `search` does for one configuration, for many queries."""
        from steelyard.systems import find_system
        from steelyard_eval.compare.contenders import read_config
        from steelyard_eval.explain.explanation import SearchHits
        from steelyard_eval.recording.record import needed
        from steelyard_eval.result.sentences import say

        space = self.workspace
        asked, notices = self._source(None).supplied(read_config(config), limit)
        space.index_for([find_system(asked.config.name)], space.usable(needed([asked.config])))
        searcher = space.searcher(asked.config)
        known = {
            query.id: query for query in self.dataset.with_known_intents(self.dataset.queries, searcher.knows)
        }

        def found(query: str | Query) -> SearchHits:
            wanted = known.get(query, query) if isinstance(query, str) else query
            result = searcher.search(wanted)
            empty = [f"nothing found: {result.emptied}"] if result.emptied else []
            return SearchHits(asked, wanted, result, (*map(say, notices), *empty))

        return found

    def export(self, config: Given, to: str) -> Export:
        """Translate a configuration for another system, such as opensearch; the `str` of the answer is the file.

        Raises ConfigError for an unknown target, and for a strategy that it cannot express, with the reasons.
        """
        from steelyard_eval.common.configurations import Setting
        from steelyard_eval.compare.contenders import read_config
        from steelyard_eval.export import export

        return export(read_config(config).config(Setting(0)), to)

    def record(
        self,
        out: str | Path,
        systems: str | Sequence[str] = SYSTEMS,
        *,
        lists: GivenMany | None = None,
        split: str | None = None,
        limit: int = 10,
        rerank: str = "top",
    ) -> dict[str, int]:
        """Save signal tables, to compare and tune on them later; return the number of rows by folder.

        Raises ConfigError for unknown systems, and for contenders that have no lists.

        Parameters
        ----------
        out: Folder of the recording of lists, or of one recording for each system.
        systems: Systems whose retrievers run, separated by commas.
        lists: Lists of other engines to record instead, by name: ``"bm25=a.run, mine=b.run"`` or a mapping to TREC
            runs, tables, functions or endpoints.
        split: Queries of this split (default: all for lists, the data set's choice for systems).
        limit: Length of the lists to record systems for.
        rerank: Candidates that a re-ranker scores: top (those that systems read), or all, to replay any top.
        """
        from steelyard_eval.common.configurations import split_contenders
        from steelyard_eval.compare.list_recording import save_lists
        from steelyard_eval.recording.record import record_systems
        from steelyard_eval.result.sentences import say

        if lists is not None:
            folders, notices = save_lists(self.dataset, lists, Path(out), split or "all")
            for notice in notices:
                logging.getLogger("steelyard").info("%s", say(notice))
            return folders
        names = split_contenders(systems) if isinstance(systems, str) else list(systems)
        return record_systems(self.workspace, names, Path(out), split, limit, rerank)


def load(
    source: str | Path | Mapping[str, object] | Rows,
    queries: Rows | None = None,
    qrels: Judged | None = None,
    *,
    vectors: Mapping[str, Sequence[ArrayLike]] | None = None,
    text_for_embedding: str = "{title}\n{text}",
    embedder: str = "auto",
    jobs: int | Executor = 1,
    intents: str | None = None,
) -> Workbench:
    """A data set, checked and ready to be worked on, with all jobs on it.

    Raises DataError with all faults of the data set at once; ConfigError when a part is missing.

    Parameters
    ----------
    source: A folder of Steelyard's own format or of BEIR's; a store that `steelyard import` reads, or the name of
        its kind; or a mapping with the keys corpus, queries, qrels, vectors and those of dataset.json; or the
        corpus alone, as a DataFrame or a list of objects with the fields of corpus.jsonl, beside `queries` and
        `qrels`; or a data set that ir_datasets or PyTerrier has loaded.
    queries: With the fields of queries.jsonl. Here and in a corpus `qid`, `query_id`, `docno`, `doc_id` are ids,
        too.
    qrels: Columns query, entry, grade (or ir_measures' query_id, doc_id, relevance, or PyTerrier's qid, docno,
        label); or query -> entry -> grade; or query -> relevant entries.
    vectors: Model -> (array of the entries' vectors, array of the queries'), a row each, in their order.
    text_for_embedding: The template of the text that these vectors stand for.
    embedder: auto: the choice in dataset.json, else recorded, else lsa. recorded: the vectors of the data set.
        recorded:MODEL: those of one model. lsa: vectors fitted on the texts. none: keywords only. All others need
        an extra.
    jobs: Number of processes, or the address of a Dask scheduler (extra dask). The result is the same. More than
        one pays off for thousands of queries.
    intents: Source of query intents: classified, as in live search (default), or given, the field `intent` of
        queries if the system knows it.
    """
    from steelyard_eval.datasets import open_dataset
    from steelyard_eval.datasets.in_memory import load_dict

    if isinstance(source, str | Path):
        return Workbench(open_dataset(source, intents), embedder, jobs)
    loaded: Any = source  # what another library has loaded, by the methods that it has
    if hasattr(loaded, "docs_iter"):
        imported = extension("importers").of_ir_dataset(loaded)
        source, queries, qrels = imported.entries, imported.queries, imported.qrels
        text_for_embedding = imported.recipe
    elif hasattr(loaded, "get_corpus_iter"):
        source, queries, qrels = list(loaded.get_corpus_iter()), loaded.get_topics(), loaded.get_qrels()
    given = {"corpus": source, "queries": queries, "qrels": qrels, "vectors": vectors}
    parts = {name: part for name, part in given.items() if part is not None}
    whole = source if isinstance(source, Mapping) and "corpus" in source else None
    made = load_dict(whole or {**parts, "text_for_embedding": text_for_embedding})
    return Workbench(replace(made, intents=intents), embedder, jobs)


def demo() -> Workbench:
    """The data set workshop, which comes with the package: 512 memories of a team and its agents, 200 queries."""
    from steelyard_eval.datasets.manifest import workshop

    return load(workshop())
