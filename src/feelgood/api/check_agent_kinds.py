"""What every function of an agent returns, found without running it."""

import dataclasses
import functools
from collections.abc import Callable, Generator
from typing import Any

import jax
import jax.numpy as jnp

from feelgood.api.agent_case import CHECKED_ROUNDS, CHECKED_SEEDS, AgentCase
from feelgood.api.findings import Findings, kind_of, said, structure_change
from feelgood.core.protocols import Policy
from feelgood.core.spec import Spec
from feelgood.engine.environment import AGENT, seed_array, seed_keys
from feelgood.engine.lifting import has_method
from feelgood.numerics import generator
from feelgood.numerics.lanes import LaneKeys


def check_agent_kinds(case: AgentCase, problem: str) -> Findings:
    """What every function returns, found without running it."""
    spec = case.problems[problem].spec
    for lane_count in (0, len(CHECKED_SEEDS)):
        policy = case.lifted(lane_count)
        own = case.policy.laned or not lane_count
        place = f"with {lane_count} lanes" if lane_count else "for one chain"
        where = f"on {spec.context_shape} contexts, {place},"
        shape = (lane_count,) if lane_count else ()
        found = list(_kinds(policy, spec, shape, where)) if own else []
        yield from found
        if found:
            return


def _kinds(policy: Policy, spec: Spec, shape: tuple[int, ...], where: str) -> Findings:
    """Of all functions; after a wrong state or arm, nothing more is tried."""
    look = _Look(policy, spec, shape, where)
    state = yield from look.begin()
    arm = None if state is None else (yield from look.act(state))
    if arm is None or not (yield from look.update(state, arm)):
        return
    yield from look.probe_and_health(state)
    yield from look.redraw(state)
    if has_method(policy, "noise") != has_method(policy, "decide"):
        yield "noise and decide belong together: define both, or neither."


#: Says what it finds, one sentence each, and returns what was asked for, or None.
_Step = Generator[str, None, Any]


@dataclasses.dataclass(frozen=True)
class _Look:
    """An agent for chains of this shape, whose functions are looked at one by one."""

    policy: Policy
    spec: Spec
    shape: tuple[int, ...]
    where: str

    @functools.cached_property
    def key(self) -> Any:
        if not self.shape:
            return generator.key(0)
        return LaneKeys(keys=seed_keys(seed_array(range(self.shape[0])), AGENT), settings=1)

    @property
    def context(self) -> Any:
        return jax.ShapeDtypeStruct((*self.spec.context_shape, *self.shape), jnp.float32)

    def tried(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """The kinds that a function returns, or what is wrong."""
        try:
            return jax.eval_shape(function, *args), None
        except Exception as error:
            return None, f"{what} {self.where} {said(error)}"

    def begin(self) -> _Step:
        """The state at the beginning."""

        def made() -> Any:
            state = self.policy.init(self.key, self.spec, self.shape)
            return self.policy.reserve(state, CHECKED_ROUNDS)

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

    def act(self, state: Any) -> _Step:
        """The arm."""
        where = self.where

        def acts(state: Any, context: Any) -> Any:
            return self.policy.act(self.key, state, context)

        acted, problem = self.tried("act", acts, state, self.context)
        if problem:
            yield problem
            return None
        if not isinstance(acted, tuple) or len(acted) != 2:
            yield f"act {where} returns {kind_of(acted)}: return the arm and the state."
            return None
        arm, after = acted
        if not jnp.issubdtype(getattr(arm, "dtype", float), jnp.integer):
            kind = kind_of(arm)
            yield f"act {where} returns an arm of type {kind}: use a whole number, of int32."
            return None
        if arm.shape != self.shape:
            yield f"act {where} returns an arm of shape {arm.shape}: it must be {self.shape}."
            return None
        if (change := structure_change(state, after)) is not None:
            yield f"act {where} {change}."
            return None
        return arm

    def update(self, state: Any, arm: Any) -> _Step:
        """Whether a reward is taken in and the state stays as it is."""
        reward = jax.ShapeDtypeStruct(self.shape, jnp.float32)
        whole = jax.ShapeDtypeStruct(self.shape, arm.dtype)
        learned, problem = self.tried(
            "update", self.policy.update, state, self.context, whole, reward
        )
        if not problem and (change := structure_change(state, learned)) is not None:
            problem = f"update {self.where} {change}."
        if problem:
            yield problem
        return not problem

    def probe_and_health(self, state: Any) -> Findings:
        """One number per chain each."""
        where = self.where
        probe, problem = self.tried("probe", self.policy.probe, state)
        if problem or getattr(probe, "shape", None) != self.shape:
            kind = kind_of(probe)
            yield problem or f"probe {where} returns {kind}: it must be one number per chain."
        health, problem = self.tried("health", self.policy.health, state)
        if problem:
            yield problem
        elif not isinstance(health, dict):
            yield f"health {where} returns {kind_of(health)}: return a dictionary of numbers."
        else:
            for name, value in health.items():
                if getattr(value, "shape", None) != self.shape:
                    kind = kind_of(value)
                    yield f"health {where} has {kind} as '{name}': give one number per chain."

    def redraw(self, state: Any) -> Findings:
        """New parameters, where the agent draws them."""
        drawn, problem = self.tried("redraw", lambda s: self.policy.redraw(self.key, s), state)
        if problem:
            yield problem
        elif drawn is not None:
            expected = (self.spec.parameters, *self.shape)
            if getattr(drawn[0], "shape", None) != expected:
                kind = kind_of(drawn[0])
                yield f"redraw {self.where} returns parameters of {kind}: it must be {expected}."
            elif (change := structure_change(state, drawn[1])) is not None:
                yield f"redraw {self.where} {change}."
