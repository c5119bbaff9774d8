"""Exact, but reading only the contexts whose best arm could have changed.

Finding the best arm of a context is an assignment step as in k-means, and the bounds of Elkan (ICML
2003) and Hamerly (SDM 2010) carry over. At an *anchor* θ_A every context's lead of the best arm
over each other arm is known. While every arm's parameters are within D times a scale r_a of the
anchor, a score moves by at most D r_a ‖x‖. So a context cannot change its arm while D is below its
*level*, the smallest of lead/((r_best + r_a)‖x‖) over the other arms. φ is linear in θ there, and
the sum over all such *settled* contexts is one inner product.

An anchor sorts the contexts by their levels into classes, and keeps the sums over the first k
classes for every k. An evaluation finds D, takes the sums of the classes that are settled up to
D, and reads the other contexts. The result is exact wherever θ is; when to set a new anchor is a
matter of cost alone.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.best_arms import first_arm, highest
from feelgood.targets.bonus import FeelGood
from feelgood.targets.bonus_strips import bonus_by_strips
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows, row_scores
from feelgood.targets.room import SMALLEST_ROOM
from feelgood.targets.strips import STRIP, kept
from feelgood.targets.sums import Theta, Value

#: Levels at which the classes of an anchor end, from the farthest class to the nearest.
LEVELS = np.geomspace(8.0, 0.5, 24, dtype=np.float32)
CLASSES = len(LEVELS)
#: Rounding errors of a distance or of a level are far below this part of it.
SLACK = 1e-3
#: Weight of the newest round in running means: of the chain, its scales and the columns read.
RECENT = 1 / 8
#: Setting an anchor costs as much as reading so many times the history.
ANCHOR_COST = 8


class Anchored(NamedTuple):
    """The memo of `Pruned`; for one chain."""

    anchor: Float[Array, "dim arms"]
    #: 1/r_a².
    precision: Float[Array, " arms"]
    #: Contexts, those of each class together, the farthest class first; then the latest rounds.
    contexts: Float[Array, "dim room"]
    #: w_s of those rounds; None where all are 1.
    weights: Float[Array, " room"] | None
    filled: Int[Array, ""]
    #: Where the classes begin, and the end of the last.
    starts: Int[Array, " classes+2"]
    #: Gradient of Σ w_s φ at the anchor over the first k classes.
    pulls: Float[Array, "classes+2 dim arms"]
    #: Σ w_s φ at the anchor over the other ones.
    values: Float[Array, " classes+1"]
    #: Running means: where the chain is, and its squared distance from there.
    centre: Float[Array, "dim arms"]
    spread: Float[Array, " arms"]
    #: Running mean of the columns that are read where a round begins.
    rate: Float[Array, ""]
    #: Columns read and evaluations made since the anchor was set.
    read: Float[Array, ""]
    evaluations: Float[Array, ""]


class _Sorting(NamedTuple):
    """What is sorted so far, and where the next context of each class goes."""

    contexts: Float[Array, "dim room"]
    weights: Float[Array, " room"] | None
    free: Int[Array, " classes+1"]


class Pruned(Evaluator):
    """Exact, reading only the contexts whose best arm is not settled. One chain, disjoint arms."""

    bonus: FeelGood

    def init(self) -> Anchored:
        assert not self.spec.lanes and not self.spec.shared
        theta = jnp.zeros((self.spec.dim, self.spec.arms))
        per_arm, number = jnp.zeros(self.spec.arms), jnp.zeros(())
        count = jnp.zeros((), jnp.int32)
        return Anchored(
            anchor=theta,
            precision=jnp.full(self.spec.arms, jnp.inf),
            contexts=jnp.zeros((self.spec.dim, SMALLEST_ROOM)),
            weights=jnp.zeros(SMALLEST_ROOM) if self.bonus.weighs_rounds else None,
            filled=count,
            starts=jnp.zeros(CLASSES + 2, jnp.int32),
            pulls=jnp.zeros((CLASSES + 2, *theta.shape)),
            values=jnp.zeros(CLASSES + 1),
            centre=theta,
            spread=per_arm,
            rate=number,
            read=number,
            evaluations=number,
        )

    def reserve(self, memo: Anchored, rounds: int) -> Anchored:
        extra = rounds - memo.contexts.shape[1]
        if extra <= 0:
            return memo
        weights = None if memo.weights is None else jnp.pad(memo.weights, (0, extra))
        return memo._replace(contexts=jnp.pad(memo.contexts, ((0, 0), (0, extra))), weights=weights)

    def extend(self, memo: Anchored, rows: Rows, context: Float[Array, " dim"]) -> Anchored:
        memo = self.reserve(memo, rows.capacity)  # nothing to do unless the history has grown
        contexts, weights = memo.contexts.at[:, memo.filled].set(context), memo.weights
        if weights is not None:
            newest = self.bonus.weighed(jnp.ones(()), rows.filled - 1)
            weights = weights.at[memo.filled].set(newest)
        return memo._replace(contexts=contexts, weights=weights, filled=memo.filled + 1)

    def begin(self, memo: Anchored, rows: Rows, theta: Theta) -> Anchored:
        away = theta - memo.centre
        weight = jnp.maximum(RECENT, 1.0 / (1.0 + rows.filled))
        columns = memo.filled - memo.starts[self._settled(memo, theta)]
        memo = memo._replace(
            centre=memo.centre + weight * away,
            spread=memo.spread + weight * (jnp.sum(away * away, axis=0) - memo.spread),
            rate=memo.rate + RECENT * (columns - memo.rate),
        )
        # An anchor has served when an evaluation costs more than the mean since it was set, with
        # what setting it cost.
        spent = ANCHOR_COST * rows.filled + memo.read
        served = (memo.rate * memo.evaluations > spent) & (rows.filled > 2 * STRIP)
        # A loop of at most one turn, not a conditional: its carry is updated in place.
        _, memo = lax.while_loop(
            lambda carry: carry[0],
            lambda carry: (jnp.zeros((), bool), self.anchored(carry[1], rows)),
            (served, memo),
        )
        return memo

    def most(self, memo: Anchored, rows: Rows) -> Value:
        return super().most(memo, rows) - memo.values[0]

    def evaluate(
        self, memo: Anchored, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Anchored]:
        del rows, uniform
        away, settled = theta - memo.anchor, self._settled(memo, theta)
        first = lax.dynamic_index_in_dim(memo.starts, settled, keepdims=False)
        value, gradient = self._read(memo, theta, (first, memo.filled))
        pulls = lax.dynamic_index_in_dim(memo.pulls, settled, keepdims=False)
        known = lax.dynamic_index_in_dim(memo.values, settled, keepdims=False)
        memo = memo._replace(
            read=memo.read + (memo.filled - first), evaluations=memo.evaluations + 1.0
        )
        return value - known + jnp.sum(away * pulls), gradient + pulls, memo

    def _settled(self, memo: Anchored, theta: Theta) -> Int[Array, ""]:
        """How many classes are settled at this point."""
        away = theta - memo.anchor
        distance = jnp.max(jnp.sum(away * away, axis=0) * memo.precision)
        # None if it is not a number, which no level exceeds.
        return jnp.sum((1.0 + SLACK) * distance < LEVELS * LEVELS)

    def _read(
        self, memo: Anchored, theta: Theta, window: tuple[Int[Array, ""], Int[Array, ""]]
    ) -> tuple[Value, Theta]:
        """Σ w_s φ and its gradient over some columns."""
        weigh = None
        if memo.weights is not None:
            weigh = functools.partial(
                lax.dynamic_slice_in_dim, memo.weights, slice_size=STRIP, axis=0
            )
        return bonus_by_strips(self.spec, self.bonus, theta, memo.contexts, weigh, window)

    def anchored(self, memo: Anchored, rows: Rows) -> Anchored:
        """An anchor at the chain's recent mean."""
        scale = jnp.sqrt(memo.spread)
        classes = self._classes(memo.centre, scale, rows)
        memo = self._sorted(memo, rows, classes)._replace(
            anchor=memo.centre,
            precision=1.0 / memo.spread,
            rate=jnp.zeros(()),
            read=jnp.zeros(()),
            evaluations=jnp.zeros(()),
        )

        def one(c: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            pulls, values = sums
            window = memo.starts[c], memo.starts[c + 1]
            value, gradient = self._read(memo, memo.anchor, window)
            total = lax.dynamic_index_in_dim(pulls, c) + gradient
            pulls = lax.dynamic_update_index_in_dim(pulls, total, c + 1, 0)
            return pulls, lax.dynamic_update_index_in_dim(values, value, c, 0)

        start = jnp.zeros_like(memo.pulls), jnp.zeros_like(memo.values)
        pulls, values = lax.fori_loop(0, CLASSES + 1, one, start)
        return memo._replace(pulls=pulls, values=jnp.cumsum(values[::-1])[::-1])

    def _classes(
        self, anchor: Theta, scale: Float[Array, " arms"], rows: Rows
    ) -> Int[Array, " room"]:
        """How many of the levels a context does not exceed; of rounds that are not there: any."""
        contexts = rows.contexts
        assert contexts is not None

        def one(i: Int[Array, ""], classes: Array) -> Array:
            # The last strip is moved back to stay inside the store.
            first = jnp.minimum(i * STRIP, rows.capacity - STRIP)
            x = lax.dynamic_slice_in_dim(contexts, first, STRIP, axis=1)
            scores = kept(i, lambda: row_scores(self.spec, anchor, x))
            best = kept(i, lambda: highest(scores))
            winner = kept(i, lambda: first_arm(scores, best))
            own = kept(i, lambda: scale[winner])
            length = jnp.sqrt(jnp.sum(x * x, axis=0))
            others = jnp.arange(self.spec.arms)[:, None] != winner
            leads = jnp.where(others, (best - scores) / (own + scale[:, None]), jnp.inf)
            # φ must be straight over all values that the best score can take.
            straight = (jnp.abs(self.bonus.b - best) - self.bonus.bend()) / own
            level = kept(i, lambda: jnp.minimum(-highest(-leads), straight) / length)
            rank = jnp.sum(~(level > LEVELS[:, None]), axis=0, dtype=jnp.int32)
            return lax.dynamic_update_slice_in_dim(classes, rank, first, axis=0)

        blank = jnp.zeros(rows.capacity, jnp.int32)
        return lax.fori_loop(0, -(-rows.filled // STRIP), one, blank)

    def _sorted(self, memo: Anchored, rows: Rows, classes: Int[Array, " room"]) -> Anchored:
        """All contexts in the order of their classes."""
        contexts = rows.contexts
        assert contexts is not None

        def count(i: Int[Array, ""], counts: Array) -> Array:
            c = classes[i]
            return lax.dynamic_update_index_in_dim(counts, counts[c] + 1, c, 0)

        counts = lax.fori_loop(0, rows.filled, count, jnp.zeros(CLASSES + 1, jnp.int32))
        starts = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(counts)])

        def place(i: Int[Array, ""], carry: _Sorting) -> _Sorting:
            at = carry.free[classes[i]]
            x = lax.dynamic_slice_in_dim(contexts, i, 1, axis=1)
            weights = carry.weights
            if weights is not None:
                weight = self.bonus.weighed(jnp.ones(()), i)
                weights = lax.dynamic_update_index_in_dim(weights, weight, at, 0)
            return _Sorting(
                contexts=lax.dynamic_update_slice_in_dim(carry.contexts, x, at, axis=1),
                weights=weights,
                free=lax.dynamic_update_index_in_dim(carry.free, at + 1, classes[i], 0),
            )

        unsorted = _Sorting(memo.contexts, memo.weights, starts[:-1])
        done = lax.fori_loop(0, rows.filled, place, unsorted)
        return memo._replace(
            contexts=done.contexts, weights=done.weights, filled=rows.filled, starts=starts
        )
