"""Which of two networks an agent gets.

The paper: "each method chooses the better of a fully connected two-layer MLP (width 100) and
four-layer MLP (width 50)". Its layers count the output, as its released settings show. How it
chose is not said. Here every agent has the same budget on every data set: the same rounds over
the same seeds for both networks. None of those seeds is used again for the comparison.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from feelgood.core.arguments import Seeds, parse_rounds, parse_seeds
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.engine.building import resolve_variants
from feelgood.paper.published_rows import PublishedRow, missing
from feelgood.studies.planning import Cell, Study, outline, plan_cells
from feelgood.studies.store import Store

#: The hidden layers of the two networks.
ARCHITECTURES = ("100", "50-50-50")
#: The budget of one network, where no other is given.
TUNING_ROUNDS, TUNING_SEEDS = 2_000, "1000:1003"


@dataclasses.dataclass(frozen=True)
class NetworkChoice:
    """The network of an agent on a testbed, and the mean regrets that decided.

    NaN: that network could not be run, or one of its chains diverged.
    """

    testbed: str
    agent: str
    regrets: Mapping[str, float]
    budget: str

    @property
    def layers(self) -> str:
        """The network with the smaller mean regret; the smaller network where they are equal."""
        return min(self.regrets, key=lambda layers: _or_infinite(self.regrets[layers]))

    @property
    def reason(self) -> str:
        """How it was chosen, in words."""
        shown = ", ".join(f"{layers}: {_number(mean)}" for layers, mean in self.regrets.items())
        return f"mean regret of {self.budget}: {shown}"


def _or_infinite(mean: float) -> float:
    return mean if math.isfinite(mean) else math.inf


def _number(mean: float) -> str:
    return f"{mean:,.1f}" if math.isfinite(mean) else "–"


@dataclasses.dataclass(frozen=True)
class NetworkTuning:
    """What has to be run before the networks are chosen."""

    #: Cells by testbed and agent, then by network.
    cells: Mapping[tuple[str, str], Mapping[str, tuple[Cell, ...]]]
    #: Agents that have no network and so nothing to choose.
    untuned: tuple[str, ...]
    budget: str

    def study(self, name: str) -> Study | None:
        """All runs as a study; None where no data are here to run on."""
        every = [
            c for networks in self.cells.values() for cells in networks.values() for c in cells
        ]
        return Study(name, tuple(every)) if every else None

    def choices(self, store: Store) -> tuple[NetworkChoice, ...]:
        """What was chosen; an error where neither network of an agent has been run."""
        found = []
        for (testbed, agent), networks in self.cells.items():
            regrets = {layers: _mean(store, cells) for layers, cells in networks.items()}
            if all(mean is None for mean in regrets.values()):
                raise FeelgoodError(
                    f"neither network of {agent} on {testbed} could be run, so there is none to "
                    "choose: see the message above, or leave out --tune."
                )
            known = {k: math.nan if v is None else v for k, v in regrets.items()}
            found.append(NetworkChoice(testbed, agent, known, self.budget))
        return tuple(found)


def _mean(store: Store, cells: Sequence[Cell]) -> float | None:
    """Mean regret over all seeds; None where some are missing, NaN where a chain diverged."""
    done = [result for _, result in store.done(cells)]
    if len(done) < len(cells):
        return None
    return float(np.mean(np.concatenate([result.final_regret for result in done])))


def plan_tuning(
    rows: Sequence[PublishedRow],
    *,
    seeds: Seeds | None = None,
    rounds: int | None = None,
    tuning_seeds: Seeds = TUNING_SEEDS,
    tuning_rounds: int | None = None,
) -> NetworkTuning:
    """What to run to choose the networks of these rows.

    **Arguments:**

    - `seeds`, `rounds`: those of the comparison; by default as published.
    - `tuning_seeds`, `tuning_rounds`: the budget of each network. The rounds may be no more than
      those of the comparison, and are cut to them where they are not given.

    An agent runs with the very settings of the comparison, β for its horizon among them.
    """
    apart = parse_seeds(tuning_seeds)
    given = None if tuning_rounds is None else parse_rounds(tuning_rounds)
    horizon = min(rounds or row.rounds for row in rows) if rows else TUNING_ROUNDS
    length = min(TUNING_ROUNDS, horizon) if given is None else given
    if length > horizon:
        raise FeelgoodError(
            f"--tune-rounds {length:,} is more than the {horizon:,} rounds of the comparison: "
            "use fewer."
        )
    budget = f"{len(apart)} other seeds over {length:,} rounds"
    cells: dict[tuple[str, str], dict[str, tuple[Cell, ...]]] = {}
    untuned: dict[str, None] = {}
    for row in rows:
        if missing(row) is not None:
            continue
        if "layers" not in AGENTS[row.agent].settings:
            untuned[row.agent] = None
            continue
        shared = sorted(set(apart) & set(parse_seeds(seeds or row.published.seeds)))
        if shared:
            raise FeelgoodError(
                f"seed {shared[0]} is for tuning and for the comparison: choose other "
                f"--tune-seeds, such as {TUNING_SEEDS}."
            )
        try:
            cells[row.testbed, row.agent] = {
                layers: _cells(row, layers, rounds or row.rounds, length, apart)
                for layers in ARCHITECTURES
            }
        except FeelgoodError:
            continue  # a data set that is not here: the comparison says so
    if not cells and untuned:
        raise FeelgoodError(
            f"no agent of this table has a network to choose ({', '.join(untuned)}): leave out "
            "--tune."
        )
    return NetworkTuning(cells, tuple(untuned), budget)


def _cells(
    row: PublishedRow, layers: str, horizon: int, rounds: int, seeds: Sequence[int]
) -> tuple[Cell, ...]:
    _, spec, _ = outline(row.testbed, row.testbed_settings)
    values = {**row.settings, "layers": layers}
    (settings,) = resolve_variants(row.agent, values, row.preset, row.testbed, spec, horizon)
    return tuple(
        plan_cells(
            row.testbed,
            row.agent,
            settings=settings,
            rounds=rounds,
            seeds=seeds,
            testbed_settings=row.testbed_settings,
        )
    )


def with_choices(
    rows: Sequence[PublishedRow], choices: Sequence[NetworkChoice]
) -> tuple[PublishedRow, ...]:
    """The rows with the networks that were chosen for them."""
    chosen = {(choice.testbed, choice.agent): choice for choice in choices}

    def tuned(row: PublishedRow) -> PublishedRow:
        choice = chosen.get((row.testbed, row.agent))
        if choice is None:
            return row
        settings = {**row.settings, "layers": choice.layers}
        return dataclasses.replace(row, settings=settings, tuned=choice.reason)

    return tuple(map(tuned, rows))
