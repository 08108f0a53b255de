"""Whether a text holds a secret: such a query is kept nowhere, whatever else it says.

The name of a secret counts only with a value, so questions about passwords are kept.
"""

from __future__ import annotations

import re
from unicodedata import normalize
from urllib.parse import unquote

from steelyard.extensions.secrets import forms

LONGEST_READ = 20_000
"""Characters: what is longer is no question, and is not looked through."""
HEX = 32
"""Digits from which on a hexadecimal number is taken for a key, unless the text speaks of hashes."""


def holds_secret(text: str) -> bool:
    """Whether a text may hold a key, a password, a token or the number of a card.

    >>> holds_secret("what is the password policy"), holds_secret("why is DB_PASSWORD=falcon7 refused")
    (False, True)
    """
    text = normalize("NFKC", text).translate(_INVISIBLE)
    text = f"{text}\n{unquote(text)}" if "%" in text else text
    return len(text) > 2 * LONGEST_READ or bool(
        forms.ISSUED.search(text)
        or any(map(_is_assigned, forms.ASSIGNED.finditer(text)))
        or any(map(_is_part, forms.PARTS.finditer(text)))
        or any(map(_is_typed, forms.COMMANDS.finditer(text)))
        or any(_is_card(match[0]) for match in forms.CARD.finditer(text))
        or _is_seed(text)
        or _is_random(text)
    )


def loggable_text(text: str) -> str:
    """What may be written of a query: its text, or nothing where that may hold a secret."""
    return "" if holds_secret(text) else text


_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])


def _is_value(value: str) -> bool:
    """Whether what follows the name of a secret is its value: no reference, no mask, no word of a sentence."""
    value = value.strip("\"'`()[]{},;.:!?") if not forms.REFERENCE.match(value) else ""
    return bool(value) and value.lower() not in forms.ORDINARY and not forms.ENDINGS.match(value.lower())


def _is_mixed(value: str) -> bool:
    """Whether a value has digits or signs among its letters, as a password has and a word has not."""
    value = value.rstrip("\"'`).,;:!?") if value[-1:] in "\"'`).,;:?" else value
    if not _is_value(value) or forms.ALGORITHMS.fullmatch(value):
        return False
    letters = any(map(str.isalpha, value))
    return letters and (any(map(str.isdigit, value)) or bool(re.search(r"[!@#$%^&*+~]", value)))


def _is_assigned(match: re.Match[str]) -> bool:
    if match["weak"]:
        its = match["its"]
        return _is_mixed(its) and len(its) >= 8 and len(forms.SHARD.findall(its)) >= 4
    if re.search(forms.HARMLESS_ENDS, match["more"], re.IGNORECASE):
        return False
    value = match["value"]
    if match["sign"] in (":", ">") or match[0][match.start("sign") - match.start() :].startswith("= "):
        return _is_value(value)
    return not forms.REFERENCE.match(value) and value.strip("\"'`()") != ""


def _is_part(match: re.Match[str]) -> bool:
    kind = match.lastgroup or ""
    value = match[kind]
    if kind == "flag":
        # What is quoted is no word of a sentence.
        quoted = bool(match["quote"]) and not forms.REFERENCE.match(value)
        return not re.search(forms.HARMLESS_ENDS, match["end"]) and (quoted or _is_value(value))
    if kind in ("said", "authorization"):
        return _is_value(value)
    if kind == "number":
        return sum(map(str.isdigit, value)) >= 3
    if kind == "bearer":
        return _is_value(value) and bool(re.search(r"\d|=|[a-z][A-Z]", value))
    return _is_mixed(value)


def _is_typed(match: re.Match[str]) -> bool:
    """Whether what a command was given where it takes a password is one."""
    value = match[match.lastgroup or 0]
    return not forms.REFERENCE.match(value) and value.lower() not in forms.ORDINARY


def _is_card(text: str) -> bool:
    """Whether this is the number of a card: an issuer's first digits, a length, Luhn's check (ISO/IEC 7812)."""
    digits = [*map(int, filter(str.isdigit, text))]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    issued = forms.ISSUER.fullmatch("".join(map(str, digits)))
    return issued is not None and (sum(doubled) + sum(digits[::-2])) % 10 == 0


def _is_seed(text: str) -> bool:
    """Whether this is the phrase of a wallet: 12 to 24 short words of which none joins a sentence (BIP 39)."""
    words = re.findall(
        r"\S+", re.sub(r"(?i)^.*\b(?:seed|phrase|mnemonic|words|wallet)\b\W*(?:is|:)?", "", text[:1000])
    )
    plain = all(re.fullmatch(r"[a-z]{3,8}", word) for word in words)
    return plain and len(words) in (12, 15, 18, 21, 24) and not forms.STOPS.search(" ".join(words))


def _is_random(text: str) -> bool:
    """Whether a word of the text was drawn and not written."""
    named = bool(forms.NAMES.search(text))
    if named and forms.IDS.search(text):
        return True
    hashes = not named and bool(forms.HASHES.search(text))
    return any(_is_drawn(match[0], hashes) for match in forms.TOKEN.finditer(forms.IDS.sub(" ", text)))


def _is_drawn(token: str, hashes: bool) -> bool:
    pieces = re.split(r"[^A-Za-z0-9]+", token)
    return any(_is_drawn_piece(piece, hashes) for piece in pieces if len(piece) >= 16) or _is_drawn_whole(pieces)


def _is_drawn_piece(piece: str, hashes: bool) -> bool:
    """Whether a run of letters and digits is a number in base 16, 32, 36 or 62 and no identifier."""
    if re.fullmatch(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)", piece):
        return len(piece) >= HEX and not piece.isdigit() and not hashes
    turns = len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", piece))
    most = 4.0 if piece in (piece.lower(), piece.upper()) else 2.8
    return (turns >= 4 and len(piece) / len(forms.SHARD.findall(piece)) <= most) or not _is_written(piece)


def _is_written(text: str) -> bool:
    """Whether the letters follow one another as in words: of drawn ones a third does (720 texts: none below)."""
    pairs = re.findall(r"(?=([a-z]{2}))", text.lower())
    return len(pairs) < 8 or sum(pair in forms.PAIRS for pair in pairs) >= 0.6 * len(pairs)


def _is_drawn_whole(pieces: list[str]) -> bool:
    """The same of a number in base 64, whose other two digits part it."""
    whole = "".join(pieces)
    kinds = all(re.search(kind, whole) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    return len(whole) >= 20 and (
        (kinds and len(whole) / sum(len(forms.SHARD.findall(piece)) for piece in pieces) <= 2.6)
        or not _is_written(" ".join(pieces))
    )
