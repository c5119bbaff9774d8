"""README is one screen that a stranger understands."""

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def sentences(text: str) -> list[str]:
    """The sentences of a page's prose: no code, no tables, no headings, no pictures."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r"\s*(\||#|!|<)", line)]
    prose = re.sub(r"\n\s*(?:[-*]|\d+\.)\s", "\n\n", "\n".join(lines))
    return [
        " ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+|\n\s*\n| · ?", prose) if s.strip()
    ]


def test_sentences_end_at_full_stops_and_empty_lines() -> None:
    found = sentences("One: two\nthree. Four\n\n- five: six\n- seven\n\n| a: b |\n")
    assert found == ["One: two three.", "Four", "five: six", "seven"]


def test_no_sentence_is_longer_than_30_words() -> None:
    assert len(sentences(TEXT)) > 10
    assert [s for s in sentences(TEXT) if len(s.split()) > 30] == []


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 90


def test_it_names_the_two_commands_the_paper_and_how_to_cite() -> None:
    for word in ("make demo", "make test", "NeurIPS 2025", "arXiv:2507.15290", "CITATION.cff"):
        assert word in TEXT
