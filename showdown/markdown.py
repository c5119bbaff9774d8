"""Headings, lists and tables in Markdown."""

from collections.abc import Sequence


def section(title: str, *paragraphs: str, depth: int = 2) -> str:
    """A heading and what stands below it; empty paragraphs are left out."""
    return "\n\n".join([f"{'#' * depth} {title}", *filter(None, paragraphs)])


def items(sentences: Sequence[str]) -> str:
    """A list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 1) -> str:
    """A Markdown table; columns from `numbers` on are set to the right."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i < numbers else "--:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
