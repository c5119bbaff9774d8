"""Which part of a sampler lowers regret: correction, warm-up, variance reduction?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, tally_sentence
from showdown.pairing import at, in_order, steps_text
from showdown.question import Claim, Question, Says
from showdown.shelf import is_sound, settings_text
from showdown.wording import capital

STUDY = "question-metropolis"
WHOLE = "MALA with warm-up beside LMC"
CORRECTION = "the correction alone"
WARM_UP = "the warm-up alone"
FEWER = "5 steps of LMC beside 25"
COLDER = "MALA with warm-up beside LMC, twice the β"
STATED, RELEASED = 0.1, 1.0
LINUCB = {
    STATED: "MALATS beside LinUCB, the paper's α = 0.1",
    RELEASED: "MALATS beside LinUCB, the released α = 1",
}
TUNED = "MALATS beside LinUCB, both tuned alike"


def told_apart(book: Book) -> dict[str, list[Effect]]:
    """MALA and LMC, with and without warm-up, on every testbed with sound and the paper's steps."""
    results = in_order(book.shelf.of(STUDY))
    found: dict[str, list[Effect]] = {name: [] for name in (WHOLE, CORRECTION, WARM_UP, FEWER)}
    for testbed, sound in dict.fromkeys((r.testbed, is_sound(r)) for r in results):
        here = [r for r in results if (r.testbed, is_sound(r)) == (testbed, sound)]
        runs = {(r.agent, r.settings.get("steps"), r.settings.get("warmup_steps")): r for r in here}
        lmc = {steps: r for (agent, steps, _), r in runs.items() if agent == "lmcts"}
        mala = {warm: r for (agent, _, warm), r in runs.items() if agent == "malats"}
        label = steps_text(here[0])
        found[WHOLE].append(effect(label, mala.get(20), lmc.get(25)))
        found[CORRECTION].append(effect(label, mala.get(0), lmc.get(25)))
        found[WARM_UP].append(effect(label, mala.get(20), mala.get(0)))
        found[FEWER].append(effect(label, lmc.get(5), lmc.get(25)))
    return found


def colder(book: Book) -> list[Effect]:
    """The warm-up beside a colder target: noiseless steps draw the chain towards the mode."""
    out = []
    for r in in_order(book.shelf.of(STUDY)):
        if r.agent == "malats" and r.settings["warmup_steps"]:
            for twin in book.shelf.twins(r, "lmcts", ("beta", "step")):
                if twin.settings["beta"] == 2 * r.settings["beta"]:
                    out.append(effect(steps_text(r), r, twin))
    return out


def svrg(book: Book) -> list[Effect]:
    """Unbiased variance reduction beside the whole gradient, at the paper's settings."""
    return [
        effect(settings_text(r, ("beta",)), r, book.shelf.twin(r, "lmcts"))
        for r in in_order(book.shelf.of("table-main"))
        if r.agent == "svrglmcts"
    ]


def at_forty(book: Book) -> list[Effect]:
    """The same where the paper saw it break."""
    return at(svrg(book), lambda r: r.testbed == "linear-40")


def whole(book: Book) -> list[Effect]:
    """MALA as published beside LMC, at the paper's steps."""
    return at(told_apart(book)[WHOLE], lambda r: not is_sound(r))


def beside_linucb(book: Book, alpha: float) -> list[Effect]:
    """MALA as published beside LinUCB, the agent that the paper names next to it."""
    runs = [e.changed for e in whole(book) if e.changed is not None]
    return [
        effect(f"α = {alpha:g}", r, next((t for t in rivals if t.settings["alpha"] == alpha), None))
        for r in runs
        for rivals in [book.shelf.twins(r, "linucb")]
    ]


def tuned(book: Book) -> list[Effect]:
    """The same with both tuned on one budget, on linear testbeds."""
    runs = {(r.testbed, r.agent): r for r in book.shelf.of("ranking")}
    beds = [bed for bed, agent in runs if agent == "malats" and bed.startswith("linear")]
    return [effect("tuned", runs[bed, "malats"], runs.get((bed, "linucb"))) for bed in sorted(beds)]


def correction(book: Book) -> list[Effect]:
    """MALA without warm-up beside LMC, where the whole gain is judged."""
    return at(told_apart(book)[CORRECTION], lambda r: not is_sound(r))


def families(book: Book) -> list[Family]:
    """One per part."""
    parts = {name: beside_linucb(book, alpha) for alpha, name in LINUCB.items()}
    parts |= {TUNED: tuned(book)} | told_apart(book) | {COLDER: colder(book)}
    found = [Family.of(name, effects) for name, effects in parts.items()]
    return [*found, Family.of("variance reduction beside the whole gradient", svrg(book))]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts of what no claim judges; the table has all."""
    own = [f for f in found if f.members and f.name in (LINUCB[RELEASED], TUNED, WARM_UP)]
    return [tally_sentence(capital(family.name), family) for family in own]


QUESTION = Question(
    name="samplers",
    place=60,
    title="Is MALATS the best, why does it beat LMCTS, and does variance reduction break down?",
    asks=(
        "The paper says that MALATS has the lowest regret, with LinUCB next to it. Its text gives "
        "LinUCB α = 0.1; the released code runs α = 1, which explores more. The published MALATS "
        "begins every round with 20 noiseless gradient steps, the *warm-up*, and ends it with 5 "
        "steps of MALA. LMC takes 25 steps without Metropolis correction. The correction is "
        "judged by MALA without warm-up beside LMC, the warm-up by MALA with it beside MALA "
        "without. All have the same target. SVRG takes 64 rows per gradient; its estimate is "
        "unbiased here, which the released one is not."
    ),
    studies=(STUDY, "table-main", "question-default", "ranking"),
    claims=(
        Claim(
            "MALATS has the lowest regret in linear bandits",
            "section 4; section 5",
            Says.LOWER,
            "MALATS beside LinUCB, both as the paper's text has them",
            lambda book: beside_linucb(book, STATED),
            front=True,
        ),
        Claim(
            "MALATS has lower regret than LMCTS",
            "section 4",
            Says.LOWER,
            "MALA with warm-up beside LMC, the paper's steps",
            whole,
        ),
        Claim(
            "the Metropolis correction explains that gain",
            "section 5",
            Says.LOWER,
            "MALA without warm-up beside LMC, the same two pairs",
            correction,
        ),
        Claim(
            "variance reduction (SVRG) breaks down at 40 dimensions",
            "section 4; section 5",
            Says.HIGHER,
            "`svrglmcts` beside `lmcts` on linear-40",
            at_forty,
        ),
    ),
    families=families,
    says=says,
)
