"""What the pages are made of: text in Markdown, and figures that are drawn once it is written."""

import dataclasses
from collections.abc import Callable, Sequence

from feelgood.report.rendering import Chart
from showdown.shelf import Shelf

#: Folder of the figures, beside the pages.
FIGURES = "figures"


@dataclasses.dataclass
class Book:
    """The results, and the figures that the pages have asked for."""

    shelf: Shelf
    figures: dict[str, Callable[[], Chart]] = dataclasses.field(default_factory=dict)

    def figure(self, name: str, caption: str, draw: Callable[[], Chart]) -> str:
        """A figure to be drawn later, as Markdown."""
        self.figures[f"{FIGURES}/{name}.svg"] = draw
        return f"![{caption}]({FIGURES}/{name}.svg)\n\n*{caption}*"


def section(title: str, *paragraphs: str, depth: int = 2) -> str:
    """A heading and what stands below it; empty paragraphs are left out."""
    return "\n\n".join([f"{'#' * depth} {title}", *filter(None, paragraphs)])


def items(sentences: Sequence[str]) -> str:
    """A list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def folded(title: str, text: str) -> str:
    """Text that a click opens."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 1) -> str:
    """A Markdown table; columns from `numbers` on are set to the right."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i < numbers else "--:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
