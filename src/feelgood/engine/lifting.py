"""From policies for one chain and one setting to policies for many."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Needs, Policy, Report
from feelgood.core.spec import Spec
from feelgood.numerics.keys import AnyKey, LaneKeys
from feelgood.numerics.lanes import Mask, Unbatched


def for_lanes(policy: Policy, spec: Spec, hint: str, swept: Sequence[bool] | None = None) -> Policy:
    """The policy for the lanes of this spec, lifted unless it takes them itself.

    `hint` is the agent's `Hints.layout`. `swept` says of each leaf of the policy whether it has
    one value per lane; by default none has.
    """
    if not spec.lanes or hint == "lanes":
        return policy
    none = (False,) * len(jax.tree.leaves(policy))
    return Lifted(
        one=policy,
        swept=none if swept is None else tuple(swept),
        chains_first=hint == "chains first",
    )


class Lifted(Policy):
    """A policy written for one chain, lifted over lanes with `vmap`.

    Lanes are the last axis of everything the engine sees, and of the state too unless the policy
    wants its chains first. What the state marks as `Unbatched` has no lanes. `swept` says of each
    leaf of the policy whether it has one value per lane.
    """

    one: Policy
    swept: tuple[bool, ...] = eqx.field(static=True)
    chains_first: bool = eqx.field(static=True, default=False)

    def _lift(
        self, function: Callable[..., Any], *args: Any, axes: Sequence[Any], out: Any = -1
    ) -> Any:
        """`function(policy, *args)` for every lane; `axes` and `out` say where the lanes are."""
        own = jax.tree.unflatten(
            jax.tree.structure(self.one), [-1 if swept else None for swept in self.swept]
        )
        return jax.vmap(function, in_axes=(own, *axes), out_axes=out)(self.one, *args)

    def _axes(self, state: Any) -> Any:
        """Where the lanes of each part of a state are."""

        def unbatched(part: Any) -> bool:
            return isinstance(part, Unbatched)

        axis = 0 if self.chains_first else -1
        return jax.tree.map(lambda x: None if unbatched(x) else axis, state, is_leaf=unbatched)

    @staticmethod
    def _noise(noise: Any) -> tuple[Any, int | None]:
        """Random numbers as `vmap` takes them, and where their lanes are."""
        if noise is None:
            return None, None
        if isinstance(noise, LaneKeys):
            return noise.each(), 0
        is_key = jax.dtypes.issubdtype(noise.dtype, jax.dtypes.prng_key)
        return noise, 0 if is_key else -1

    def init(self, key: AnyKey, spec: Spec) -> Any:
        each, axis = self._noise(key)
        one_chain = dataclasses.replace(spec.layout, chains=0, settings=1)
        inner = dataclasses.replace(spec, layout=one_chain)

        def begin(policy: Policy, one: Array) -> Any:
            return policy.init(one, inner)

        like = jax.eval_shape(lambda keys: self._lift(begin, keys, axes=(axis,)), each)
        return self._lift(begin, each, axes=(axis,), out=self._axes(like))

    def draw(self, noise: Any, state: Any) -> Any:
        axes = self._axes(state)
        numbers, axis = self._noise(noise)
        return self._lift(
            lambda policy, *a: policy.draw(*a), numbers, state, axes=(axis, axes), out=axes
        )

    def choose(
        self, noise: Any, state: Any, context: Float[Array, "..."], allowed: Mask = None
    ) -> Array:
        numbers, axis = self._noise(noise)
        mask = () if allowed is None else (allowed,)
        return self._lift(
            lambda policy, *a: policy.choose(*a),
            *(numbers, state, context, *mask),
            axes=(axis, self._axes(state), *[-1] * (1 + len(mask))),
        )

    def update(self, state: Any, context: Array, arm: Array, reward: Array) -> Any:
        axes = self._axes(state)
        return self._lift(
            lambda policy, *a: policy.update(*a),
            *(state, context, arm, reward),
            axes=(axes, -1, -1, -1),
            out=axes,
        )

    def report(self, state: Any) -> Report:
        return self._lift(lambda policy, s: policy.report(s), state, axes=(self._axes(state),))

    def reserve(self, state: Any, rounds: int) -> Any:
        axes = self._axes(state)
        return self._lift(
            lambda policy, s: policy.reserve(s, rounds), state, axes=(axes,), out=axes
        )

    def needs(self, spec: Spec) -> Needs:
        return self.one.needs(spec)


def stack_settings(policies: Sequence[Policy]) -> tuple[Policy, tuple[bool, ...]]:
    """One policy whose swept leaves have a leading axis of settings, and which leaves those are."""
    structures = {jax.tree.structure(p) for p in policies}
    if len(structures) != 1:
        raise FeelgoodError(
            "these settings shape the program itself and cannot share one: run them apart."
        )

    columns = list(zip(*(jax.tree.leaves(p) for p in policies), strict=True))
    swept = tuple(any(not np.array_equal(c[0], leaf) for leaf in c[1:]) for c in columns)
    leaves = [
        jnp.stack(c) if several else jnp.asarray(c[0])
        for c, several in zip(columns, swept, strict=True)
    ]
    return jax.tree.unflatten(structures.pop(), leaves), swept
