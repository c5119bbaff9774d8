"""All kept results, and how to find one beside another."""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from feelgood.agents import grammar
from feelgood.engine.results import AgentResult
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import PAPER, RELEASED, to_row
from showdown.keeping import Kept

#: Settings in which two runs may differ and still be compared, unless they are the question.
INCIDENTAL = frozenset({"start", "lambda_reg", "bonus_gradient", "bonus_batch"})
#: Settings that say nothing where there is no bonus.
OF_BONUS = ("lam", "b", "s", "lam_schedule", "prior_mass", "horizon")


class Shelf:
    """Results by study, by published number, and each with its twins."""

    def __init__(self, kept: Sequence[Kept]) -> None:
        self.kept = tuple(kept)
        self._problems: dict[str, list[AgentResult]] = {}
        for k in kept:
            self._problems.setdefault(_problem(k.result), []).append(k.result)

    def of(self, *studies: str) -> list[AgentResult]:
        """The results that these studies ask for."""
        return [k.result for k in self.kept if set(studies) & set(k.studies)]

    @functools.cached_property
    def by_number(self) -> dict[int, AgentResult]:
        """The result beside each published number as the paper's text has it, by position."""
        return self._beside(PAPER)

    @functools.cached_property
    def by_released_number(self) -> dict[int, AgentResult]:
        """The same as the released code has it."""
        return self._beside(RELEASED)

    def _beside(self, reading: str) -> dict[int, AgentResult]:
        rows = [to_row(number, reading) for number in all_published()]
        return {
            number: k.result
            for k in self.kept
            for number in k.numbers
            if rows[number].testbed == k.result.testbed and rows[number].agent == k.result.agent
        }

    def twins(
        self, result: AgentResult, agent: str, ignore: Iterable[str] = ()
    ) -> list[AgentResult]:
        """Results of `agent` on the same problem that share every other setting both have."""
        passed = INCIDENTAL | set(ignore)
        return [
            other
            for other in self._problems[_problem(result)]
            if other.agent == agent and other is not result and _agree(result, other, passed)
        ]

    def twin(
        self, result: AgentResult, agent: str, ignore: Iterable[str] = ()
    ) -> AgentResult | None:
        """The twin with the most seeds; None where there is none."""
        found = self.twins(result, agent, ignore)
        return max(found, key=lambda r: len(r.seeds), default=None)

    def plain(self, result: AgentResult) -> AgentResult | None:
        """The same agent without bonus: by its name, or by λ = 0, which is exactly that."""
        agent = without_bonus(result.agent)
        if agent is None:
            return None
        named = self.twin(result, agent, OF_BONUS)
        if named is not None:
            return named
        zeros = [
            other
            for name in bonus_names(agent)
            for other in self.twins(result, name, OF_BONUS)
            if other.settings.get("lam") == 0 and other.settings.get("lam_schedule") != "prior-mass"
        ]
        return max(zeros, key=lambda r: len(r.seeds), default=None)


def _problem(result: AgentResult) -> str:
    parts = [result.testbed, dict(result.testbed_settings), result.rounds]
    return json.dumps(parts, sort_keys=True)


def _agree(a: AgentResult, b: AgentResult, ignore: Iterable[str]) -> bool:
    shared = (set(a.settings) & set(b.settings)) - set(ignore)
    return all(a.settings[name] == b.settings[name] for name in shared)


# Names ---------------------------------------------------------------------------------------


def _renamed(agent: str, change: Callable[[grammar.Parts], grammar.Parts | None]) -> str | None:
    """A composed agent's name with other parts; None for agents of another kind."""
    prefix = "neural-" if agent.startswith("neural-") else ""
    parts = grammar.parts_of(agent.removeprefix(prefix))
    changed = None if parts is None else change(parts)
    if changed is None:
        return None
    preconditioner = "p" if changed.preconditioned else ""
    rest = f"{changed.variant}{changed.bonus_name}{changed.kernel_name}ts"
    return f"{prefix}{preconditioner}{rest}"


def without_bonus(agent: str) -> str | None:
    """`lmcts` for `sfglmcts`; None where there is no bonus to leave out."""
    if agent in ("fg-neural-ts", "sfg-neural-ts"):
        return "neural-ts"
    return _renamed(agent, lambda p: p._replace(bonus_name="") if p.bonus_name else None)


def unsmoothed(agent: str) -> str | None:
    """`fglmcts` for `sfglmcts`; None for an agent without smoothed bonus."""
    if agent == "sfg-neural-ts":
        return "fg-neural-ts"
    return _renamed(agent, lambda p: p._replace(bonus_name="fg") if p.bonus_name == "sfg" else None)


def unpreconditioned(agent: str) -> str | None:
    """`lmcts` for `plmcts`; None for an agent without preconditioner."""
    return _renamed(agent, lambda p: p._replace(preconditioned=False) if p.preconditioned else None)


def bonus_names(agent: str) -> Iterator[str]:
    """`fglmcts` and `sfglmcts` for `lmcts`."""
    if agent == "neural-ts":
        yield from ("fg-neural-ts", "sfg-neural-ts")
        return
    plain = _renamed(agent, lambda p: p._replace(bonus_name="fg"))
    smoothed = _renamed(agent, lambda p: p._replace(bonus_name="sfg"))
    yield from (name for name in (plain, smoothed) if name is not None)


def devices_of(results: Iterable[AgentResult]) -> list[str]:
    """`NVIDIA H200`, `CPU` or both: machines with many cores do not say which they have."""
    told = [str(r.provenance.get("device") or "an unknown machine") for r in results]
    devices = {name for names in told for name in names.split(", ")}
    return sorted({"CPU" if d.startswith("cpu") else d.removesuffix(" (gpu)") for d in devices})


def is_sound(result: AgentResult) -> bool:
    """Whether its steps follow the curvature, as those of the default settings do."""
    return result.settings.get("schedule", "curvature") == "curvature"


def settings_text(result: AgentResult, names: Sequence[str]) -> str:
    """`λ = 0.1, b = 1` of these settings, those that the agent has; `1/√s` of a λ that falls."""
    signs = {"lam": "λ", "gamma": "γ", "beta": "β", "eta": "η", "warmup_steps": "warm-up"}
    signs |= {"alpha": "α", "epsilon": "ε", "nu": "ν"}
    shown: dict[str, Any] = {n: result.settings[n] for n in names if n in result.settings}
    falls = {"lam": "/√s"} if result.settings.get("lam_schedule") == "sqrt" else {}
    return ", ".join(f"{signs.get(n, n)} = {v:g}{falls.get(n, '')}" for n, v in shown.items())
