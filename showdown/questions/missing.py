"""What has not been run."""

from collections.abc import Sequence

from showdown.asking import Asked
from showdown.book import Book, grid
from showdown.effects import FEWEST_SEEDS
from showdown.question import Question
from showdown.wording import enumeration


def _here(book: Book) -> dict[tuple[str, str, str, bool], int]:
    """Number of kept seeds by study, testbed, agent, and whether only measured ones count."""
    counts: dict[tuple[str, str, str, bool], int] = {}
    for kept in book.shelf.kept:
        for study in kept.studies:
            for measured in (False, True):
                if not measured or kept.result.posterior is not None:
                    key = (study, kept.result.testbed, kept.result.agent, measured)
                    counts[key] = counts.get(key, 0) + len(kept.result.seeds)
    return counts


def lacking(book: Book, studies: Sequence[str]) -> list[str]:
    """Which of these studies are not finished; one sentence each."""
    here, out = _here(book), []
    for study in studies:
        own: list[Asked] = [a for a in book.asked if a.study == study]
        wanted = sum(a.seeds for a in own)
        there = sum(
            min(a.seeds, here.get((a.study, a.testbed, a.agent, a.measured), 0)) for a in own
        )
        if there < wanted:
            out.append(f"Not run yet: {wanted - there:,} of the {wanted:,} runs of `{study}`.")
    return out


def more(book: Book) -> list[str]:
    """Which studies are not finished, and where."""
    asked: Sequence[Asked] = book.asked
    here = _here(book)
    total, there = sum(a.seeds for a in asked), 0
    rows = []
    for study in dict.fromkeys(a.study for a in asked):
        own = [a for a in asked if a.study == study]
        counts = [min(a.seeds, here.get((a.study, a.testbed, a.agent, a.measured), 0)) for a in own]
        there += sum(counts)
        wanted = sum(a.seeds for a in own)
        lacking = [a for a, count in zip(own, counts, strict=True) if count < a.seeds]
        if not sum(counts):
            rows.append([f"`{study}`", f"0 of {wanted:,}", "all"])
        elif lacking:
            rows.append([f"`{study}`", f"{sum(counts):,} of {wanted:,}", _named(lacking, own)])
    said = (
        f"The [studies](../../studies/README.md) ask for {total:,} runs of one seed each, counted "
        f"once for every study that asks. {there:,} are here."
    )
    table = grid(("study", "here", "missing, wholly or in part"), rows, numbers=3) if rows else ""
    return [said, table] if asked else ["Not known."]


def _named(lacking: Sequence[Asked], own: Sequence[Asked]) -> str:
    """`linear-40: fgmalats; logistic-20`: a testbed alone stands for all its agents."""
    parts = []
    for testbed in dict.fromkeys(a.testbed for a in lacking):
        agents = [a.agent for a in lacking if a.testbed == testbed]
        if len(agents) == sum(a.testbed == testbed for a in own):
            parts.append(testbed)
        elif len(agents) > 2:
            parts.append(f"{testbed}: {len(agents)} agents")
        else:
            parts.append(f"{testbed}: {enumeration([f'`{name}`' for name in agents])}")
    return "; ".join(parts)


QUESTION = Question(
    name="missing",
    place=210,
    title="What has not been run",
    asks=(
        "Most runs of networks need a GPU. Where a study is not finished, pages judge the part "
        f"that is, and only pairs with at least {FEWEST_SEEDS} common seeds."
    ),
    more=more,
)
