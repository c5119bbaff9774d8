"""How to read the pages: words, intervals, corrections, stuck seeds, yardsticks."""

import csv
from pathlib import Path

from showdown.book import grid, section
from showdown.changes import SEVERAL
from showdown.effects import FAR_OFF, FEWEST_SEEDS
from showdown.question import MARGIN, Question
from showdown.wording import FAR

#: Shares of false intervals, measured by `bench/false_intervals.py`.
FALSE_INTERVALS = Path(__file__).resolve().parents[2] / "bench" / "false_intervals.csv"


def false_intervals() -> list[dict[str, str]]:
    """The lines of that file."""
    with FALSE_INTERVALS.open(newline="") as file:
        return list(csv.DictReader(file))


def _false_intervals() -> str:
    """A table of a hundred: ours at 95 %, Student's, and that of claims."""
    rows: dict[str, list[str]] = {}
    for line in false_intervals():
        ours, student, claims = (100 * float(line[n]) for n in ("studentised", "student", "claims"))
        told = f"{ours:.0f} ({student:.0f}), {claims:.1f}"
        rows.setdefault(line["law"], []).append(told)
    seeds = list(dict.fromkeys(line["seeds"] for line in false_intervals()))
    header = ("differences", *(f"{n} seeds" for n in seeds))
    claims = 100 * (1 - float(false_intervals()[0]["claims_level"]))
    about = (
        "The table counts false intervals of a hundred where no difference exists: ours at 95 %, "
        f"in brackets Student's, and last that of claims, which should be {claims:.1f}."
    )
    return f"{about}\n\n{grid(header, [[law, *own] for law, own in rows.items()])}"


WORDS = f"""\
- **Regret** is what the best arms would have paid beyond what the agent's arms did. It is a
  loss: lower is better.
- **A pair** is two agents on the same seeds: they meet the same contexts and the same noise.
  Its difference is the mean over seeds of regret with something, less regret without it.
- **Lower** and **higher** regret are said by Holm's rule at 5 % within a family, the pairs of one
  row of a table of counts. The chance of any false word in a family is then at most 5 %. In the
  files of pairs the words are *helps* and *hurts*.
- **Benjamini and Hochberg's rule** (BH) finds more: on average at most 5 % of its finds are false.
- **Raw** counts have no correction. No verdict rests on them.
- **No difference shown** does not say that there is none.
- **Not enough yet**: fewer than {FEWEST_SEEDS} common seeds, diverged chains, or not run.
- **Better on x % of seeds**, in the files of pairs: ties within rounding count half.
- λ weighs the feel-good bonus, b caps it, 1/β is the temperature of the target."""

CLAIMS = f"""\
A claim of the paper is judged by one number: the relative change of regret. It is the geometric
mean of ratios of mean regrets. Pairs of a testbed count alike, and so do testbeds. So twice the
regret on one testbed and half of it on another cancel.

A claim of a gain *holds* if the whole interval lies below zero. That is asked first: a gain of 2 %
that is sure *holds*, although it is less than {100 * MARGIN:g} %. Else it *does not hold* if the
interval excludes a gain of {100 * MARGIN:g} %. Else it is *open*. Claims of a loss are judged the
other way round.

Where there are {SEVERAL} or more testbeds, none decides alone: each is left out in turn, and the
verdict must stay. Else the claim is *open* and *hangs on* that testbed. Two testbeds are judged
together, and each stands by itself on the claim's page. The claim is *open* if it holds on one and
does not hold on the other. A claim about
logistic bandits is open while only one of the two was run.

These intervals are wider than 95 %. The intervals of all claims hold together with probability
95 % (Bonferroni's rule), except where stuck seeds are rare, as the next table says. An interval
uses all seeds of each pair; they are drawn anew for all pairs together."""

INTERVALS = f"""\
Differences have studentised bootstrap intervals, and p belongs to the same bootstrap. They hold
for skewed differences, and where one seed in six is stuck. Rarer stuck seeds need 100 seeds: with
fewer, no such seed may have been seen. Intervals of claims, which are wider, need 30 seeds where
one in six is stuck. Means of one agent have BCa intervals. In the files of pairs an end is empty
that is farther off than {FAR_OFF:.0f} times either regret. On pages *no bound* is
{FAR + 1:.0f} times the regret or more."""

STUCK = """\
A seed is *stuck* if its regret over the last 500 rounds is nearer to that of chance than to that
of a learner who is told everything. On made worlds that learner loses nothing; on data sets it is
the forest below. Means and medians are both shown, because a few stuck seeds move the mean
alone."""

YARDSTICKS = """\
Every page has the regret of arms by chance and of the best fixed arm. Data sets also have
that of a random forest of 100 trees. It is told the rewards of all arms of past rows and is
trained anew whenever these have doubled. An agent marked † does not beat the best fixed arm.
[`yardsticks.csv`](../../results/yardsticks.csv) has all of them."""

QUESTION = Question(
    name="reading",
    place=200,
    title="How to read these pages",
    asks=(
        "Every number and every verdict is computed from the files in "
        "[`results/`](../../results/README.md) by `make results`. The "
        "[studies](../../studies/README.md) say what was run."
    ),
    more=lambda book: [
        section("Words", WORDS),
        section("Claims", CLAIMS),
        section("Intervals", INTERVALS, _false_intervals()),
        section("Stuck seeds", STUCK),
        section("Yardsticks", YARDSTICKS),
    ],
)
