"""Do other samplers serve networks better than plain Langevin steps?"""

from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from showdown import yardsticks
from showdown.book import Book, grid, section
from showdown.effects import Effect, effect, regret_text
from showdown.families import Family, tally_sentence
from showdown.question import Question
from showdown.questions.missing import lacking
from showdown.stuck_seeds import share_text

STUDY = "question-kernels-neural"
#: The step of Langevin kernels out of the box.
OWN_STEP = 0.05
LANGEVIN = "neural-lmcts"
OTHERS = ("neural-malats", "neural-hmcts", "neural-ulmcts", "neural-svrglmcts")
STEPS = "`neural-lmcts`, its own step beside the paper's"


def runs(book: Book, agent: str, own_step: bool = True) -> dict[str, AgentResult]:
    """Those of an agent, by testbed; Langevin steps also in the paper's length."""
    return {
        r.testbed: r
        for r in sorted(book.shelf.of(STUDY), key=lambda r: r.testbed)
        if r.agent == agent and (agent in OTHERS or (r.settings["lr"] == OWN_STEP) == own_step)
    }


def _beside(
    label: str, changed: dict[str, AgentResult], base: dict[str, AgentResult]
) -> list[Effect]:
    return [effect(label, r, base.get(testbed)) for testbed, r in changed.items()]


def families(book: Book) -> list[Family]:
    """One per kernel, and the length of plain steps; nothing before something has been run."""
    plain = runs(book, LANGEVIN)
    found = [(f"`{name}`", _beside("own step", runs(book, name), plain)) for name in OTHERS]
    found.append((STEPS, _beside("own step", plain, runs(book, LANGEVIN, own_step=False))))
    return [Family.of(name, own) for name, own in found if own]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """What is missing, and the count of each family."""
    out = lacking(book, [STUDY])
    if not found:
        return [*out, "Nothing can be said before it is run."]
    for family in found:
        subject = family.name if family.name == STEPS else f"{family.name} beside `{LANGEVIN}`"
        out.append(tally_sentence(subject, family))
    return out


def more(book: Book) -> list[str]:
    """Regrets and stuck seeds of all kernels on all data sets."""
    kernels = [(f"`{name}`", runs(book, name)) for name in (LANGEVIN, *OTHERS)]
    kernels.insert(1, (f"`{LANGEVIN}`, the paper's step", runs(book, LANGEVIN, own_step=False)))
    testbeds = sorted({testbed for _, own in kernels for testbed in own})
    if not testbeds:
        return []
    rows = [
        [label, *(_cell(book, own.get(testbed)) for testbed in testbeds), _accepted(own)]
        for label, own in kernels
        if own
    ]
    about = (
        "Mean regrets, with medians in brackets. † does not beat the best fixed arm. Then the "
        "share of [stuck seeds](reading.md#stuck-seeds), where there are any, with its 95 % "
        "interval. *Accepted*: the mean share of proposals that a filter lets pass."
    )
    return [section("Regrets", grid(("agent", *testbeds, "accepted"), rows), about)]


def _cell(book: Book, r: AgentResult | None) -> str:
    if r is None:
        return "–"
    parts = [regret_text(r, yardsticks.dagger(r, book.yardsticks))]
    share = yardsticks.stuck(r, book.yardsticks)
    if share is not None and share.value:
        parts.append(share_text(share))
    return ", ".join(parts)


def _accepted(own: dict[str, AgentResult]) -> str:
    """From the least to the most of the testbeds' means, over the second half of a run."""
    shares = []
    for r in own.values():
        if "acceptance" in r.health:
            along = np.asarray(r.health["acceptance"])
            shares.append(100 * float(np.nanmean(along[:, along.shape[1] // 2 :])))
    if not shares:
        return "–"
    low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
    return f"{high} %" if low == high else f"{low} to {high} %"


QUESTION = Question(
    name="network-kernels",
    place=66,
    title="Do other samplers serve networks better?",
    asks=(
        "The paper samples networks by Langevin steps alone. Here MALA, HMC, underdamped and "
        "variance-reduced Langevin steps have the same networks, losses and temperatures, and 50 "
        "gradients whenever the network learns. Each kernel has the step that it has out of the "
        "box, ten times or five times the paper's for Langevin steps. MALA and HMC read the whole "
        "history, the others random batches. All runs have 2,000 rounds."
    ),
    studies=(STUDY,),
    families=families,
    says=says,
    more=more,
)
