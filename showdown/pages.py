"""All pages from `results/` alone: texts first, then the figures that they ask for."""

from collections.abc import Callable
from pathlib import Path

from feelgood.report.charts.curves import regret_curves
from feelgood.report.rendering import render
from showdown import (
    front,
    pairs,
    published,
    world_agents,
    world_frontier,
    world_many,
    world_samplers,
    world_tables,
    world_wrong,
    worlds,
)
from showdown.book import Book
from showdown.places import by_testbed
from showdown.question import all_questions, page
from showdown.questions import ranking
from showdown.slimming import roomy, slim

#: Pages that modules of their own write, with their titles.
OTHERS: tuple[tuple[str, str, Callable[[Book], str]], ...] = (
    ("agreement.md", "Which published numbers are reproduced?", published.agreement),
    ("worlds.md", "In which worlds does feeling good pay?", worlds.page),
    (world_frontier.PAGE, "What do agents lose at worst, and on average?", world_tables.frontiers),
    (
        world_wrong.PAGE,
        "What do bonus and heat add in which world?",
        world_tables.sweeps,
    ),
    (world_samplers.PAGE, "Which samplers keep the promise of the bonus?", world_samplers.page),
    (world_agents.PAGE, world_agents.TITLE, world_agents.page),
    (world_many.PAGE, world_many.TITLE, world_many.page),
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
    for name, _, write in OTHERS:
        texts[name] = write(book)
    texts["agreement.csv"] = published.agreement_csv(book)
    texts["README.md"] = front.page(book, [(title, name) for name, title, _ in OTHERS])
    first_picture(book)
    for name, own in rows.items():
        texts[f"{PAIRS}/{name}.csv"] = pairs.to_csv(own)
    places = pairs.place_rows(book, by_testbed(book, ranking.STUDY))
    texts[f"{PAIRS}/{ranking.QUESTION.name}.csv"] = pairs.to_csv(places)
    texts[f"{PAIRS}/{world_frontier.FILE}.csv"] = pairs.to_csv(world_frontier.rows(book))
    texts[f"{PAIRS}/{world_agents.FILE}.csv"] = pairs.to_csv(world_agents.rows(book))
    texts["pairs.html"] = pairs.to_html(rows)
    return texts


def first_picture(book: Book) -> None:
    """README's picture: the agents out of the box on linear-20 that stay in one picture."""
    agents = ("lints", "linucb", "lmcts", "malats", "fglmcts")
    own = {r.agent: r for r in book.shelf.of("question-default") if r.testbed == "linear-20"}
    drawn = [own[name] for name in agents if name in own]
    if drawn:
        caption = "Mean regret along a run, with a band that holds 10 to 90 % of the seeds."
        book.figure("regret", caption, lambda: regret_curves(drawn))


def stale(book: Book, results: Path, out: Path) -> list[str]:
    """Pages and files that are missing, superfluous or other than the results give.

    Figures only have to be there: they are drawn by the same command.
    """
    wanted = {_place(results, out, name): text for name, text in build(book).items()}
    found = [
        str(path) for path in _old(results, out) if path.suffix != ".svg" and path not in wanted
    ]
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            found.append(str(path))
    drawn = {f"figures/{path.name}" for path in out.glob("figures/*.svg")}
    return found + sorted(drawn ^ set(book.figures))


def _place(results: Path, out: Path, name: str) -> Path:
    return (results if name.startswith(f"{PAIRS}/") else out) / name


def _old(results: Path, out: Path) -> list[Path]:
    """All that has been written before."""
    return [*out.glob("*.*"), *out.glob("figures/*.svg"), *(results / PAIRS).glob("*.csv")]


def write_pages(book: Book, results: Path, out: Path) -> list[Path]:
    """Write texts and figures; pages, files and figures that are not asked for any more go."""
    content: dict[Path, bytes] = {}
    for name, text in build(book).items():
        content[_place(results, out, name)] = text.encode()
    for name, draw in book.figures.items():
        content[out / name] = roomy(slim(render(draw(), "svg").decode())).encode()
    for path in _old(results, out):
        if path not in content:
            path.unlink()
    for path, data in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return list(content)
