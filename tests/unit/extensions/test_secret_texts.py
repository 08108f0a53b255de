"""Secrets are found in questions, and questions about secrets are not."""

import importlib.util
from pathlib import Path

import pytest

from steelyard.extensions.secrets import LONGEST, holds_secret

_spec = importlib.util.spec_from_file_location("planted_secrets", Path(__file__).with_name("planted_secrets.py"))
lists = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(lists)


@pytest.mark.parametrize("seed", [1, 2, 3, 2121])
def test_at_most_two_of_two_hundred_planted_secrets_are_kept(seed):
    planted = lists.planted(200, seed)
    assert len(set(planted)) == 200
    assert len([text for text in planted if not holds_secret(text)]) <= 2


def test_at_most_a_few_harmless_questions_are_touched():
    harmless = (Path(__file__).parents[2] / "data" / "harmless-questions.txt").read_text("utf-8").splitlines()
    assert len(harmless) >= 150
    assert len([text for text in harmless if holds_secret(text)]) <= 3


@pytest.mark.parametrize(
    "text",
    [
        "пароль: morkov77",
        "密码是 mangue42x",
        "senha = goiaba1991",
        "DB_PASSWORD%3Dmaracuja7",
        "".join(chr(0xFEE0 + ord(c)) for c in "PASSWORD=") + "maracuja7",
        "pass\u200bword=maracuja7",
        "echo 'maracuja7' | docker login -u ana --password-stdin",
        '<add key="ApiKey" value="4b7d1c9e2f" />',
        "x" * (2 * LONGEST + 1),
    ],
)
def test_neither_language_nor_escapes_nor_length_hide_a_secret(text):
    assert holds_secret(text)


@pytest.mark.parametrize(
    ("number", "is_card"),
    [
        ("4111 1111 1111 1111", True),  # the issuers' own test numbers
        ("378282246310005", True),
        ("6011111111111117", True),
        ("4111 1111 1111 1112", False),  # Luhn's check fails
        ("1234567812345670", False),  # no issuer begins with 1
    ],
)
def test_a_card_has_an_issuer_a_length_and_a_check_digit(number, is_card):
    assert holds_secret(f"order of {number}") is is_card
