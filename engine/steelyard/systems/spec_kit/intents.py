"""What a query is for: seven intents, by keywords and patterns.

The document counts keywords: 2 for a primary and 1 for a secondary one, and wants 3.0. Its code never did; the
TypeScript code takes shares of flat keyword lists and of patterns, the JavaScript code has five intents with
primary and secondary keywords at 1 and 0.5. The document names no list, so its classifier counts the words of
both programs and of its own table. Every classifier returns a score for each of its intents. Sources:
seeds/spec-kit.txt, intent classification; the code of 8f561032 and 04a827ec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FALLBACK = "understand"
"""The intent of a query that no other one claims with enough confidence."""


@dataclass(frozen=True)
class Intent:
    """What a query is for, how sure the classifier is (0..1), and the score of every intent it considered."""

    name: str
    confidence: float
    scores: Mapping[str, float]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FLAT: dict[str, tuple[str, ...]] = {
    "add_feature": _words(
        "add create new implement build feature extend introduce support enable integrate develop"
    ),
    "fix_bug": _words("fix bug error issue broken crash fail wrong problem debug patch resolve repair incorrect"),
    "refactor": _words(
        "refactor clean improve optimize restructure simplify reorganize consolidate migrate modernize rename"
    ),
    "security_audit": _words(
        "security vulnerability exploit injection xss csrf authentication authorization permission audit pentest "
        "sanitize validate encrypt decrypt"
    ),
    "understand": _words(
        "understand explain describe overview architecture design flow documentation guide learn"
    ),
    "find_spec": _words("spec specification requirements scope feature plan tasks checklist implementation"),
    "find_decision": _words("decision why chose rationale alternative trade-off tradeoff adr decision-record"),
}
"""The TypeScript code's keywords."""

_PRIMARY: dict[str, tuple[str, ...]] = {
    "add_feature": (
        *_words("add create implement build develop introduce enable support extend enhance integrate"),
        "new feature", "new api", "new endpoint", "new module", "new component", "dark mode",
    ),
    "fix_bug": (
        *_words("fix bug error issue broken crash fail debug resolve repair can't cannot unable won't"),
        "not working", "doesn't work",
    ),
    "refactor": (
        *_words("refactor restructure reorganize cleanup optimize simplify modernize migrate"),
        "clean up", "improve code", "reduce technical debt", "extract common",
    ),
    "security_audit": (
        *_words("security vulnerability exploit attack audit penetration cve injection xss csrf auth"),
        "penetration test", "security review", "security check",
    ),
    "understand": (
        *_words("why explain understand learn documentation overview context background history purpose work"),
        "how does", "what is",
    ),
}  # fmt: skip
_SECONDARY: dict[str, tuple[str, ...]] = {
    "add_feature": _words(
        "feature capability functionality module component api endpoint interface method function registration "
        "authentication payment dashboard flow"
    ),
    "fix_bug": _words(
        "regression defect problem exception incorrect unexpected wrong malfunction glitch flaw login submit "
        "anymore stopped"
    ),
    "refactor": (
        *_words("architecture pattern extract rename move consolidate decouple utility"),
        "technical debt", "code quality", "shared module", "project folder",
    ),
    "security_audit": (
        *_words("permission encryption sanitize validate threat risk compliance hardening protection"),
        "access control", "sql injection",
    ),
    "understand": _words(
        "purpose reason rationale decision design architecture flow process concept meaning caching system schema "
        "module"
    ),
}  # fmt: skip
"""Primary and secondary keywords of the JavaScript code."""


def _patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


_PATTERNS: dict[str, tuple[re.Pattern[str], ...]] = {
    "add_feature": _patterns(
        r"add\s+(a\s+)?(new\s+)?", r"create\s+(a\s+)?", r"implement\s+", r"build\s+(a\s+)?", r"introduce\s+"
    ),
    "fix_bug": _patterns(
        r"fix\s+(the\s+)?",
        r"debug\s+",
        r"(is|are)\s+(broken|failing|crashing)",
        r"(not|doesn't|won't)\s+(work|function|run)",
        r"error\s+(in|with|when)",
        r"how\s+to\s+fix",
    ),
    "refactor": _patterns(
        r"refactor\s+", r"clean(up)?\s+", r"improve\s+(the\s+)?", r"optimize\s+", r"migrate\s+(from|to)\s+"
    ),
    "security_audit": _patterns(
        r"security\s+(audit|review|check)",
        r"vulnerabilit(y|ies)",
        r"(sql|xss|csrf)\s+(injection|attack)",
        r"pentest",
        r"authentication\s+(issue|problem|bug)",
    ),
    "understand": _patterns(
        r"explain\s+(the|how|why)\s+",
        r"(tell|show)\s+me\s+(about|how)",
        r"give\s+(me\s+)?(an?\s+)?overview",
        r"describe\s+(the\s+)?(architecture|design|flow)",
        r"how\s+does\s+(the|this)\s+",
        r"what\s+is\s+(the|this)\s+",
    ),
    "find_spec": _patterns(
        r"(find|show|get)\s+(the\s+)?spec",
        r"what\s+(are|were)\s+the\s+requirements",
        r"what\s+(is|was)\s+the\s+(scope|plan)",
        r"spec(ification)?\s+for\s+",
        r"what\s+(did|does)\s+(the\s+)?(spec|plan)\s+say",
    ),
    "find_decision": _patterns(
        r"why\s+(did|do)\s+we\s+(choose|pick|select|decide)",
        r"what\s+(was|were)\s+the\s+(decision|rationale)",
        r"decision\s+(record|log|history)",
        r"(find|show|get)\s+(the\s+)?decision",
        r"what\s+alternatives?\s+(was|were)\s+considered",
    ),
}
_AGAINST_UNDERSTAND = _patterns(
    r"how\s+to\s+(fix|add|create|implement|build|repair|patch)",
    r"what\s+(is\s+)?(wrong|broken|failing|the\s+error|the\s+bug)",
    r"why\s+(is\s+(it\s+)?)?(broken|failing|crashing|not\s+working)",
)
"""The TypeScript code's patterns; one that speaks against understanding leaves 0.3 of its score."""

_PATTERNS_JS: dict[str, tuple[re.Pattern[str], ...]] = {
    "add_feature": _patterns(
        r"\badd(ing)?\s+(a\s+)?(new\s+)?\w+",
        r"\bcreate\s+(a\s+)?(new\s+)?\w+",
        r"\bimplement(ing)?\s+\w+",
        r"\bbuild(ing)?\s+(a\s+)?(new\s+)?\w+",
        r"\bnew\s+(feature|functionality|capability)",
    ),
    "fix_bug": _patterns(
        r"\bfix(ing)?\s+(the\s+)?\w+",
        r"\bbug\s+(in|with|fix)",
        r"\berror\s+(in|when|with)",
        r"\bnot\s+working",
        r"\bdoesn't\s+work",
        r"\bcrash(ing|es)?",
        r"\bfail(ing|s|ed)?",
    ),
    "refactor": _patterns(
        r"\brefactor(ing)?\s+\w+",
        r"\bclean(ing)?\s*up",
        r"\brestructur(e|ing)",
        r"\bimprove\s+(the\s+)?code",
        r"\btechnical\s+debt",
        r"\bcode\s+quality",
    ),
    "security_audit": _patterns(
        r"\bsecurity\s+(audit|review|check)",
        r"\bvulnerabilit(y|ies)",
        r"\bc[vw]e-?\d*",
        r"\b(xss|csrf|sqli|rce)\b",
        r"\bpenetration\s+test",
        r"\bauth(entication|orization)?\s+(issue|problem|bug)",
    ),
    "understand": _patterns(
        r"\bhow\s+does\s+\w+",
        r"\bwhat\s+is\s+(the\s+)?\w+",
        r"\bwhy\s+(does|did|is|was)",
        r"\bexplain\s+(the\s+)?\w+",
        r"\bunderstand(ing)?\s+\w+",
        r"\bcontext\s+(for|about|on)",
    ),
}

_PAGE: dict[str, tuple[str, ...]] = {
    "add_feature": _words("pattern example architecture"),
    "fix_bug": ("history", "root cause"),
    "refactor": _words("code dependency document"),
    "security_audit": _words("review log"),
    "understand": _words("explore explanation"),
    "find_spec": _words("find show get document retrieve feature"),
    "find_decision": _words("find show get lookup record reason"),
}
"""The words of the document's table of intents, and of their names, that neither program counts; all secondary.

What it calls retrieval and lookup, the TypeScript code's patterns spell out: find, show, get. `feature` is here
because the document's example takes it for a word of add_feature; `reason` is one of the JavaScript code, for an
intent that it lacks.
"""
_FORMS: dict[str, tuple[str, ...]] = {
    "broken": _words("break broke broken"),
    "build": _words("build built"),
    "chose": _words("choose chose chosen"),
    "decision": _words("decision decide"),
    "requirements": ("requirement",),
    "tasks": ("task",),
    "understand": _words("understand understood"),
}
"""The forms of a keyword that no ending makes of it."""
_ENDINGS = {"e": "(?:e|es|ed|ing)", "y": "(?:y|ies|ied|ying)"}


def _whole(keyword: str) -> re.Pattern[str]:
    """A keyword as whole words, in any regular ending: ``crash`` is in "crashes", ``fix`` not in "prefix"."""
    forms = (
        re.escape(word[:-1]) + _ENDINGS.get(word[-1], f"{word[-1]}(?:{word[-1]}?(?:ed|ing)|e?s)?")
        for word in _FORMS.get(keyword, (keyword,))
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)")


def _keywords(name: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The primary keywords, the secondary ones and the patterns of an intent for the document's classifier.

    The JavaScript code says which keyword is primary; one that only the TypeScript code has is. Where the two
    disagree on whose a keyword is, the code with seven intents decides.
    """
    others = {*_FLAT["find_decision"], "reason"} if name == FALLBACK else set()
    second = dict.fromkeys((*_SECONDARY.get(name, ()), *_PAGE[name]))
    first = dict.fromkeys((*_PRIMARY.get(name, ()), *_FLAT[name]))
    patterns = dict.fromkeys(pattern.pattern for pattern in (*_PATTERNS_JS.get(name, ()), *_PATTERNS[name]))
    return (
        tuple(_whole(word) for word in first if word not in second and word not in others),
        tuple(_whole(word) for word in second if word not in others),
        tuple(re.compile(rf"\b(?:{text})") for text in patterns),
    )


_DOCUMENTED = {name: _keywords(name) for name in sorted(_FLAT, key=FALLBACK.__eq__)}
"""By intent, the default last: among equals another one goes before it."""

INTENTS, INTENTS_JS = tuple(_FLAT), tuple(_PRIMARY)
"""The seven intents of the document and the TypeScript code, the five of the JavaScript code."""
THRESHOLD = 3.0
THRESHOLD_SHIPPED = 0.08
THRESHOLD_JS = 0.25


def classify(query: str) -> Intent:
    """The document's classifier: 2 for each primary keyword, 1 for each secondary one, at least 3.0 to be sure.

    Keywords are whole words, in any regular ending. A pattern of either program that fits counts as the secondary
    keyword of a query that has none of its intent, for the document speaks of keyword patterns and counts none in
    its example. Among equals another intent goes before the default. The confidence is score / (score + 1), a
    monotone map of ours, for the document's 0.85 cannot be computed from its own numbers.

    >>> classify("fix login crash after update").scores["fix_bug"]
    5.0
    >>> classify("why did we choose NATS").name, classify("a prefix of the key").scores["fix_bug"]
    ('find_decision', 0.0)
    """
    text = query.lower()
    scores = {}
    for name, (primary, secondary, patterns) in _DOCUMENTED.items():
        asked = any(pattern.search(text) for pattern in patterns)
        scores[name] = 2.0 * _matching(primary, text) + max(_matching(secondary, text), asked)
    name = _best(scores, THRESHOLD)
    return Intent(name, scores[name] / (scores[name] + 1.0), scores)


def classify_shipped(query: str) -> Intent:
    """The TypeScript classifier: 0.6 of the share of keywords and 0.4 of the share of patterns found.

    >>> classify_shipped("add user registration feature").confidence
    0.18
    """
    text = query.lower().strip()
    scores = dict.fromkeys(_FLAT, 0.0)
    if not text:
        return Intent(FALLBACK, 0.0, scores)
    for name, words in _FLAT.items():
        count = _found(words, text)
        share = (0.3 if count == 1 else count) / len(words)
        patterns = _PATTERNS[name]
        scores[name] = 0.6 * share + 0.4 * _matching(patterns, text) / len(patterns)
    if _matching(_AGAINST_UNDERSTAND, text):
        scores[FALLBACK] *= 0.3
    name = _best(scores, THRESHOLD_SHIPPED)
    return Intent(name, min(1.0, max(scores.values())), scores)


def classify_js(query: str) -> Intent:
    """The JavaScript classifier: five intents, primary keywords 1 and secondary ones 0.5, patterns 0.4 each."""
    text = query.lower().strip()
    if not text:
        return Intent(FALLBACK, 0.0, {})
    scores = dict.fromkeys(_PRIMARY, 0.0)
    for name, primary in _PRIMARY.items():
        secondary = _SECONDARY[name]
        most = len(primary) + 0.5 * len(secondary)
        share = min(1.0, (_found(primary, text) + 0.5 * _found(secondary, text)) / max(3.0, 0.3 * most))
        scores[name] = 0.6 * share + 0.4 * min(1.0, 0.4 * _matching(_PATTERNS_JS[name], text))
    name = _best(scores, THRESHOLD_JS)
    return Intent(name, max(scores.values()), scores)


def intent(query: str) -> str:
    """The name of the intent by the document's classifier."""
    return classify(query).name


def intent_shipped(query: str) -> str:
    """The name of the intent by the TypeScript classifier."""
    return classify_shipped(query).name


def intent_js(query: str) -> str:
    """The name of the intent by the JavaScript classifier."""
    return classify_js(query).name


def _found(words: tuple[str, ...], text: str) -> int:
    return sum(word in text for word in words)


def _matching(patterns: tuple[re.Pattern[str], ...], text: str) -> int:
    return sum(pattern.search(text) is not None for pattern in patterns)


def _best(scores: Mapping[str, float], least: float) -> str:
    """The intent with the highest score, the first among equals; the fallback below `least`."""
    name = max(scores, key=lambda intent: scores[intent])
    return name if scores[name] >= least else FALLBACK
