"""Re-rankers over HTTP, from a model on this machine, cached and guarded."""

import numpy as np
import pytest

from steelyard.base.errors import ConfigError, RerankError
from steelyard.config import RerankConfig, open_reranker, reranker_asked
from steelyard.extensions.rerank import CachedReranker, GuardedReranker
from steelyard.extensions.rerank.api import ApiReranker
from steelyard.extensions.rerank.local import LocalReranker
from steelyard.finish import Document

pytest.importorskip("httpx", reason="needs the extra api")
DOCUMENTS = [Document(str(at), f"text {at}") for at in range(3)]


def answered(name):
    def answer(path, body):
        scores = [{"index": at, "relevance_score": at / 10} for at, _ in enumerate(body["documents"])]
        return {name: scores[::-1]}

    return answer


def environ(provider, endpoint):
    return {f"{provider.upper()}_API_KEY": "sk-secret-0123456789", f"{provider.upper()}_BASE_URL": endpoint.url}


@pytest.mark.parametrize(
    ("provider", "model", "answers"), [("voyage", "rerank-2", "data"), ("cohere", "rerank-v3.5", "results")]
)
def test_scores_come_in_the_order_of_the_documents(endpoint, provider, model, answers):
    endpoint.document = answered(answers)
    reranker = ApiReranker.of(provider, environ(provider, endpoint))

    assert reranker.score("q", DOCUMENTS).tolist() == [0.0, 0.1, 0.2]
    assert reranker.name == f"{provider}/{model}"
    path, headers, body = endpoint.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/rerank", "Bearer sk-secret-0123456789")
    assert body == {"model": model, "query": "q", "documents": ["text 0", "text 1", "text 2"]}
    assert len(reranker.score("q", [Document(str(at), "x") for at in range(250)])) == 250
    assert [len(body["documents"]) for _, _, body in endpoint.requests[1:]] == [100, 100, 50]


@pytest.mark.parametrize(
    "answer",
    [
        {"data": []},
        {"results": [{"index": 0, "relevance_score": 1.0}]},
        {"data": [{"index": at, "relevance_score": "high"} for at in range(3)]},
        {"data": [{"index": 0, "relevance_score": 1.0}] * 3},
        ["no object"],
        None,  # a refusal that says the key
    ],
)
def test_an_answer_of_another_kind_is_an_error_without_the_key(endpoint, answer):
    endpoint.document = lambda path, body: answer
    endpoint.script = [] if answer else [endpoint.status(401, '{"detail": "bad key sk-secret-0123456789"}')]
    reranker = ApiReranker.of("voyage", environ("voyage", endpoint))
    with pytest.raises(RerankError, match=None if answer else "401") as caught:
        reranker.score("q", DOCUMENTS)
    assert "sk-secret" not in str(caught.value)


def test_detection_follows_the_document():
    auto = RerankConfig()
    assert reranker_asked(auto, {"VOYAGE_API_KEY": "v", "COHERE_API_KEY": "c"}) == "voyage"
    assert reranker_asked(auto, {"COHERE_API_KEY": "c"}) == "cohere"
    assert reranker_asked(auto, {}) == "local"
    assert reranker_asked(RerankConfig("cohere"), {"VOYAGE_API_KEY": "v"}) == "cohere"


def test_what_cannot_be_configured_is_refused():
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
    now = [0.0]
    inner = Counting()
    cached = CachedReranker(inner, seconds=300, clock=lambda: now[0])
    cached.score("q", DOCUMENTS)
    cached.score("q", DOCUMENTS)
    assert inner.calls == 1
    cached.score("other", DOCUMENTS)
    cached.score("q", [Document("0", "changed"), *DOCUMENTS[1:]])
    cached.score("q", DOCUMENTS[::-1])
    assert inner.calls == 4
    now[0] = 299.9
    cached.score("q", DOCUMENTS)
    assert inner.calls == 4
    now[0] = 300.0
    cached.score("q", DOCUMENTS)
    assert inner.calls == 5


def test_a_full_cache_drops_its_oldest_tenth():
    inner = Counting()
    cached = CachedReranker(inner, size=20, clock=lambda: 0.0)
    for at in range(21):
        cached.score(f"q{at}", DOCUMENTS)
    cached.score("q2", DOCUMENTS)
    assert inner.calls == 21
    cached.score("q0", DOCUMENTS)
    cached.score("q1", DOCUMENTS)
    assert inner.calls == 23


def test_without_room_nothing_is_kept():
    inner = Counting()
    cached = CachedReranker(inner, size=0)
    cached.score("q", DOCUMENTS)
    cached.score("q", DOCUMENTS)
    assert inner.calls == 2


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
    asked = []

    class Model:
        def predict(self, pairs, batch_size, show_progress_bar):
            asked.append((len(pairs), batch_size, show_progress_bar))
            return np.zeros(len(pairs))

    monkeypatch.setattr("steelyard.extensions.rerank.local._load", lambda name: Model())
    LocalReranker("any").score("q", DOCUMENTS)

    assert asked == [(len(DOCUMENTS), 50, False)]


def test_a_tiny_model_is_loaded_and_asked(tmp_path):
    """The real loading code, on a model of one layer with random weights: more than its wiring is not claimed."""
    pytest.importorskip("torch", reason="needs torch (extra minilm)")
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers (extra minilm)")
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "text", "q", *map(str, range(10))]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    shape = BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        num_labels=1,
    )
    BertForSequenceClassification(shape).save_pretrained(tmp_path)
    reranker = LocalReranker(str(tmp_path))
    first = reranker.score("q", DOCUMENTS)
    assert first.shape == (3,)
    assert np.allclose(first, reranker.score("q", DOCUMENTS))
