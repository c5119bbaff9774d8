"""How to read the pages: words, intervals, corrections, stuck seeds, yardsticks."""

from showdown.book import section
from showdown.effects import FEWEST_SEEDS
from showdown.question import MARGIN, Question

#: False verdicts of a hundred, by seeds, of differences that do not exist: the studentised
#: interval beside Student's, from 2,000 samples of each law. `tests/test_showdown_reading.py`
#: measures some of them again.
FALSE_VERDICTS = {
    "Gaussian": ((5, 5), (5, 5), (5, 5)),
    "exponential": ((6, 9), (5, 8), (5, 6)),
    "one seed in six stuck": ((3, 12), (2, 8), (4, 5)),
    "one seed in twenty stuck": ((36, 35), (22, 21), (3, 9)),
}


def _false_verdicts() -> str:
    from showdown.markdown import grid

    rows = [
        [law, *(f"{ours} ({student})" for ours, student in own)]
        for law, own in FALSE_VERDICTS.items()
    ]
    return grid(("differences", "20 seeds", "30 seeds", "100 seeds"), rows)


WORDS = f"""\
- **Regret** is what the best arms would have paid beyond what the agent's arms did. It is a
  loss: lower is better.
- **A pair** is two agents on the same seeds: they meet the same contexts and the same noise.
  Its difference is the mean over seeds of regret with something, less regret without it.
- **Helps** and **hurts** are said by Holm's rule at 5 % within a family, the pairs of one row
  of a table of counts. The chance of any false word in a family is then at most 5 %.
- **Benjamini and Hochberg's rule** finds more: of its finds 5 % are false on average.
- **No difference shown** does not say that there is none.
- **Not enough yet**: fewer than {FEWEST_SEEDS} common seeds, diverged chains, or not run.
- **Better on x % of seeds**, in the files of pairs: ties within rounding count half.
- λ weighs the feel-good bonus, b caps it, 1/β is the temperature of the target."""

CLAIMS = f"""\
A claim of the paper is judged by one number: the relative change of regret, averaged over its
pairs seed by seed. A claim of a gain *holds* if the whole interval lies below zero. It *does
not hold* if the interval excludes a gain of {100 * MARGIN:g} %. Else it is *open*. Claims of
a loss are judged the other way round. These intervals are wider than 95 %: all claims
together are right with 95 % (Bonferroni's rule)."""

INTERVALS = """\
Differences have studentised bootstrap intervals, and p belongs to the same bootstrap. They
hold for skewed and for bimodal differences, where some seeds are stuck. Means of one agent
have BCa intervals. The table counts false verdicts of a hundred where no difference exists,
in brackets those of Student's interval. What happens to one seed in twenty needs 100 seeds."""

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
        section("Intervals", INTERVALS, _false_verdicts()),
        section("Stuck seeds", STUCK),
        section("Yardsticks", YARDSTICKS),
    ],
)
