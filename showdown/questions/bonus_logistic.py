"""Does the feel-good bonus help in logistic bandits, and on which scale?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, Judged, tally_sentence
from showdown.pairing import at, bonus_effects, grid_effects, in_order
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text

STUDY = "question-bonus-scale"
FALLING = "question-falling-logistic"
PAPER = ("logistic-20-b1000", "logistic-40-b1000", "logistic-20-b1", "logistic-40-b1")


def on(book: Book, scale: str) -> list[Effect]:
    """The bonus on the mean reward, or on the score, beside none."""
    return at(bonus_effects(book, [STUDY]), lambda r: r.settings["bonus_on"] == scale)


def scales(book: Book) -> list[Effect]:
    """The bonus on the mean reward beside that on the score, at the same λ."""
    out = []
    for r in in_order(book.shelf.of(STUDY)):
        if r.settings["bonus_on"] == "mean" and r.settings["lam"] > 0:
            twins = book.shelf.twins(r, r.agent, ("bonus_on",))
            score = [t for t in twins if t.settings["bonus_on"] == "score"]
            out.append(effect(settings_text(r, ("lam",)), r, score[0] if score else None))
    return out


def shorter(book: Book, schedule: str) -> list[Effect]:
    """Over 3,000 rounds: weights of one schedule beside none."""
    runs = in_order(book.shelf.of(FALLING))
    plain = [r for r in runs if r.settings["lam"] == 0]
    return [
        effect(settings_text(r, ("lam",)), r, plain[0] if plain else None)
        for r in runs
        if r.settings["lam"] > 0 and r.settings["lam_schedule"] == schedule
    ]


def families(book: Book) -> list[Family]:
    """Both scales, one beside the other, the paper's grids, and weights that fall."""
    return [
        Family.of("on the mean reward, as the paper defines it", on(book, "mean")),
        Family.of("on the score", on(book, "score")),
        Family.of("on the mean beside on the score", scales(book)),
        Family.of("the paper's grids, squared loss", grid_effects(book, PAPER)),
        Family.of("λ_s = λ/√s, 3,000 rounds", shorter(book, "sqrt")),
        Family.of("constant λ, 3,000 rounds", shorter(book, "constant")),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """Every weight on the mean reward, one scale beside the other, and weights that fall."""
    falling = [m for m in found[4].members if m.effect.tested]
    return [*found[0].members, *found[2].members, *falling]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts."""
    return [
        tally_sentence("A bonus on the mean reward", found[0]),
        tally_sentence("A bonus on the score", found[1]),
        tally_sentence("The mean reward beside the score", found[2]),
        tally_sentence("At the paper's settings", found[3]),
        tally_sentence("A weight that falls as λ/√s, over 3,000 rounds", found[4]),
        tally_sentence("A constant one, over 3,000 rounds", found[5]),
    ]


QUESTION = Question(
    name="bonus-logistic",
    place=20,
    title="Does the feel-good bonus help in logistic bandits?",
    asks=(
        "A reward is a Bernoulli draw: 1 with the probability σ(θ·x) of the played arm, else 0. "
        "Here θ·x is the arm's *score*, and σ(z) = 1/(1 + e^−z). That probability is the *mean "
        "reward*, and regret adds up differences of mean rewards. Each round shows 50 arms; their "
        "x and θ have length 1, so that mean rewards lie between 0.27 and 0.73. Agents fit this "
        "law, the Bernoulli likelihood; those of the paper's grids fit 0 and 1 by squared loss. "
        "The paper's bonus is the largest mean reward. A bonus on the largest score is not "
        "bounded by 1. Weights are constant unless they fall as λ/√s, which is what agents have "
        "out of the box. [Agreement](agreement.md) has the paper's numbers in its own "
        "environment."
    ),
    studies=(STUDY, FALLING, *(f"table-lambda-{name}" for name in PAPER)),
    claims=(
        Claim(
            "feel-good sampling generally beats plain sampling in logistic bandits",
            "abstract",
            Says.LOWER,
            "λ from 0.01 to 1 beside 0, the paper's settings: squared loss",
            lambda book: grid_effects(book, PAPER),
            testbeds=2,
            front=True,
        ),
    ),
    families=families,
    shown=shown,
    says=says,
)
