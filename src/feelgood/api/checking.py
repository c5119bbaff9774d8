"""Does an agent or a testbed keep its promises? The conformance suite as two functions.

`check_agent` and `check_testbed` play a few rounds on small problems and return what is wrong, one
sentence each. Every agent and testbed of the package passes the same checks in the tests.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from feelgood.api.agent_case import PROBLEMS, AgentCase, problems_for
from feelgood.api.check_agent_kinds import check_agent_kinds
from feelgood.api.check_agents import (
    check_apart,
    check_leaves,
    check_live,
    check_play,
    check_pure,
    check_sweep,
)
from feelgood.api.check_pmf import check_pmf
from feelgood.api.check_scores import check_scores
from feelgood.api.check_settings import check_bounds, check_documented
from feelgood.api.check_testbeds import (
    check_testbed_kinds,
    check_testbed_pure,
    check_testbed_rounds,
)
from feelgood.api.findings import Findings, said
from feelgood.core.arguments import require_kind
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.registry import Entry, Registry
from feelgood.core.settings import Setting, settings_of
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.engine.building import build_testbed


@dataclasses.dataclass(frozen=True, repr=False)
class ConformanceReport(Sequence[str]):
    """What was found, one sentence each; empty, and false, when all is well."""

    name: str
    findings: tuple[str, ...]
    #: How many checks were made; those that need others to pass are left out.
    checks: int

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, which: Any) -> Any:
        return self.findings[which]

    def __repr__(self) -> str:
        if not self.findings:
            return f"{self.name}: all {self.checks} checks passed."
        what = "1 finding" if len(self) == 1 else f"{len(self)} findings"
        return "\n".join([f"{self.name}: {what}", *(f"- {finding}" for finding in self.findings)])


def check_agent(agent: Any, *, testbed: Any = None) -> ConformanceReport:
    """Check an agent: shapes, purity, lanes, sweeps, settings, documentation.

    **Arguments:**

    - `agent`: a registered name, a class or an object of a `feelgood.Policy`.
    - `testbed`: what to play on, a name or a `Testbed`; by default two small problems, one with a
      context for all arms and one with a context per arm. An agent that refuses both plays two
      that say what is known of their mean rewards.

    **Example:**

    >>> import feelgood
    >>> feelgood.check_agent("uniform")
    uniform: all 17 checks passed.
    """
    case = AgentCase(entry_of(agent, AGENTS, Policy, "agent", "lints"))
    if testbed is None:
        problems = {name: PROBLEMS[name] for name in problems_for(case.policy)}
    else:
        name, built, _ = build_testbed(testbed)
        problems = {name: built}
    case = dataclasses.replace(case, problems=problems)
    settings = [functools.partial(c, case.entry) for c in (check_documented, check_bounds)]
    stages = [Stage(rest=[*settings, functools.partial(check_leaves, case)])]
    for place, name in enumerate(problems):
        gates = [check_agent_kinds, check_play, *([] if place else [check_pure])]
        rest = [check_live, check_apart, check_pmf, check_scores, *([] if place else [check_sweep])]
        stages.append(
            Stage(
                gates=[functools.partial(check, case, name) for check in gates],
                rest=[functools.partial(check, case, name) for check in rest],
            )
        )
    return _report(case.entry.name, stages)


def check_testbed(testbed: Any) -> ConformanceReport:
    """Check a testbed: shapes, purity, rewards, settings, documentation.

    **Arguments:**

    - `testbed`: a registered name, a class or an object of a `feelgood.Testbed`.

    **Example:**

    >>> import feelgood
    >>> feelgood.check_testbed("wheel-0.5")
    wheel-0.5: all 5 checks passed.
    """
    entry = entry_of(testbed, TESTBEDS, Testbed, "testbed", "linear-20")
    built = entry.build()
    settings = [functools.partial(c, entry) for c in (check_documented, check_bounds)]
    gates = [functools.partial(c, built) for c in (check_testbed_kinds, check_testbed_pure)]
    rest = [functools.partial(check_testbed_rounds, built)]
    return _report(entry.name, [Stage(rest=settings), Stage(gates=gates, rest=rest)])


class Stage(NamedTuple):
    """Checks that belong together: after a gate that finds something, nothing more is tried."""

    rest: Sequence[Callable[[], Findings]]
    gates: Sequence[Callable[[], Findings]] = ()


def _report(name: str, stages: Iterable[Stage]) -> ConformanceReport:
    found: dict[str, None] = {}
    made = 0

    def run(check: Callable[[], Findings]) -> bool:
        nonlocal made, found
        made += 1
        try:
            here = list(check())
        except Exception as error:
            here = [f"{_called(check)} {said(error)}"]
        found |= dict.fromkeys(here)
        return not here

    for stage in stages:
        if all(run(gate) for gate in stage.gates):
            for check in stage.rest:
                run(check)
    return ConformanceReport(name, tuple(found), made)


def _called(check: Any) -> str:
    return getattr(getattr(check, "func", check), "__name__", "check")


def entry_of(
    which: Any, registry: Registry[Any], kind: type, what: str, example: str
) -> Entry[Any]:
    """A name, a class or an object as something that can be built with settings."""
    if isinstance(which, str):
        return registry[which]
    if isinstance(which, type) and issubclass(which, kind):
        cls: type = which

        def make(values: Mapping[str, Any]) -> Any:
            try:
                return cls(**values)
            except TypeError as error:
                raise FeelgoodError(
                    f"{cls.__name__} cannot be made of its settings alone ({shown(str(error))})"
                    ": give an object."
                ) from None

        entry: Entry[Any] = Entry(cls.__name__, _doc(cls), settings_of(cls), make)
        entry.build()
        return entry
    require_kind(which, kind, what, f"a name such as '{example}', a class or an object")

    def remake(values: Mapping[str, Any]) -> Any:
        return dataclasses.replace(which, **values)

    own = type(which)
    rules = {
        name: dataclasses.replace(rule, default=_value(which, name, rule))
        for name, rule in settings_of(own).items()
    }
    return Entry(own.__name__, _doc(own), rules, remake)


def _doc(cls: type) -> str:
    """The first line of a class' own documentation."""
    text = (vars(cls).get("__doc__") or "").strip().partition("\n")[0]
    return "" if text.startswith(f"{cls.__name__}(") else text  # a dataclass writes its own


def _value(thing: Any, name: str, rule: Setting) -> Any:
    value = getattr(thing, name)
    return value if rule.static else float(str(np.float32(value)))
