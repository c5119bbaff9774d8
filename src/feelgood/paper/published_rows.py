"""The paper's tables: for every published number what to run, and why it may differ.

`tables.csv` has one line per table and `published.csv` one per number; `reasons.toml` says what is
known about them.
"""

import csv
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import TESTBEDS
from feelgood.paper.published_numbers import Published, all_published
from feelgood.paper.reasons import reason
from feelgood.paper.released_runs import released_run

#: Rounds of the paper's runs, where they are not 10,000.
PAPER_ROUNDS = {"wheel": 5_000, "covertype": 15_000, "cifar10": 25_000}
USUAL_ROUNDS = 10_000

#: What a published number can be put beside: the paper's text, or its released code.
PAPER, RELEASED = READINGS = ("paper", "released")

#: Our names where the paper's are others.
OUR_NAMES = {"epsgreedy": "epsgreedy-tabular"}


@functools.cache
def _tables() -> dict[str, dict[str, str]]:
    text = files("feelgood.paper").joinpath("tables.csv").read_text(encoding="utf-8")
    return {line["table"]: line for line in csv.DictReader(text.splitlines())}


#: The tables by name, in the paper's order, and what each one shows.
TITLES = {name: line["title"] for name, line in _tables().items()}


@dataclasses.dataclass(frozen=True)
class PublishedRow:
    """One published number with the run of ours that belongs beside it."""

    published: Published
    testbed: str
    testbed_settings: Mapping[str, Any]
    agent: str
    preset: str
    settings: Mapping[str, Any]
    rounds: int
    #: Why the two numbers may differ; None if nothing is known.
    remark: str | None
    #: How its network was chosen; None: it is the preset's.
    tuned: str | None = None
    #: Why nothing can be run for it; None if something can.
    cannot: str | None = None
    #: What it puts beside the number: the paper's text or its released code.
    reading: str = PAPER
    #: Who is run in the place of the released code, in words.
    stands_for: str = "the released code"
    #: Whether that is the code's behaviour, which can explain a number.
    explains: bool = True

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
    reading: str = PAPER,
) -> tuple[PublishedRow, ...]:
    """The rows of a table, or those of some testbeds and agents; an error for unknown names."""
    if table not in TITLES:
        raise FeelgoodError(f"unknown table '{table}': {did_you_mean(table, TITLES)}")
    chosen = tuple(to_row(p, reading) for p in all_published() if p.table == table)
    for kind, wanted, known in (
        ("testbed", testbeds, {name for r in chosen for name in (r.testbed, r.published.testbed)}),
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
        if (not testbeds or r.testbed in testbeds or r.published.testbed in testbeds)
        and (not agents or r.agent in agents or r.published.agent in agents)
    )


def to_row(number: Published, reading: str = PAPER) -> PublishedRow:
    """What to run for a published number: what the text describes, or what the code did."""
    if reading not in READINGS:
        raise FeelgoodError(
            f"the paper's tables have no preset '{reading}': {did_you_mean(reading, READINGS)}"
        )
    given = {"lam": number.lam, "gamma": number.gamma}
    settings = {name: value for name, value in given.items() if value is not None}
    rounds = PAPER_ROUNDS.get(number.testbed.split("-")[0], USUAL_ROUNDS)
    if reading == RELEASED:
        run = released_run(number)
        return PublishedRow(
            published=number,
            testbed=run["problem"],
            testbed_settings=run["problem_settings"],
            agent=run["player"],
            preset=run["preset"],
            settings=settings if run["settings"] is None else run["settings"],
            rounds=rounds,
            remark=run["remark"],
            cannot=run["cannot"],
            reading=RELEASED,
            **_other(run["stands_for"]),
        )
    return PublishedRow(
        published=number,
        testbed=number.testbed,
        testbed_settings={},
        agent=OUR_NAMES.get(number.agent, number.agent),
        preset=_preset(number),
        settings=settings,
        rounds=rounds,
        remark=reason(number),
    )


def _other(stands_for: str | None) -> dict[str, Any]:
    """What is run where that is not the released code; nothing where it is."""
    return {} if stands_for is None else {"stands_for": stands_for, "explains": False}


def missing(row: PublishedRow) -> str | None:
    """Why a row cannot be run, such as an agent that is not registered; None if it can."""
    if row.cannot is not None:
        return row.cannot
    for kind, registry, name in (
        ("testbed", TESTBEDS, row.testbed),
        ("agent", AGENTS, row.agent),
    ):
        if name not in registry:
            return f"the {kind} {name} is not available yet"
    return None


def _preset(number: Published) -> str:
    table = _tables()[number.table]
    return (number.beta == 1 and table["preset_at_beta_1"]) or table["preset"]
