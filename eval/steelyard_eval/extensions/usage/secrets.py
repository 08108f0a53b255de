"""What looks like a secret in a query: such a query is not kept, whatever else it says."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

_KNOWN = re.compile(
    r"""
      -----BEGIN                                                   # keys and certificates in PEM
    | \b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{12,}                       # AWS
    | \bgh[pousr]_\w{16,} | \bgithub_pat_\w+ | \bglpat-[\w-]{12,}  # GitHub, GitLab
    | \b(?:sk|pk|rk|whsec)[-_][\w-]{12,}                           # OpenAI, Anthropic, Stripe and others
    | \bxox[abeoprs]-[\w-]{8,} | \bxapp-[\w-]{8,}                  # Slack
    | \bAIza[\w-]{20,} | \bya29\.[\w-]{10,}                        # Google
    | \beyJ[\w-]{8,}\.[\w-]{4,}                                    # JSON web tokens
    | \b(?:npm|pypi|dop_v1|shpat|hf|lin_api|sq0\w{3}|SG|ATATT|dckr_pat|nvapi|r8|gsk|xai|tvly)[-_.][\w.-]{12,}
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@                    # addresses with a password
    | \b(?:bearer|basic)\s+[\w.+/=~-]{8,}
    | \b(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_ ]?key|access[-_ ]?key|client[-_ ]?secret|credentials?
        |private[-_ ]?key|auth|cookie|session(?:id)?|pin|otp|kennwort|passwort)\b
        ["']?\s*(?:[:=]|\bis\b|\blautet\b)\s*\S{3,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.~!@#$%^&*-]{16,}")
RANDOM = 3.2
"""Bits a character from which on a long word with digits and letters is taken for random."""


def holds_secret(text: str) -> bool:
    """Whether a text may hold a key, a password or a token.

    >>> holds_secret("how do we rotate keys"), holds_secret("use sk-live-4f9a8b7c6d5e4f3a2b1c")
    (False, True)
    """
    return bool(_KNOWN.search(text)) or any(map(_is_random, _TOKEN.findall(text)))


def _is_random(word: str) -> bool:
    """Whether a word mixes digits and letters as no word and no path does."""
    digits, letters = sum(map(str.isdigit, word)), sum(map(str.isalpha, word))
    if digits < 3 or letters < 3:
        return False
    counts = Counter(word).values()
    bits = -sum(n / len(word) * log2(n / len(word)) for n in counts)
    return bits >= RANDOM
