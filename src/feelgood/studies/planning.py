"""What to run: cells, and the study that is made of them.

A *cell* is one agent with one setting on one testbed, over a block of seeds. Its identity is the
hash of everything that its results depend on, so a cell is the same in whatever study it appears.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feelgood.core.arguments import Seeds, parse_name, parse_rounds, parse_seeds, parse_settings
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS
from feelgood.engine.building import SettingValues, resolve_variants

#: Raised when the same specification would give other results than before.
RESULTS_VERSION = 2
#: Seeds are cut at multiples of this, so that a study that is extended keeps what it has.
SEED_BLOCK = 10
MAX_CELLS = 200_000
MAX_CHAIN_ROUNDS = 10**13


def spec_id(spec: Mapping[str, Any]) -> str:
    """The name of a cell: a hash of its specification as `Cell.to_json` gives it."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def code_of(testbed: str, agent: str) -> dict[str, str]:
    """SHA-256 of what plug-ins registered under these names; nothing for our own."""
    found = {"testbed": TESTBEDS.digest(testbed), "agent": AGENTS.digest(agent)}
    return {kind: digest for kind, digest in found.items() if digest is not None}


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """One agent with one setting on one testbed, over some seeds; all settings spelled out."""

    testbed: str
    testbed_settings: SettingValues
    agent: str
    settings: SettingValues
    rounds: int
    seeds: tuple[int, ...]
    #: Rounds between two measurements of the posterior; None: it is not measured.
    posterior_every: int | None = None
    #: SHA-256 of the plug-in that registered the testbed or agent, where one did.
    code: Mapping[str, str] = dataclasses.field(default_factory=dict)
    _id: str = dataclasses.field(default="", init=False, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The whole specification."""
        spec = {
            "version": RESULTS_VERSION,
            "testbed": self.testbed,
            "testbed_settings": dict(self.testbed_settings),
            "agent": self.agent,
            "settings": dict(self.settings),
            "rounds": self.rounds,
            "seeds": list(self.seeds),
        }
        if self.posterior_every is not None:
            spec["posterior_every"] = self.posterior_every
        if self.code:
            spec["code"] = dict(self.code)
        return spec

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> "Cell":
        """The cell that `to_json` described."""
        return cls(
            testbed=spec["testbed"],
            testbed_settings=spec["testbed_settings"],
            agent=spec["agent"],
            settings=spec["settings"],
            rounds=spec["rounds"],
            seeds=tuple(spec["seeds"]),
            posterior_every=spec.get("posterior_every"),
            code=spec.get("code", {}),
        )

    @property
    def id(self) -> str:
        """Hash of the specification."""
        if not self._id:
            object.__setattr__(self, "_id", spec_id(self.to_json()))
        return self._id

    @property
    def chain_rounds(self) -> int:
        """How much there is to play."""
        return self.rounds * len(self.seeds)

    @property
    def label(self) -> str:
        """Agent and testbed, for people."""
        return f"{self.agent} on {self.testbed}"


@dataclasses.dataclass(frozen=True)
class Study:
    """Cells to be run, in order, under a name; `plugins` are modules that register more agents.

    **Example:**

    >>> from feelgood.studies import Study, plan_cells
    >>> study = Study("mine", tuple(plan_cells("linear-20", "lints", rounds=100, seeds=20)))
    >>> len(study.cells), study.chain_rounds  # cells of ten seeds
    (2, 2000)
    """

    name: str
    cells: tuple[Cell, ...]
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for cell in self.cells:
            if cell.id in seen:
                raise FeelgoodError(
                    f"study '{self.name}' has {cell.label} twice with the same settings and "
                    "seeds: leave one out."
                )
            seen.add(cell.id)
        if not self.cells:
            raise FeelgoodError(f"study '{self.name}' has no cells: name a testbed and an agent.")
        if len(self.cells) > MAX_CELLS or self.chain_rounds > MAX_CHAIN_ROUNDS:
            raise FeelgoodError(
                f"study '{self.name}' has {len(self.cells):,} cells and {self.chain_rounds:,} "
                f"rounds in all: use at most {MAX_CELLS:,} cells and {MAX_CHAIN_ROUNDS:,} rounds."
            )

    @property
    def chain_rounds(self) -> int:
        """How much there is to play."""
        return sum(cell.chain_rounds for cell in self.cells)

    def parts(self, folder: Path) -> list["StudyPart"]:
        """What is to be run one after the other, as far as it is known: here the study itself."""
        return [StudyPart(self, folder)]


@dataclasses.dataclass(frozen=True)
class StudyPart:
    """A study with the folder of its store; a part may decide what the next ones are."""

    study: Study
    folder: Path
    #: Of a part that only prepares others: the file that sums it up, and what writes it.
    table: Path | None = None
    finish: Callable[[], None] = lambda: None


def seed_blocks(seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """Seeds cut at multiples of `SEED_BLOCK`."""
    blocks: dict[int, list[int]] = {}
    for seed in sorted(seeds):
        blocks.setdefault(seed // SEED_BLOCK, []).append(seed)
    return [tuple(block) for block in blocks.values()]


def outline(testbed: str, values: SettingValues) -> tuple[SettingValues, Spec, int]:
    """A testbed's settings, its shape and usual horizon; a stored dataset is not read for that."""
    entry = TESTBEDS[testbed]
    resolved = entry.resolve(values)
    known = None if entry.outline is None else entry.outline(resolved)
    if known is None:
        problem = entry.build(values)
        known = (problem.spec, problem.rounds)
    return resolved, *known


def plan_cells(
    testbed: str | Any,
    agent: str | Any,
    *,
    settings: SettingValues | Any | None = None,
    preset: str | Any | None = None,
    rounds: int | Any | None = None,
    seeds: Seeds = 10,
    testbed_settings: SettingValues | Any | None = None,
    posterior_every: int | Any | None = None,
) -> list[Cell]:
    """The cells of one agent on one testbed; settings that are lists make a grid.

    **Arguments:** as those of `feelgood.run`, for one agent by name.

    **Example:**

    >>> from feelgood.studies import plan_cells
    >>> cells = plan_cells("linear-20", "fglmcts", settings={"lam": [0.1, 0.5]}, seeds=20)
    >>> [(cell.settings["lam"], cell.seeds[0]) for cell in cells]
    [(0.1, 0), (0.1, 10), (0.5, 0), (0.5, 10)]
    """
    agent, testbed = parse_name("agent", agent), parse_name("testbed", testbed)
    settings = parse_settings("settings", settings)
    resolved, spec, usual = outline(testbed, parse_settings("testbed_settings", testbed_settings))
    horizon = parse_rounds(usual if rounds is None else rounds)
    blocks = seed_blocks(parse_seeds(seeds))
    variants = resolve_variants(agent, settings, preset, testbed, spec, horizon)
    code = code_of(testbed, agent)
    cells = [
        Cell(testbed, resolved, agent, variant, horizon, block, code=code)
        for variant in variants
        for block in blocks
    ]
    return cells if posterior_every is None else with_posterior(cells, posterior_every)


def with_posterior(cells: Iterable[Cell], every: int | Any) -> list[Cell]:
    """The same cells, their posteriors measured every so many rounds.

    Agents that draw no parameters, such as `linucb`, stay as they are; a testbed without an exact
    posterior is refused, and so are cells of which none can be measured. A measured cell is
    another one than without: what is in the store of that does not count.
    """
    # Most studies measure no posterior: they need not read what does.
    from feelgood.posterior.along import check_every, measurable, require_some

    out, known = [], dict[str, bool]()
    for cell in cells:
        checked = check_every(every, cell.rounds)
        words = {k: v for k, v in cell.settings.items() if not isinstance(v, float)}
        kind = json.dumps([cell.testbed, dict(cell.testbed_settings), cell.agent, words])
        if kind not in known:  # numbers do not decide whether a posterior can be measured
            problem = TESTBEDS[cell.testbed].build(cell.testbed_settings)
            policy = AGENTS[cell.agent].build(cell.settings)
            known[kind] = measurable(policy, cell.testbed, problem)
        out.append(dataclasses.replace(cell, posterior_every=checked) if known[kind] else cell)
    require_some((cell.agent for cell in out), any(known.values()))
    return out
