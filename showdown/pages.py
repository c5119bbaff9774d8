"""All pages from `results/` alone: texts first, then the figures that they ask for."""

import importlib
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

from feelgood.report.charts.curves import regret_curves
from feelgood.report.rendering import render
from showdown import front, pairs
from showdown.book import Book
from showdown.places import by_testbed
from showdown.question import all_questions, page
from showdown.questions import ranking
from showdown.slimming import roomy, slim

#: Pages that modules of their own write: the file, its title, and the function that makes it.
PLUGGED = (
    (
        "agreement.md",
        "Which published numbers could be reproduced?",
        "showdown.published:agreement",
    ),
    ("agreement.csv", "", "showdown.published:agreement_csv"),
    ("worlds.md", "In which worlds does feeling good pay?", "showdown.worlds:page"),
)
#: Folder of the files of pairs, in that of the results.
PAIRS = "pairs"


def build(book: Book) -> dict[str, str]:
    """The pages' texts by file name, and the files of pairs as `pairs/….csv`."""
    texts: dict[str, str] = {}
    rows: dict[str, list[pairs.Row]] = {}
    for question in all_questions():
        texts[f"{question.name}.md"] = page(book, question)
        families = list(question.families(book))
        if families:
            rows[question.name] = pairs.rows_of(book, families)
    others = []
    for name, title, where in PLUGGED:
        made = _plugged(where)
        if made is not None:
            texts[name] = made(book)
            others += [(title, name)] if title else []
    texts["README.md"] = front.page(book, others)
    texts = {name: _only_known_links(text, texts) for name, text in texts.items()}
    first_picture(book)
    for name, own in rows.items():
        texts[f"{PAIRS}/{name}.csv"] = pairs.to_csv(own)
    places = pairs.place_rows(book, by_testbed(book, ranking.STUDY))
    texts[f"{PAIRS}/{ranking.QUESTION.name}.csv"] = pairs.to_csv(places)
    texts["pairs.html"] = pairs.to_html(rows)
    return texts


def _plugged(where: str) -> Callable[[Book], str] | None:
    """The function, or None where there is none."""
    module, name = where.split(":")
    if importlib.util.find_spec(module) is None:
        return None
    found: Callable[[Book], str] | None = getattr(importlib.import_module(module), name, None)
    return found


def _only_known_links(text: str, known: dict[str, str]) -> str:
    """Links to pages beside this one that are not there become words."""
    return re.sub(
        r"\[([^\]]+)\]\(([\w-]+\.md)(#[\w-]+)?\)",
        lambda m: m[0] if m[2] in known or m[2] == "README.md" else m[1],
        text,
    )


def first_picture(book: Book) -> None:
    """README's picture: the agents out of the box on linear-20 that stay in one picture."""
    agents = ("lints", "linucb", "lmcts", "malats", "fglmcts")
    own = {r.agent: r for r in book.shelf.of("question-default") if r.testbed == "linear-20"}
    drawn = [own[name] for name in agents if name in own]
    if drawn:
        caption = "Mean regret along a run, with a band that holds 10 to 90 % of the seeds."
        book.figure("regret", caption, lambda: regret_curves(drawn))


def write_pages(results: Path, out: Path) -> list[Path]:
    """Write texts and figures; pages, files and figures that are not asked for any more go."""
    book = Book.open(results)
    content: dict[Path, bytes] = {}
    for name, text in build(book).items():
        folder = results if name.startswith(f"{PAIRS}/") else out
        content[folder / name] = text.encode()
    for name, draw in book.figures.items():
        content[out / name] = roomy(slim(render(draw(), "svg").decode())).encode()
    old = [*out.glob("*.md"), *out.glob("figures/*.svg"), *(results / PAIRS).glob("*.csv")]
    for path in old:
        if path not in content:
            path.unlink()
    for path, data in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return list(content)
