"""Exact, but reading only the contexts whose best arm could have changed.

Finding the best arm of a context is an assignment step as in k-means, and the bounds of Elkan (ICML
2003) and Hamerly (SDM 2010) carry over. At an *anchor* θ_A every context's lead of the best arm
over each other arm is known. While every arm's parameters stay within a radius r_a of the anchor,
a score moves by at most r_a ‖x‖. So a context whose leads exceed (r_best + r_a)‖x‖ cannot change
its arm: φ is linear in θ there, and the sum over all such *settled* contexts is one inner product.
Only the others are evaluated. Before every evaluation the radii are checked. When one was left, a
new anchor is set at the chain's recent mean, with radii that contain θ.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.best_arms import best_arm, rows_bonus
from feelgood.targets.bonus import FeelGood
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows, contract, row_scores
from feelgood.targets.room import SMALLEST_ROOM, sizes_up_to, smallest_size
from feelgood.targets.sums import Theta, Value

#: How many contexts are looked at together when an anchor is set.
CHUNK = SMALLEST_ROOM
#: Weight of the newest point in the running mean at which anchors are set.
RECENT = 1 / 64
#: An anchor is renewed when its evaluations have read STALE times as many contexts as are stored.
#: Its radii were too small if it was left before they had read SHORT times as many.
STALE, SHORT = 64, 16


class Anchored(NamedTuple):
    """The memo of `Pruned`; for one chain."""

    anchor: Float[Array, "dim arms"]
    centre: Float[Array, "dim arms"]
    radius: Float[Array, " arms"]
    reach: Float[Array, " arms"]
    settled: Float[Array, "dim arms"]
    settled_value: Float[Array, ""]
    offset: Float[Array, ""]
    active: Float[Array, "dim room"]
    #: w_s of those rounds; None where all are 1.
    weights: Float[Array, " room"] | None
    filled: Int[Array, ""]
    cost: Int[Array, ""]
    anchors: Int[Array, ""]


class Pruned(Evaluator):
    """Exact, reading only the contexts whose best arm is not settled. One chain, disjoint arms."""

    bonus: FeelGood

    def init(self) -> Anchored:
        assert not self.spec.lanes and not self.spec.shared
        theta = jnp.zeros((self.spec.dim, self.spec.arms))
        per_arm, number = jnp.zeros(self.spec.arms), jnp.zeros(())
        count = jnp.zeros((), jnp.int32)
        room = 2 * CHUNK  # as `reserve` for the smallest room
        return Anchored(
            anchor=theta,
            centre=theta,
            radius=per_arm,
            reach=per_arm,
            settled=theta,
            settled_value=number,
            offset=number,
            active=jnp.zeros((self.spec.dim, room)),
            weights=jnp.zeros(room) if self.bonus.weighs_rounds else None,
            filled=count,
            cost=count,
            anchors=count,
        )

    def reserve(self, memo: Anchored, rounds: int) -> Anchored:
        room = max(rounds, CHUNK) + CHUNK  # setting an anchor writes whole chunks
        extra = room - memo.active.shape[1]
        if extra <= 0:
            return memo
        weights = None if memo.weights is None else jnp.pad(memo.weights, (0, extra))
        return memo._replace(active=jnp.pad(memo.active, ((0, 0), (0, extra))), weights=weights)

    def extend(self, memo: Anchored, rows: Rows, context: Float[Array, " dim"]) -> Anchored:
        memo = self.reserve(memo, rows.capacity)  # nothing to do unless the history has grown
        active, weights = memo.active.at[:, memo.filled].set(context), memo.weights
        if weights is not None:
            newest = self.bonus.weighed(jnp.ones(()), rows.filled - 1)
            weights = weights.at[memo.filled].set(newest)
        return memo._replace(active=active, weights=weights, filled=memo.filled + 1)

    def begin(self, memo: Anchored, rows: Rows, theta: Theta) -> Anchored:
        del rows, theta
        return memo._replace(offset=memo.settled_value)

    def most(self, memo: Anchored, rows: Rows) -> Value:
        return super().most(memo, rows) - memo.offset

    def evaluate(
        self, memo: Anchored, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Anchored]:
        del uniform
        distance = jnp.sqrt(jnp.sum((theta - memo.anchor) ** 2, axis=0))
        memo = memo._replace(
            centre=memo.centre + RECENT * (theta - memo.centre),
            reach=jnp.maximum(memo.reach, distance),
            cost=memo.cost + memo.filled,
        )
        stale = (memo.cost > STALE * rows.filled) & (rows.filled > CHUNK)

        def left(memo: Anchored) -> Array:
            far = jnp.sqrt(jnp.sum((theta - memo.anchor) ** 2, axis=0)) > memo.radius
            return jnp.any(far) | (stale & (memo.cost > 0))

        def set_anchor(memo: Anchored) -> Anchored:
            # The compiler must not see that this point is the same in every turn. It would move
            # what depends on it alone out of the loop, and compute that at every evaluation.
            here = jnp.where(memo.anchors < 0, memo.anchor, theta)
            return self._anchor(memo, rows, here)

        # A loop of at most one turn, not a conditional: its carry is updated in place.
        memo = lax.while_loop(left, set_anchor, memo)

        # One branch per size, each a single pass over so many columns: a loop over chunks costs
        # more than the arithmetic.
        sizes = sizes_up_to(memo.active.shape[1])

        def reading(size: int) -> Callable[..., tuple[Value, Theta]]:
            def read(
                active: Array, weights: Array | None, filled: Array, theta: Array
            ) -> tuple[Value, Theta]:
                counts = (jnp.arange(size) < filled).astype(jnp.float32)
                if weights is not None:
                    counts = counts * weights[:size]
                return rows_bonus(self.spec, self.bonus, theta, active[:, :size], counts)

            return read

        which = smallest_size(sizes, memo.filled)
        branches = [reading(size) for size in sizes]
        value, gradient = lax.switch(which, branches, memo.active, memo.weights, memo.filled, theta)
        linear = jnp.sum((theta - memo.anchor) * memo.settled)
        value = value + (memo.settled_value - memo.offset + linear)
        return value, gradient + memo.settled, memo

    def _anchor(self, memo: Anchored, rows: Rows, theta: Theta) -> Anchored:
        """Settle what can be settled around the chain's recent mean and collect the rest."""
        anchor = memo.centre
        radius = self._radii(memo, rows, theta)

        def one(i: Int[Array, ""], carry: Anchored) -> Anchored:
            # The last chunk is moved back to stay inside the store; its mask starts where it
            # should.
            first = jnp.minimum(i * CHUNK, rows.capacity - CHUNK)
            chunk = rows.slice(first, CHUNK)
            fresh = (first + jnp.arange(CHUNK) >= i * CHUNK).astype(jnp.float32)
            chunk = chunk._replace(valid=chunk.valid * fresh)
            contexts = chunk.contexts
            assert contexts is not None
            scores = row_scores(self.spec, anchor, contexts)
            best, onehot = best_arm(scores)
            length = jnp.sqrt(jnp.sum(contexts * contexts, axis=0))
            own = jnp.sum(onehot * radius[:, None], axis=0)
            leads = best - scores - (own + radius[:, None]) * length
            clear = jnp.all((leads > 0) | (onehot > 0), axis=0)
            # φ must be straight over all values that the best score can take.
            straight = jnp.abs(self.bonus.b - best) > own * length + self.bonus.bend()
            settled = (clear & straight).astype(jnp.float32) * chunk.valid
            active = chunk.valid * (1.0 - settled)
            settled = self.bonus.weighed(settled, chunk.numbers)
            pulls = onehot * (self.bonus.slope(best) * settled)
            # Active columns first; what follows them is overwritten by the next chunk.
            order = jnp.argsort(-active, stable=True)
            weights = carry.weights
            if weights is not None:
                own_weights = self.bonus.weighed(jnp.ones(CHUNK), chunk.numbers)[order]
                weights = lax.dynamic_update_slice_in_dim(weights, own_weights, carry.filled, 0)
            return carry._replace(
                settled=carry.settled + contract(pulls, contexts),
                settled_value=carry.settled_value + jnp.sum(self.bonus.phi(best) * settled),
                active=lax.dynamic_update_slice_in_dim(
                    carry.active, contexts[:, order], carry.filled, axis=1
                ),
                weights=weights,
                filled=carry.filled + jnp.sum(active).astype(jnp.int32),
            )

        blank = memo._replace(
            anchor=anchor,
            radius=radius,
            reach=jnp.zeros_like(memo.reach),
            settled=jnp.zeros_like(memo.settled),
            settled_value=jnp.zeros(()),
            filled=jnp.zeros((), jnp.int32),
            cost=jnp.zeros((), jnp.int32),
            anchors=memo.anchors + 1,
        )
        return lax.fori_loop(0, -(-rows.filled // CHUNK), one, blank)

    def _radii(self, memo: Anchored, rows: Rows, theta: Theta) -> Float[Array, " arms"]:
        """How far each arm may go. Only speed depends on it, never the result."""
        # As far as the chain went from the last anchor and a little more; twice as far if that
        # anchor did not last long enough to pay for itself.
        short = memo.cost < SHORT * rows.filled
        follow = jnp.where(short, 2.0 * jnp.maximum(memo.reach, memo.radius), 1.2 * memo.reach)
        size = jnp.sqrt(jnp.sum(theta * theta, axis=0))
        follow = jnp.where(jnp.isfinite(follow) & (follow > 0), follow, 0.05 * size)
        # The chain itself must be inside.
        away = jnp.sqrt(jnp.sum((theta - memo.centre) ** 2, axis=0))
        # A history of one chunk is read whole at no extra cost.
        return jnp.where(rows.filled <= CHUNK, jnp.inf, jnp.maximum(follow, 1.1 * away))
