"""Re-rankers over HTTP, from a model on this machine, cached and guarded."""

from types import SimpleNamespace

import numpy as np
import pytest
from shared import tabled

from steelyard.base.errors import ConfigError, RerankError
from steelyard.config import RerankConfig, open_reranker, requested_reranker
from steelyard.extensions.rerank import CachedReranker, GuardedReranker
from steelyard.extensions.rerank.api import ApiReranker
from steelyard.extensions.rerank.local import LocalReranker
from steelyard.finish import Document

pytest.importorskip("httpx", reason="needs the extra api")
DOCUMENTS = [Document(str(at), f"text {at}") for at in range(3)]


def environ(provider, endpoint):
    return {f"{provider.upper()}_API_KEY": "sk-secret-0123456789", f"{provider.upper()}_BASE_URL": endpoint.url}


@tabled
def test_scores_come_in_the_order_of_the_documents(endpoint, provider, model, answers):
    def answer(path, body):
        scores = [{"index": at, "relevance_score": at / 10} for at, _ in enumerate(body["documents"])]
        return {answers: scores[::-1]}

    endpoint.document = answer
    reranker = ApiReranker.of(provider, environ(provider, endpoint))
    assert reranker.score("q", DOCUMENTS).tolist() == [0.0, 0.1, 0.2]
    assert reranker.name == f"{provider}/{model}"
    path, headers, body = endpoint.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/rerank", "Bearer sk-secret-0123456789")
    assert body == {"model": model, "query": "q", "documents": ["text 0", "text 1", "text 2"]}
    assert len(reranker.score("q", [Document(str(at), "x") for at in range(250)])) == 250
    assert [len(body["documents"]) for _, _, body in endpoint.requests[1:]] == [100, 100, 50]


@tabled
def test_an_answer_of_another_kind_is_an_error_without_the_key(endpoint, answer):
    endpoint.document = lambda path, body: answer
    endpoint.script = [] if answer else [endpoint.status(401, '{"detail": "bad key sk-secret-0123456789"}')]
    reranker = ApiReranker.of("voyage", environ("voyage", endpoint))
    with pytest.raises(RerankError, match=None if answer else "401") as caught:
        reranker.score("q", DOCUMENTS)
    assert "sk-secret" not in str(caught.value)


def test_detection_follows_the_document():
    auto = RerankConfig()
    assert requested_reranker(auto, {"VOYAGE_API_KEY": "v", "COHERE_API_KEY": "c"}) == "voyage"
    assert requested_reranker(auto, {"COHERE_API_KEY": "c"}) == "cohere"
    assert requested_reranker(auto, {}) == "local"
    assert requested_reranker(RerankConfig("cohere"), {"VOYAGE_API_KEY": "v"}) == "cohere"
    with pytest.raises(ConfigError, match="'voyag' is unknown"):
        RerankConfig("voyag")
    with pytest.raises(ConfigError, match="COHERE_API_KEY"):
        open_reranker(RerankConfig("cohere"), {})


class Counting:
    name = "counting"

    def __init__(self):
        self.calls = 0

    def score(self, query, documents):
        self.calls += 1
        return np.arange(float(len(documents)))


def test_the_cache_tells_queries_texts_and_times_apart():
    now, inner = [0.0], Counting()
    cached = CachedReranker(inner, seconds=300, clock=lambda: now[0])
    changed = [Document("0", "changed"), *DOCUMENTS[1:]]
    for at, query, documents, calls in (
        *((0.0, "q", DOCUMENTS, 1), (0.0, "q", DOCUMENTS, 1), (0.0, "other", DOCUMENTS, 2)),
        (0.0, "q", changed, 3),
        *((0.0, "q", DOCUMENTS[::-1], 4), (299.9, "q", DOCUMENTS, 4), (300.0, "q", DOCUMENTS, 5)),
    ):
        now[0] = at
        cached.score(query, documents)
        assert inner.calls == calls


@tabled
def test_a_cache_has_a_size(size, first, again, calls):
    inner = Counting()
    cached = CachedReranker(inner, size=size, clock=lambda: 0.0)
    for query in (*(f"q{at}" for at in range(first)), *again):
        cached.score(query, DOCUMENTS)
    assert inner.calls == calls


def test_the_guard_switches_off_from_twenty_calls_on():
    now, taken = [0.0], [0.1]

    class Slow(Counting):
        def score(self, query, documents):
            now[0] += taken[0]
            return super().score(query, documents)

    guarded = GuardedReranker(Slow(), clock=lambda: now[0])
    for _ in range(18):
        guarded.score("q", DOCUMENTS)
    taken[0] = 0.6
    guarded.score("q", DOCUMENTS)
    assert not guarded.disabled  # 19 calls
    guarded.score("q", DOCUMENTS)
    assert "RERANK_P95_THRESHOLD" in guarded.disabled  # sorted[19] of 20 is 0.6 s
    with pytest.raises(RerankError, match="switched itself off"):
        guarded.score("q", DOCUMENTS)


def test_a_local_model_is_given_pairs_in_batches_of_50_as_in_system_spec_kit(monkeypatch):
    model, asked = SimpleNamespace(), []
    model.predict = lambda pairs, **how: asked.append((len(pairs), how)) or np.zeros(len(pairs))
    monkeypatch.setattr("steelyard.extensions.rerank.local._load", lambda name: model)
    LocalReranker("any").score("q", DOCUMENTS)
    assert asked == [(len(DOCUMENTS), {"batch_size": 50, "show_progress_bar": False})]


def test_a_tiny_model_is_loaded_and_asked(tmp_path):
    """The real loading code, on a model of one layer with random weights: more than its wiring is not claimed."""
    pytest.importorskip("torch", reason="needs torch (extra minilm)")
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers (extra minilm)")
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "text", "q", *map(str, range(10))]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    shape = BertConfig(vocab_size=len(words), num_labels=1, **sizes)
    BertForSequenceClassification(shape).save_pretrained(tmp_path)
    reranker = LocalReranker(str(tmp_path))
    first = reranker.score("q", DOCUMENTS)
    assert first.shape == (3,)
    assert np.allclose(first, reranker.score("q", DOCUMENTS))
