"""From policies for one chain and one setting to policies for many."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from feelgood.core.errors import FeelgoodError
from feelgood.core.protocols import Policy
from feelgood.core.spec import Spec
from feelgood.numerics.lanes import AnyKey, Common, LaneKeys


def has_method(policy: Policy, method: str) -> bool:
    """Whether a policy defines this optional method."""
    one = policy.one if isinstance(policy, Lifted) else policy
    return getattr(type(one), method) is not getattr(Policy, method)


class Lifted(Policy):
    """A policy written for one chain, lifted over lanes with `vmap`.

    Lanes are the last axis of everything the engine sees, and of the state too unless the policy
    wants its chains first. What the state marks as `Common` has no lanes. `swept` says of each
    leaf of the policy whether it has one value a lane.
    """

    one: Policy
    swept: tuple[bool, ...] = eqx.field(static=True)

    laned = True

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

        def common(part: Any) -> bool:
            return isinstance(part, Common)

        axis = 0 if self.one.chains_first else -1
        return jax.tree.map(lambda part: None if common(part) else axis, state, is_leaf=common)

    @staticmethod
    def _each(key: AnyKey) -> Array:
        return key.each() if isinstance(key, LaneKeys) else key

    def init(self, key: AnyKey, spec: Spec, shape: tuple[int, ...] = ()) -> Any:
        del shape
        each = self._each(key)

        def begin(policy: Policy, one: Array) -> Any:
            return policy.init(one, spec)

        like = jax.eval_shape(lambda keys: self._lift(begin, keys, axes=(0,)), each)
        return self._lift(begin, each, axes=(0,), out=self._axes(like))

    def act(self, key: AnyKey, state: Any, context: Float[Array, "..."]) -> tuple[Array, Any]:
        axes = self._axes(state)
        return self._lift(
            lambda policy, *a: policy.act(*a),
            *(self._each(key), state, context),
            axes=(0, axes, -1),
            out=(-1, axes),
        )

    def noise(self, key: Array, spec: Spec) -> Array:
        return self.one.noise(key, spec)

    def decide(self, noise: Array, state: Any, context: Float[Array, "..."]) -> tuple[Array, Any]:
        axes = self._axes(state)
        return self._lift(
            lambda policy, *a: policy.decide(*a),
            *(noise, state, context),
            axes=(-1, axes, -1),
            out=(-1, axes),
        )

    def update(self, state: Any, context: Array, arm: Array, reward: Array) -> Any:
        axes = self._axes(state)
        return self._lift(
            lambda policy, *a: policy.update(*a),
            *(state, context, arm, reward),
            axes=(axes, -1, -1, -1),
            out=axes,
        )

    def probe(self, state: Any) -> Array:
        return self._lift(lambda policy, s: policy.probe(s), state, axes=(self._axes(state),))

    def segment_rounds(self, rounds: int, chains: int) -> int | None:
        return self.one.segment_rounds(rounds, chains)

    def reserve(self, state: Any, rounds: int) -> Any:
        axes = self._axes(state)
        return self._lift(
            lambda policy, s: policy.reserve(s, rounds), state, axes=(axes,), out=axes
        )

    def health(self, state: Any) -> dict[str, Array]:
        return self._lift(lambda policy, s: policy.health(s), state, axes=(self._axes(state),))

    def arm_of_draw(self, state: Any, context: Float[Array, "..."]) -> Array:
        return self._lift(
            lambda policy, *a: policy.arm_of_draw(*a),
            *(state, context),
            axes=(self._axes(state), -1),
        )

    def redraw(self, key: AnyKey, state: Any) -> tuple[Array, Any] | None:
        if not has_method(self, "redraw"):
            return None
        axes = self._axes(state)
        return self._lift(
            lambda policy, *a: policy.redraw(*a),
            *(self._each(key), state),
            axes=(0, axes),
            out=(-1, axes),
        )


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
