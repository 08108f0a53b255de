"""What system-spec-kit's two programs count in a query: keywords and patterns of each intent.

Sources: the code of 8f561032 (TypeScript) and 04a827ec (JavaScript).
"""

from __future__ import annotations

import re


def words(text: str) -> tuple[str, ...]:
    """The words of a list that is written as a text."""
    return tuple(text.split())


FLAT: dict[str, tuple[str, ...]] = {
    "add_feature": words(
        "add create new implement build feature extend introduce support enable integrate develop"
    ),
    "fix_bug": words("fix bug error issue broken crash fail wrong problem debug patch resolve repair incorrect"),
    "refactor": words(
        "refactor clean improve optimize restructure simplify reorganize consolidate migrate modernize rename"
    ),
    "security_audit": words(
        "security vulnerability exploit injection xss csrf authentication authorization permission audit pentest "
        "sanitize validate encrypt decrypt"
    ),
    "understand": words("understand explain describe overview architecture design flow documentation guide learn"),
    "find_spec": words("spec specification requirements scope feature plan tasks checklist implementation"),
    "find_decision": words("decision why chose rationale alternative trade-off tradeoff adr decision-record"),
}
"""The TypeScript code's keywords."""

PRIMARY: dict[str, tuple[str, ...]] = {
    "add_feature": (
        *words("add create implement build develop introduce enable support extend enhance integrate"),
        "new feature", "new api", "new endpoint", "new module", "new component", "dark mode",
    ),
    "fix_bug": (
        *words("fix bug error issue broken crash fail debug resolve repair can't cannot unable won't"),
        "not working", "doesn't work",
    ),
    "refactor": (
        *words("refactor restructure reorganize cleanup optimize simplify modernize migrate"),
        "clean up", "improve code", "reduce technical debt", "extract common",
    ),
    "security_audit": (
        *words("security vulnerability exploit attack audit penetration cve injection xss csrf auth"),
        "penetration test", "security review", "security check",
    ),
    "understand": (
        *words("why explain understand learn documentation overview context background history purpose work"),
        "how does", "what is",
    ),
}  # fmt: skip
SECONDARY: dict[str, tuple[str, ...]] = {
    "add_feature": words(
        "feature capability functionality module component api endpoint interface method function registration "
        "authentication payment dashboard flow"
    ),
    "fix_bug": words(
        "regression defect problem exception incorrect unexpected wrong malfunction glitch flaw login submit "
        "anymore stopped"
    ),
    "refactor": (
        *words("architecture pattern extract rename move consolidate decouple utility"),
        "technical debt", "code quality", "shared module", "project folder",
    ),
    "security_audit": (
        *words("permission encryption sanitize validate threat risk compliance hardening protection"),
        "access control", "sql injection",
    ),
    "understand": words(
        "purpose reason rationale decision design architecture flow process concept meaning caching system schema "
        "module"
    ),
}  # fmt: skip
"""Primary and secondary keywords of the JavaScript code."""


def _patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


PATTERNS: dict[str, tuple[re.Pattern[str], ...]] = {
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
AGAINST_UNDERSTAND = _patterns(
    r"how\s+to\s+(fix|add|create|implement|build|repair|patch)",
    r"what\s+(is\s+)?(wrong|broken|failing|the\s+error|the\s+bug)",
    r"why\s+(is\s+(it\s+)?)?(broken|failing|crashing|not\s+working)",
)
"""The TypeScript code's patterns; one that speaks against understanding leaves 0.3 of its score."""

PATTERNS_JS: dict[str, tuple[re.Pattern[str], ...]] = {
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
