"""The analysis of texts: how they become the words that our own retrievers count, as its options say."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from steelyard.memory.words import ENGLISH, STEMMERS, by_script, language_of, runs, stemmer, stop_words, within
from steelyard.node import Node, opt

_STEMS, _WAYS = ("auto", "none", *STEMMERS), ("whole", "both", "split")


@dataclass(frozen=True)
class Analysis(Node):
    """How texts are split into words; `languages` are those of the memory's Latin texts."""

    words: str = opt("content", kind="word", words=("content", "all"), text="Those that are no stop words, or all")
    stem: str = opt("auto", kind="word", words=_STEMS, text="One of Snowball's, or that of each text's language")
    identifiers: str = opt(
        "whole", kind="word", words=_WAYS, tried=_WAYS[1:], text="getUserById as one word, both, or as its parts"
    )
    ngrams: int = opt(0, low=0, high=8, integer=True, tried=(3, 4), text="Letters of the runs of a word; 0: stems")
    languages: tuple[str, ...] = ENGLISH

    def entry(self, text: str) -> list[str]:
        """The words of an entry, by its own language.

        >>> Analysis().entry("The tokens are rotating, JWT-style"), Analysis().entry("密钥轮换")
        (['token', 'rotat', 'jwt', 'style'], ['密钥', '钥轮', '轮换'])
        """
        # Systems embed the same fields by several recipes, most of them a line a field.
        language, lines = self._language(text), map(str.strip, text.split("\n"))
        return [*chain.from_iterable(_of_line(self, line, language) for line in lines if line)]

    def query(self, text: str) -> list[str]:
        """The words of a query, which may be in any language of the memory: the stems of each."""
        own = self._language(text)
        found = self._terms(text, own)
        for other in self.languages if self.stem == "auto" else ():
            if other != own:
                known = {*found, *stop_words(own)}
                found += [term for term in self._terms(text, other) if term not in known]
        return found

    def _language(self, text: str) -> str:
        """Which language's stemmer and stop words serve for a text."""
        if self.stem != "auto":
            return self.stem
        return (len(self.languages) > 1 and language_of(text, self.languages)) or self.languages[0]

    def _terms(self, text: str, language: str) -> list[str]:
        """What is counted of a text in a language."""
        found = runs(text, self.words == "all", self.identifiers == "whole" and language != "turkish")
        return [*chain.from_iterable(map(_reader(self, language), found))]


@lru_cache(16)
def _reader(analysis: Analysis, language: str) -> Callable[[str], tuple[str, ...]]:
    """What is counted of a run of letters, kept by run: stems, or parts of words, and nothing of stop words."""
    every, own, stem = analysis.words == "all", "english" if language == "none" else language, analysis.stem

    def read(run: str) -> tuple[str, ...]:
        words = within(run, every, analysis.identifiers, language)
        found = [w for w in words if every or (w not in stop_words(own) and w not in stop_words(by_script(w)))]
        if size := analysis.ngrams:  # a shorter word is one of them
            return tuple(word[i : i + size] for word in found for i in range(max(1, len(word) - size + 1)))
        if stem == "none":
            return tuple(found)
        return tuple(stemmer((stem == "auto" and by_script(word)) or language)(word) for word in found)

    return lru_cache(200_000)(read)


_of_line = lru_cache(2**15)(Analysis._terms)  # some 30 MB
