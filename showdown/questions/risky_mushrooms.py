"""What do networks do when mushrooms are risky, as the paper's text has them?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from showdown import yardsticks
from showdown.book import Book, grid, section
from showdown.effects import FEWEST_SEEDS, effect, regret_text
from showdown.families import Family, tally_sentence
from showdown.question import Question
from showdown.questions.missing import lacking
from showdown.shelf import without_bonus
from showdown.wording import count

STUDY = "question-mushroom-risky"
BONUS, HEAT, OTHERS = (
    "the bonus, beside none",
    "temperature × 400, beside the paper's",
    "other agents, beside `neural-lmcts`",
)


def heat(r: AgentResult) -> float:
    """How many times the paper's temperature; agents without one have 1."""
    return float(r.settings.get("temperature", 1.0)) if r.agent.endswith("lmcts") else 1.0


def runs(book: Book) -> list[AgentResult]:
    """All of them, by agent, temperature and weight."""
    return sorted(book.shelf.of(STUDY), key=lambda r: (r.agent, heat(r), _weight(r)))


def _weight(r: AgentResult) -> float:
    return float(r.settings.get("lam", 0.0)) if without_bonus(r.agent) else 0.0


def label(r: AgentResult) -> str:
    """`λ = 5, temperature × 400`."""
    parts = [f"λ = {_weight(r):g}"] if _weight(r) else []
    return ", ".join(parts + ([f"temperature × {heat(r):g}"] if heat(r) != 1 else []))


def families(book: Book) -> list[Family]:
    """The bonus, the temperature and the other agents; nothing before something has been run."""
    own = runs(book)
    plain = {(r.agent, heat(r)): r for r in own if not _weight(r)}
    langevin = plain.get(("neural-lmcts", 1.0))
    pairs = {
        BONUS: [
            effect(label(r), r, plain.get((without_bonus(r.agent) or "", heat(r))))
            for r in own
            if _weight(r)
        ],
        HEAT: [
            effect(label(r), r, plain.get((r.agent, 1.0)))
            for r in own
            if heat(r) != 1 and not _weight(r)
        ],
        OTHERS: [
            effect("beside `neural-lmcts`", r, langevin)
            for (agent, _), r in plain.items()
            if agent != "neural-lmcts"
        ],
    }
    return [Family.of(name, effects) for name, effects in pairs.items() if effects]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """What is missing, the counts, and who beats a fixed arm."""
    out = lacking(book, [STUDY])
    if not found:
        return [*out, "Nothing can be said before it is run."]
    subjects = {
        BONUS: "The bonus, beside none",
        HEAT: "A temperature in the units of the rewards, beside the paper's",
        OTHERS: "Other agents, beside `neural-lmcts`",
    }
    out += [tally_sentence(subjects[family.name], family) for family in found]
    judged = [r for r in runs(book) if len(r.seeds) >= FEWEST_SEEDS]
    known = [r for r in judged if yardsticks.key_of(r) in book.yardsticks]
    if known:
        beaten = sum(bool(yardsticks.dagger(r, book.yardsticks)) for r in known)
        out.append(f"Of {count(len(known), 'setting')}, {beaten} do not beat the best fixed arm.")
    return out


def more(book: Book) -> list[str]:
    """Regrets of all settings."""
    rows = [
        [
            f"`{r.agent}`",
            label(r),
            regret_text(r, yardsticks.dagger(r, book.yardsticks)),
            str(len(r.seeds)),
        ]
        for r in runs(book)
    ]
    about = "Means, with medians in brackets. † does not beat the best fixed arm."
    table = grid(("agent", "changed", "regret", "seeds"), rows, numbers=2)
    return [section("Regrets", table, about)] if rows else []


QUESTION = Question(
    name="risky-mushrooms",
    place=34,
    title="What do networks do when mushrooms are risky?",
    asks=(
        "In the paper's text an edible mushroom pays 5, a poisonous one 5 or −35, and leaving it "
        "0. Its results are those of rewards 0 and 1, as on our testbed `mushroom`. Here networks "
        "play `mushroom-risky` over 3,000 rounds, at the paper's settings for mushrooms. Rewards "
        "are some 20 times larger, and their squares 400 times: hence also a temperature 400 times "
        "higher, and larger weights of the bonus."
    ),
    studies=(STUDY,),
    families=families,
    says=says,
    more=more,
)
