"""All pages from `results/` alone: texts first, then the figures that they ask for."""

from collections.abc import Sequence
from pathlib import Path

from feelgood.report.charts.curves import regret_curves
from feelgood.report.rendering import render
from showdown import (
    asking,
    defaults,
    groups,
    posterior,
    published,
    questions,
    ranking,
    searching,
)
from showdown.asking import Asked
from showdown.book import Book, items, section
from showdown.effects import tally_sentence
from showdown.keeping import read
from showdown.shelf import Shelf
from showdown.slimming import roomy, slim

INTRODUCTION = """# Results

The experiments of "Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo
Showdown" (NeurIPS 2025), run again, and the questions that they leave open.
[The last part](#what-has-not-been-run) says what has not been run. Every number and every verdict
on these pages is computed from the files in [`results/`](../../results/README.md) by
`make results`; the studies behind them are in [`studies/`](../../studies/README.md).

*Helps* and *hurts* mean that the 95 % bootstrap interval of the paired difference in final regret
lies wholly below or above zero. *No difference seen* means that the interval holds zero; there may
still be a difference. Agents meet the same contexts and the same noise on a seed. Differences that
do not exist are sometimes seen by chance: 5 to 8 of a hundred with 30 seeds, 5 to 10 with 10 and 8
to 14 with 5. These ranges go from Gaussian to exponential differences. Verdicts are not corrected
for their number; rankings are. Brackets hold intervals. Regret is a loss, so lower is better. Where
a share of seeds is *better*, ties count half. λ weighs the feel-good bonus and b caps it; 1/β is
the temperature of the target: hotter draws scatter more. *Sound* steps follow the curvature of the
target, as they do by default; *the paper’s* are those of its [presets](../reproducing.md). Where
nothing else is said, agents have the preset `beta-1`."""

PAGES = "Pages: " + " · ".join(
    [f"[{group.title.lower()}]({group.name}.md)" for group in groups.GROUPS]
    + ["[posteriors](posterior.md)", "[ranking of tuned agents](ranking.md)"]
)


def build(
    book: Book, asked: Sequence[Asked] = (), searched: Sequence[searching.Row] = ()
) -> dict[str, str]:
    """The pages' texts by file name; `asked` and `searched` are all studies' needs and searches."""
    front = [
        INTRODUCTION,
        PAGES,
        section("In short", items(in_short(book)), questions.headline_figure(book)),
        questions.feel_good(book),
        questions.smoothing(book),
        questions.preconditioning(book),
        questions.metropolis(book),
        questions.underdamping(book),
        posterior.answer(book),
        questions.compute(book),
        published.reproduction(book),
        defaults.default_choice(book),
        asking.what_is_missing(book, asked),
    ]
    first_picture(book)
    texts = {"README.md": "\n\n".join(front) + "\n"}
    for group in groups.GROUPS:
        texts[f"{group.name}.md"] = groups.group_page(book, group)
    texts["posterior.md"] = posterior.page(book)
    texts["ranking.md"] = ranking.page(book, searched)
    return texts


def first_picture(book: Book) -> None:
    """README's picture: the agents out of the box on linear-20 that stay in one picture."""
    agents = ("lints", "linucb", "lmcts", "malats", "fglmcts")
    own = {r.agent: r for r in book.shelf.of("question-default") if r.testbed == "linear-20"}
    drawn = [own[name] for name in agents if name in own]
    if drawn:
        caption = "Mean regret along a run, with a band that holds 10 to 90 % of the seeds."
        book.figure("regret", caption, lambda: regret_curves(drawn))


def in_short(book: Book) -> list[str]:
    """An answer to every question, at settings that were fixed beforehand."""
    kinds = {
        "linear bandits": questions.LINEAR,
        "logistic bandits, Bernoulli likelihood": questions.BONUS_SCALE,
        "neural bandits": (*questions.NEURAL, *questions.DATA_STUDIES),
    }
    bonus = [questions.headline(book, name, studies) for name, studies in kinds.items()]
    smoothed = questions.smoothing_effects(book, book.shelf.of("question-smoothing"))
    apart = questions.told_apart(questions.metropolis_effects(book))
    ranks = posterior.rank_sentences(posterior.measured_runs(book))
    return [
        *bonus,
        questions.paper_headline(book),
        "**Does smoothing matter?** "
        + tally_sentence("Where the cap binds, beside the plain bonus", smoothed),
        "**Does preconditioning help?** "
        + tally_sentence("At equal temperature", questions.preconditioning_effects(book)),
        "**What explains MALATS's win?** " + (" ".join(apart) or questions.NOT_RUN),
        "**Does underdamping hurt?** "
        + tally_sentence(
            "With a kernel that has the right law", questions.underdamping_effects(book)
        ),
        "**How does regret go with posterior error?** " + (" ".join(ranks) or questions.NOT_RUN),
        "**How does regret go with compute?** "
        + questions.compute_sentences(book).get("lmcts", questions.NOT_RUN),
        *(f"**What to use by default: {title}?** {said}" for title, said in defaults.advice(book)),
        "**What could be reproduced?** "
        + published.share_sentence(published.comparisons(book.shelf)),
    ]


def write_pages(results: Path, out: Path) -> list[Path]:
    """Write texts and figures; figures that no page asks for any more are removed."""
    book = Book(Shelf(read(results)))
    texts = build(book, asking.read(results), searching.read(results))
    content: dict[str, bytes] = {name: text.encode() for name, text in texts.items()}
    for name, draw in book.figures.items():
        content[name] = roomy(slim(render(draw(), "svg").decode())).encode()
    for old in out.glob("figures/*.svg"):
        if f"figures/{old.name}" not in content:
            old.unlink()
    written = []
    for name, data in content.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return written
