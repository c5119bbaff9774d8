"""The catalogue: for every published number what to run, and whether it can be compared.

The reasons are those of docs/reproducing.md. A number *cannot be compared* where it rests on a
slip or on other code than the paper describes, so that no right implementation can match it. A
*remark* is a known reason why a number that can be compared may nevertheless differ.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from feelgood.agents import grammar
from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.protocols import AGENTS, TESTBEDS
from feelgood.paper.published import Published, all_published

#: Rounds of the paper's runs, where they are not 10,000.
ROUNDS = {"wheel": 5_000, "covertype": 15_000, "cifar10": 25_000}
USUAL_ROUNDS = 10_000

#: Our names where the paper's are others.
OUR_NAMES = {"epsgreedy": "epsgreedy-tabular"}

TITLES = {
    "main": "Cumulative regret on linear and logistic bandits, all agents",
    "lambda-linear-20-b1000": "Feel-good weight λ on linear-20 at β = 10³",
    "lambda-linear-20-b1": "Feel-good weight λ on linear-20 at β = 1",
    "lambda-linear-40-b1000": "Feel-good weight λ on linear-40 at β = 10³",
    "lambda-linear-40-b1": "Feel-good weight λ on linear-40 at β = 1",
    "lambda-logistic-20-b1000": "Feel-good weight λ on logistic-20 at β = 10³",
    "lambda-logistic-20-b1": "Feel-good weight λ on logistic-20 at β = 1",
    "lambda-logistic-40-b1000": "Feel-good weight λ on logistic-40 at β = 10³",
    "lambda-logistic-40-b1": "Feel-good weight λ on logistic-40 at β = 1",
    "lambda-ablation": "Feel-good weight λ from 0 to 1 on linear-20",
    "wheel": "Wheel bandit at four radii δ",
    "damping": "Underdamped against overdamped dynamics on linear-20",
    "precondition-linear": "With and without preconditioner on linear-20",
    "precondition-logistic": "With and without preconditioner on logistic-20",
    "other": "The uniform agent",
    "neural-cumulative": "Cumulative regret of neural agents on data sets",
    "neural-simple": "Regret of the last 500 rounds of neural agents on data sets",
    "neuralts-cumulative": "Cumulative regret of neural Thompson sampling on data sets",
    "neuralts-simple": "Regret of the last 500 rounds of neural Thompson sampling on data sets",
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One published number with the run of ours that belongs beside it."""

    published: Published
    agent: str
    preset: str
    settings: Mapping[str, Any]
    rounds: int
    #: Why the two numbers cannot be compared; None if they can.
    not_comparable: str | None
    #: Why they may differ although they can be compared; None if nothing is known.
    remark: str | None
    #: How its network was chosen; None: it is the preset's.
    tuned: str | None = None

    @property
    def testbed(self) -> str:
        """The testbed, ours and the paper's."""
        return self.published.testbed

    @property
    def metric(self) -> str:
        """The field of `AgentResult` that holds our values."""
        return {"cumulative_regret": "final_regret"}.get(
            self.published.metric, self.published.metric
        )

    @property
    def label(self) -> str:
        """The agent with what sets the row apart, such as `fglmcts λ=0.5`."""
        shown = [f"λ={self.published.lam:g}"] if self.published.lam is not None else []
        if self.published.gamma is not None:
            shown.append(f"γ={self.published.gamma:g}")
        if self.published.table == "main" and self.published.beta == 1:
            shown.append("β=1")
        return " ".join([self.agent, *shown])


def rows(
    table: str,
    testbeds: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
) -> tuple[Row, ...]:
    """The rows of a table, or those of some testbeds and agents; an error for unknown names."""
    if table not in TITLES:
        raise FeelgoodError(f"unknown table '{table}': {did_you_mean(table, TITLES)}")
    chosen = tuple(to_row(p) for p in all_published() if p.table == table)
    for kind, wanted, known in (
        ("testbed", testbeds, {r.testbed for r in chosen}),
        ("agent", agents, {name for r in chosen for name in (r.agent, r.published.agent)}),
    ):
        for name in wanted or ():
            if name not in known:
                raise FeelgoodError(
                    f"the table '{table}' has no {kind} '{name}': {did_you_mean(name, known)}"
                )
    return tuple(
        r
        for r in chosen
        if (not testbeds or r.testbed in testbeds)
        and (not agents or r.agent in agents or r.published.agent in agents)
    )


def to_row(number: Published) -> Row:
    """What to run for a published number, and whether the two can be compared."""
    settings = {"lam": number.lam, "gamma": number.gamma}
    return Row(
        published=number,
        agent=OUR_NAMES.get(number.agent, number.agent),
        preset=_preset(number),
        settings={name: value for name, value in settings.items() if value is not None},
        rounds=ROUNDS.get(number.testbed.split("-")[0], USUAL_ROUNDS),
        not_comparable=_first(_SLIPS, number),
        remark=_first(_REMARKS, number),
    )


def missing(row: Row) -> str | None:
    """Why a row cannot be run: its agent or testbed is not registered; None if both are."""
    for kind, registry, name in (
        ("testbed", TESTBEDS, row.testbed),
        ("agent", AGENTS, row.agent),
    ):
        if name not in registry:
            return f"the {kind} {name} is not available yet"
    return None


def _preset(number: Published) -> str:
    if number.beta == 1:
        return "paper-beta1" if number.table == "main" else "paper-beta1-appendix"
    if number.table == "lambda-linear-40-b1000":
        return "paper-equal-beta"
    return "paper"


# What is known about the published numbers ---------------------------------------------------

Test = Callable[[Published], bool]


def _first(known: Sequence[tuple[Test, str]], number: Published) -> str | None:
    return next((reason for applies, reason in known if applies(number)), None)


def _parts(number: Published) -> grammar.Parts | None:
    return grammar.read(number.agent)


def _copied(number: Published) -> bool:
    parts = _parts(number)
    return (
        number.table == "precondition-linear"
        and parts is not None
        and parts.kernel_name == "lmc"
        and parts.bonus_name != ""
    )


def _is_at(number: Published, agent: str, testbed: str, lam: float) -> bool:
    """Whether it is of this agent and weight, in a table of λ at "β = 10³"."""
    table = number.table.startswith("lambda-") and number.beta == 1000
    return table and number.agent == agent and number.testbed == testbed and number.lam == lam


def _mala_at_beta_1(number: Published) -> bool:
    return number.beta == 1 and "malats" in number.agent


_SLIPS: tuple[tuple[Test, str], ...] = (
    (
        lambda n: n.testbed.startswith("wheel"),
        "the published number is the regret of playing one fixed outer arm forever with "
        "μ = (0.15, 0.1, 1): it says nothing about the agent",
    ),
    (
        lambda n: n.agent == "uniform",
        "the published numbers are half a unit a round on two testbeds of different reward "
        "scales; a uniform agent has about 21,900 on linear-20 and 1,180 on logistic-20",
    ),
    (
        lambda n: n.testbed.startswith("logistic") and n.agent == "epsgreedy",
        "a uniform agent has regret of about 1,180 in the paper's logistic environment, so that "
        "the published 2,899 is impossible there",
    ),
    (
        lambda n: n.testbed.startswith("logistic"),
        "no reading of the logistic experiments reproduces the published numbers: the released "
        "environment and likelihood are others than the paper's",
    ),
    (
        _copied,
        "a copying slip: the published row repeats the number of the logistic table (for linear-20 "
        "see lambda-linear-20-b1000)",
    ),
    (
        lambda n: n.agent == "svrglmcts" and n.testbed == "linear-40",
        "the published number comes from adding a mean-scaled batch gradient to a sum-scaled full "
        "gradient; the unbiased estimator gives about 130",
    ),
    (
        lambda n: n.gamma is not None,
        "the published number comes from an underdamped kernel with other noise and another prior",
    ),
    (
        lambda n: _mala_at_beta_1(n) and n.table.startswith("lambda-"),
        "the published chain accepts nothing after 20 steps of gradient descent; a right MALA "
        "samples this hot target and has regret of about 970 on linear-20",
    ),
    (
        lambda n: n.testbed in ("jester", "financial"),
        "the published LMCTS and NeuralTS rows of this data set are on different reward scales",
    ),
    (
        lambda n: n.testbed == "restaurant",
        "the released script plays another problem: it pays for the middle rating too and shows "
        "every place's own features, some of them hashed anew in each process; choosing at random "
        "has regret of about 8,697 there, as the published NeuralTS has",
    ),
    (
        lambda n: (
            n.table == "neuralts-simple" and n.testbed == "cifar10" and n.agent != "neural-ts"
        ),
        "a slip: the published 839.6 exceeds the window of 500 rounds, and 6.5 belongs to no agent "
        "with a cumulative regret of 21,292",
    ),
    (
        lambda n: n.table.startswith("neural") and "fg" in n.agent,
        "in the released code the feel-good bonus of neural agents was never switched on: the "
        "published number rests on other code",
    ),
)

_HEAVY_TAILS = (
    "the regret of feel-good agents at λ ≥ 0.5 is heavy-tailed, so that ten seeds fix its mean "
    "badly (the paper has 213.0 and 235.8 for one setting): compare the medians"
)

_REMARKS: tuple[tuple[Test, str], ...] = (
    (
        lambda n: _is_at(n, "fglmcts", "linear-20", 0.1),
        "chance on their side: the paper's smoothed agent, the same function at b = 1000, has 82.0 "
        "± 32.6 in the same table, and the twenty seeds of both have a mean of 66.4",
    ),
    (
        lambda n: _is_at(n, "pfglmcts", "linear-40", 0.1),
        "chance on their side: the paper's smoothed agent, the same function at b = 1000, has "
        "169.5 ± 20.2 in the same table, and the twenty seeds of both have a mean of 152.5",
    ),
    (
        lambda n: n.agent == "psfghmcts" and n.testbed == "linear-20" and n.beta == 1000,
        "the paper has 284.1 in one table and 248.1 in another with the same deviation 147.4: one "
        "is a slip of the pen; the regret is heavy-tailed besides",
    ),
    (
        _mala_at_beta_1,
        "a right MALA samples the hotter target and pays for it; the published chains of this "
        "temperature accept next to nothing and stay near the mode (see lambda-linear-20-b1)",
    ),
    (
        lambda n: "hmcts" in n.agent and not n.agent.startswith("p"),
        "at step 0.1 the chain stops accepting after about 600 observations: the number is that of "
        "a frozen chain, and depends on where it froze",
    ),
    (
        lambda n: n.lam is not None and n.lam >= 0.5 and n.testbed == "linear-20",
        _HEAVY_TAILS,
    ),
    (
        lambda n: n.agent == "linucb",
        "the paper's text says α = 0.1, its released configuration α = 1, which is used here",
    ),
    (
        lambda n: n.agent == "epsgreedy",
        "the published agent is the one without context; its regret hangs on the arm it settles on",
    ),
    (
        lambda n: n.agent == "svrglmcts",
        "the published estimator is biased (a mean-scaled batch beside a sum-scaled gradient); "
        "ours is not",
    ),
    (
        lambda n: n.table == "lambda-linear-40-b1000" and n.agent.startswith("p"),
        "taken with the temperature of the agents without preconditioner, which fits this table; "
        "the main table's preconditioned agents are ten times hotter",
    ),
    (
        lambda n: n.agent.startswith("p") and n.agent.endswith("lmcts") and n.beta == 1000,
        "the published preconditioned agents go with a target ten times hotter than the paper "
        "states",
    ),
    (
        lambda n: n.agent == "neural-eps-greedy",
        "the released agent explores with ε/√t, not with the stated ε: with a constant one every "
        "round costs at least ε/2 on mushroom and 6ε/7 on covertype, that is 500 and 5,143 in all "
        "and 25 and 171 in the last 500 rounds; published are 124 and 4,629, 0.0 and 112",
    ),
    (
        lambda n: n.testbed == "covertype" and n.agent == "neural-ucb",
        "the published number is that of other features than the rows scaled to length 1 that fit "
        "the published LMCTS: with standardised ones ours has 4,508 ± 30 over 5 seeds; with the "
        "stated ones the loss and the learning rate do not reach it (seed 0: 6,308; at ten times "
        "the rate 6,031, with the squared loss besides 5,379)",
    ),
    (
        lambda n: n.testbed == "adult" and n.agent in ("neural-lmcts", "neural-ucb"),
        "the published agents do no better than one that always plays the more frequent class, "
        "whose regret is 2,393; ours do: the released code takes mini-batches in the order of the "
        "history, and half as many as stated, ours at random",
    ),
    (
        lambda n: n.testbed == "mnist" and n.agent == "neural-ucb",
        "the published agent still errs in 47 % of the last 500 rounds, as one that learns from "
        "few rounds: trained on the first 512 alone it errs in 54 to 77 % (3 seeds, "
        "bench/mnist_ucb.py); trained as the released script does it, on the history in order, "
        "in 15 % after 3,000 rounds (1 seed), and ours, on all of it at random, in 7 % at the end",
    ),
    (
        lambda n: n.agent == "neural-lmcts",
        "the released code lets the temperature fall along the run and takes mini-batches neither "
        "shuffled nor scaled; ours keep the stated target",
    ),
)
