"""`many-…`: an agent with several chains of one target, one of which plays in every round.

`many-fgmalats` keeps `chains` chains of `fgmalats`. All learn from the same rounds, and each makes
the same inner steps in every round. Then one is drawn at random and plays its best arm. So the
agent plays an arm as often as its chains are in that arm's mode.

With `starts = "fresh"` chains begin every round at a new draw from N(0, spread² I), wherever they
were before. It serves one question, whether chains that do not pass between modes follow the law
together, and is no agent of the package.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from feelgood import AGENTS, Policy, Spec
from feelgood.agents import grammar
from feelgood.agents.thompson import Thompson, ThompsonState
from feelgood.core.policy import Hints, Needs, Report
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import setting, settings_of
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.numerics.keys import fold_in

PREFIX = "many-"


class ManyState(NamedTuple):
    """The chains, each with the same data."""

    inner: ThompsonState


class ManyChains(Policy):
    """Thompson sampling by several chains: one of them, drawn at random, plays."""

    one: Thompson = eqx.field(kw_only=True)
    chains: int = setting(16, "number of chains", low=1, high=10_000)
    starts: str = setting(
        "warm", "where chains begin a round: where they were, or anew", choices=("warm", "fresh")
    )
    spread: Number = setting(1.0, "standard deviation of fresh starts", above=0.0, high=1e6)

    def _inner(self, spec: Spec) -> Spec:
        layout = dataclasses.replace(spec.layout, chains=self.chains, settings=1)
        return dataclasses.replace(spec, layout=layout)

    def _each(self, x: Array) -> Array:
        """The same for every chain."""
        return jnp.broadcast_to(x[..., None], (*x.shape, self.chains))

    def hints(self, spec: Spec) -> Hints:
        return Hints(company="none", grows=self.one.hints(self._inner(spec)).grows)

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw="key", choose="key")

    def init(self, key: Any, spec: Spec) -> ManyState:
        return ManyState(self.one.init(jax.random.split(key, self.chains), self._inner(spec)))

    def reserve(self, state: ManyState, rounds: int) -> ManyState:
        return ManyState(self.one.reserve(state.inner, rounds))

    def draw(self, noise: Any, state: ManyState) -> ManyState:
        inner, keys = state.inner, jax.random.split(noise, self.chains)
        if self.starts == "fresh":
            theta = inner.chain.theta
            normals = lanes.normal(fold_in(keys, 99), inner.spec.parameters)
            chain = inner.chain._replace(theta=self.spread * normals.reshape(theta.shape))
            inner = dataclasses.replace(inner, chain=chain)
        return ManyState(self.one.draw(keys, inner))

    def choose(
        self,
        noise: Any,
        state: ManyState,
        context: Float[Array, "..."],
        allowed: Bool[Array, " arms"] | None = None,
    ) -> Int[Array, ""]:
        mask = None if allowed is None else self._each(allowed)
        arms = self.one.choose(None, state.inner, self._each(context), mask)
        return arms[jax.random.randint(noise, (), 0, self.chains)]

    def update(
        self,
        state: ManyState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> ManyState:
        seen = map(self._each, (context, arm, reward))
        return ManyState(self.one.update(state.inner, *seen))

    def report(self, state: ManyState) -> Report:
        own = self.one.report(state.inner)
        health = {name: jnp.mean(value) for name, value in own.health.items()}
        return Report(finite=jnp.all(own.finite), health=health)


def _parse(name: str) -> Entry[Policy] | None:
    if not name.startswith(PREFIX):
        return None
    parts = grammar.parts_of(name.removeprefix(PREFIX))
    if parts is None:
        return None
    bonus, words = grammar.BONUSES[parts.bonus_name]
    kernel, preconditioned = parts.kernel, parts.preconditioned
    own = settings_of(ManyChains)

    def make(values: Mapping[str, Any]) -> Policy:
        inner = grammar.compose(kernel, bonus, preconditioned, values)
        return ManyChains(one=inner, **{key: values[key] for key in own})

    return Entry(
        name=name,
        doc=f"Thompson sampling by several chains of {kernel.title}{words}.",
        settings={**grammar.thompson_settings(kernel, bonus, preconditioned), **own},
        make=make,
    )


AGENTS.add(
    Family(
        label="Thompson sampling by several chains",
        doc="many-[p|u|svrg|j][fg|sfg]{lmc|mala|hmc}ts",
        parse=_parse,
        names=("many-fgmalats",),
        defined=ManyChains,
        family="Thompson sampling by MCMC",
    )
)
