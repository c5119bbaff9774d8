"""What every function of an agent returns, found without running it."""

import dataclasses
import functools
from collections.abc import Callable, Generator
from typing import Any, cast

import jax
import jax.numpy as jnp

from feelgood.api.agent_case import CHECKED_ROUNDS, CHECKED_SEEDS, AgentCase, with_lanes
from feelgood.api.findings import Findings, kind_of, said, structure_change
from feelgood.core.errors import shown
from feelgood.core.policy import Needs, Policy, Report, refusal
from feelgood.core.spec import Spec
from feelgood.numerics import generator
from feelgood.numerics.keys import AGENT, LaneKeys, seed_array, seed_keys
from feelgood.numerics.noise import round_noise


def check_agent_kinds(case: AgentCase, problem: str) -> Findings:
    """What every function returns, found without running it."""
    spec = case.problems[problem].spec
    why = refusal(case.policy, spec)
    if why is not None:
        yield f"it cannot play '{problem}': {why}"
        return
    takes_lanes = case.policy.hints(spec).layout == "lanes"
    for lane_count in (0, len(CHECKED_SEEDS)) if takes_lanes else (0,):
        place = f"with {lane_count} lanes" if lane_count else "for one chain"
        where = f"on {spec.context_shape} contexts, {place},"
        look = _Look(case.lifted(problem, lane_count), with_lanes(spec, lane_count), where)
        found = list(look.everything())
        yield from found
        if found:
            return


#: Says what it finds, one sentence each, and returns what was asked for, or None.
_Step = Generator[str, None, Any]


@dataclasses.dataclass(frozen=True)
class _Look:
    """An agent for the lanes of a spec, whose functions are looked at one by one."""

    policy: Policy
    spec: Spec
    where: str

    @functools.cached_property
    def key(self) -> Any:
        if not self.spec.lanes:
            return generator.key(0)
        return LaneKeys(keys=seed_keys(seed_array(range(self.spec.lanes[0])), AGENT), settings=1)

    @property
    def context(self) -> Any:
        return jax.ShapeDtypeStruct((*self.spec.context_shape, *self.spec.lanes), jnp.float32)

    def everything(self) -> Findings:
        """All functions; after a wrong state or arm, nothing more is tried."""
        needs = self.policy.needs(self.spec)
        if not _are_needs(needs):
            yield (
                f"noise {self.where} returns {shown(needs)}: use a Needs of 'key' or whole numbers."
            )
            return
        noise = jax.eval_shape(lambda: round_noise(self.key, needs))
        state = yield from self.begin()
        if state is None or not (yield from self.draw(noise.draw, state)):
            return
        arm = yield from self.choose(noise.choose, state)
        if arm is not None and (yield from self.update(state, arm)):
            yield from self.report(state)

    def tried(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """The kinds that a function returns, or what is wrong."""
        try:
            return jax.eval_shape(function, *args), None
        except Exception as error:
            return None, f"{what} {self.where} {said(error)}"

    def begin(self) -> _Step:
        """The state at the beginning."""

        def made() -> Any:
            return self.policy.reserve(self.policy.init(self.key, self.spec), CHECKED_ROUNDS)

        state, problem = self.tried("init", made)
        if problem:
            yield problem
            return None
        leaves = jax.tree.leaves(state)
        loose = [type(leaf).__name__ for leaf in leaves if not hasattr(leaf, "dtype")]
        if loose:
            yield f"init {self.where} puts a {loose[0]} into the state: use arrays only."
            return None
        return state

    def unchanged(self, what: str, state: Any, function: Callable[..., Any], *args: Any) -> _Step:
        """Whether a function returns a state like the one that it got."""
        after, problem = self.tried(what, function, *args)
        if not problem and (change := structure_change(state, after)) is not None:
            problem = f"{what} {self.where} {change}."
        if problem:
            yield problem
        return not problem

    def draw(self, noise: Any, state: Any) -> _Step:
        """Whether parameters are drawn and the state stays as it is."""
        return (yield from self.unchanged("draw", state, self.policy.draw, noise, state))

    def choose(self, noise: Any, state: Any) -> _Step:
        """The arm."""
        where = self.where
        arm, problem = self.tried("choose", self.policy.choose, noise, state, self.context)
        if problem:
            yield problem
            return None
        if not jnp.issubdtype(getattr(arm, "dtype", float), jnp.integer):
            kind = kind_of(arm)
            yield f"choose {where} returns {kind}: return the arm, a whole number of int32."
            return None
        lanes = self.spec.lanes
        if arm.shape != lanes:
            yield f"choose {where} returns an arm of shape {arm.shape}: it must be {lanes}."
            return None
        return arm

    def update(self, state: Any, arm: Any) -> _Step:
        """Whether a reward is taken in and the state stays as it is."""
        reward = jax.ShapeDtypeStruct(self.spec.lanes, jnp.float32)
        whole = jax.ShapeDtypeStruct(self.spec.lanes, arm.dtype)
        args = (state, self.context, whole, reward)
        return (yield from self.unchanged("update", state, self.policy.update, *args))

    def report(self, state: Any) -> Findings:
        """One truth value and one number of each kind per chain, and the model's parameters."""
        report, problem = self.tried("report", self.policy.report, state)
        if problem or not isinstance(report, Report):
            yield problem or f"report {self.where} returns {kind_of(report)}: return a Report."
            return
        shape, has = self.spec.lanes, f"report {self.where} has"
        finite, health, parameters = (cast("Any", part) for part in report)
        if getattr(finite, "shape", None) != shape or finite.dtype != bool:
            yield f"{has} {kind_of(finite)} as finite: give one truth value per chain."
        if not isinstance(health, dict):
            yield f"{has} {kind_of(health)} as health: give a dictionary of numbers."
            return
        for name, value in health.items():
            if getattr(value, "shape", None) != shape:
                yield f"{has} {kind_of(value)} as '{name}': give one number per chain."
        expected = (self.spec.parameters, *shape)
        if parameters is not None and getattr(parameters, "shape", None) != expected:
            yield f"{has} {kind_of(parameters)} as parameters: it must be {expected}."


def _are_needs(needs: Any) -> bool:
    def allowed(amount: Any) -> bool:
        return amount == "key" or (isinstance(amount, int) and amount >= 0)

    return isinstance(needs, Needs) and all(map(allowed, needs))
