"""The feel-good bonus Σ_s φ(max_a f_θ(x_s, a)) over all arms of every stored context.

Three ways to evaluate it, all for the same function:

- `FullPass` reads every stored context: the plain definition, one fused pass.
- `Pruned` is exact too, but reads only the contexts whose best arm could have changed. Finding
  the best arm of a context is an assignment step as in k-means, and the bounds of Elkan (ICML
  2003) and Hamerly (SDM 2010) carry over. At an *anchor* θ_A every context's lead of the best arm
  over each other arm is known. While every arm's parameters stay within a radius r_a of the
  anchor, a score moves by at most r_a ‖x‖, so a context whose leads exceed (r_best + r_a)‖x‖
  cannot change its arm: φ is linear in θ there, and the sum over all such *settled* contexts is
  one inner product. Only the others are evaluated. Before every evaluation the radii are checked;
  when one was left, a new anchor is set at the chain's recent mean, with radii that contain θ.
- `Subsampled` is an unbiased estimate of the gradient: one full gradient a round plus a
  correction on a random batch (`bonus_gradient = "svrg"`). It has no value, so Metropolis kernels
  cannot use it.

The full pass of many chains on an accelerator is in `feelgood.targets.bonus_layouts`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.targets.history import (
    SMALLEST_ROOM,
    Chunk,
    Rows,
    contract,
    piece_length,
    random_piece,
    row_scores,
    sizes_up_to,
    smallest_size,
    total_of,
)

#: Contexts that are settled at a time when an anchor is set.
CHUNK = SMALLEST_ROOM
#: Weight of the newest point in the running mean at which anchors are set.
RECENT = 1 / 64
#: Setting an anchor costs about as much as evaluating this many times as many contexts. An anchor
#: is renewed when its evaluations have cost STALE times the contexts stored, and its radii were
#: too small if it was left before they had cost SHORT times that.
STALE, SHORT = 64, 16

Theta = Float[Array, "dim blocks *lanes"]
Value = Float[Array, "*lanes"]


class FeelGood(eqx.Module):
    """The bonus λ φ(g) with φ(g) = min(b, g), or its smoothed form.

    Zhang, "Feel-good Thompson sampling for contextual bandits and reinforcement learning", 2022.
    """

    lam: Number = setting(0.1, "weight λ of the feel-good bonus", low=0.0, high=1e6)
    b: Number = setting(1000.0, "cap b of the feel-good bonus", above=0.0, high=1e9)

    #: Whether φ' takes the values 0 and 1 only.
    hard: ClassVar[bool] = True

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ(g)."""
        return jnp.minimum(self.b[..., None], best)

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ'(g)."""
        return (best < self.b[..., None]).astype(jnp.float32)

    def bend(self) -> Float[Array, "..."]:
        """How far from b the function φ is straight to float32 accuracy."""
        return jnp.zeros_like(self.b)

    @property
    def sharpness(self) -> Number:
        """s of the corner's rounding; infinite for a corner that is not rounded."""
        return jnp.full_like(self.b, jnp.inf)


class SmoothedFeelGood(FeelGood):
    """φ(g) = b − softplus(s(b − g))/s: the cap with a rounded corner.

    Computed as min(b, g) − softplus(−s|b − g|)/s, which keeps float32 accuracy for large b.
    """

    s: Number = setting(10.0, "sharpness s of the smoothed bonus", above=0.0, high=1e6)

    hard = False

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        b, s = self.b[..., None], self.s[..., None]
        return jnp.minimum(b, best) - jax.nn.softplus(-s * jnp.abs(b - best)) / s

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        return jax.nn.sigmoid(self.s[..., None] * (self.b[..., None] - best))

    def bend(self) -> Float[Array, "..."]:
        # e^{-20} = 2e-9: below half a unit in the last place of a slope of 1, or of 0 in a sum.
        return 20.0 / self.s

    @property
    def sharpness(self) -> Number:
        return self.s


#: Up to this many arms comparisons are written out; above it they are reductions.
WRITTEN_OUT = 16


def highest(scores: Float[Array, "arms *any"]) -> Float[Array, "*any"]:
    """The largest score."""
    if len(scores) > WRITTEN_OUT:
        return jnp.max(scores, axis=0)
    best = scores[0]
    for other in scores[1:]:
        best = jnp.maximum(best, other)
    return best


def best_arm(
    scores: Float[Array, "arms *any"],
) -> tuple[Float[Array, "*any"], Float[Array, "arms *any"]]:
    """The largest score and the first arm that has it (one-hot)."""
    best = highest(scores)
    if len(scores) > WRITTEN_OUT:
        return best, lanes.one_hot(first_arm(scores, best), len(scores))
    hits, taken = [], jnp.zeros(best.shape, bool)
    for arm in scores:
        hit = (arm == best) & ~taken
        taken = taken | hit
        hits.append(hit)
    return best, jnp.stack(hits).astype(jnp.float32)


def first_arm(scores: Float[Array, "arms *any"], best: Float[Array, "*any"]) -> Int[Array, "*any"]:
    """The first arm with the largest score; as two simple reductions, which `argmax` is not."""
    arms = jnp.arange(len(scores)).reshape(-1, *[1] * best.ndim)
    # No arm has it where a score is not a number.
    return jnp.minimum(
        jnp.min(jnp.where(scores == best, arms, len(scores)), axis=0), len(scores) - 1
    )


def rows_bonus(
    spec: Spec,
    bonus: FeelGood,
    theta: Theta,
    contexts: Float[Array, "... width"],
    valid: Float[Array, "... width"],
    store: Float[Array, "... room"] | None = None,
) -> tuple[Value, Theta]:
    """Σ φ and its gradient over the valid rounds of a chunk.

    Where arms have features of their own, the gradient reads those of the best arms alone, from
    the `store` that the contexts are the first of: out of a part they would be copied first.
    """
    scores = row_scores(spec, theta, contexts)
    if spec.shared:
        best = highest(scores)
        winner = first_arm(scores, best)
        where = (slice(None), winner, *jnp.indices(winner.shape, sparse=True))
        features = contexts if store is None else store
        chosen = features.at[where].get(mode="promise_in_bounds")
        weights = (bonus.slope(best) * valid)[None]
        gradient = contract(weights, chosen)
    else:
        best, hot = best_arm(scores)
        gradient = contract(hot * (bonus.slope(best) * valid), contexts)
    return total_of(bonus.phi(best), valid), gradient


class Evaluator(eqx.Module):
    """A way to evaluate the bonus. `memo` is what it carries from evaluation to evaluation."""

    bonus: FeelGood
    spec: Spec = eqx.field(static=True)

    @property
    def uniforms(self) -> int:
        """Uniform random numbers that one evaluation uses."""
        return 0

    @abstractmethod
    def init(self, shape: tuple[int, ...]) -> Any:
        """The memo before the first round."""

    def reserve(self, memo: Any, rounds: int) -> Any:
        """Make room for `rounds` rounds."""
        del rounds
        return memo

    def extend(self, memo: Any, rows: Rows, context: Float[Array, "..."]) -> Any:
        """The history has grown by this context."""
        del rows, context
        return memo

    def begin(self, memo: Any, rows: Rows, theta: Theta) -> Any:
        """A round begins at `theta`."""
        del rows, theta
        return memo

    def end(self, memo: Any) -> Any:
        """A round ends: what to keep of the memo."""
        return memo

    @abstractmethod
    def evaluate(
        self, memo: Any, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Any]:
        """Σ φ (up to a constant that is fixed within a round), its gradient, and the new memo."""

    def value(
        self, memo: Any, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        """Σ φ alone, and the new memo."""
        value, _, memo = self.evaluate(memo, rows, theta, luck)
        return value, memo

    def most(self, memo: Any, rows: Rows) -> Value:
        """A value that no θ exceeds: φ ≤ b."""
        del memo
        return self.bonus.b * rows.filled


class FullPass(Evaluator):
    """Every stored context, at every evaluation."""

    def init(self, shape: tuple[int, ...]) -> tuple[()]:
        return ()

    def evaluate(
        self, memo: tuple[()], rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, tuple[()]]:
        del luck

        def of_chunk(chunk: Chunk, theta: Theta) -> tuple[Value, Theta]:
            assert chunk.contexts is not None
            return rows_bonus(
                self.spec, self.bonus, theta, chunk.contexts, chunk.valid, rows.contexts
            )

        value, gradient = rows.total(of_chunk, theta)
        return value, gradient, memo

    def value(
        self, memo: Any, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        del luck

        def of_chunk(chunk: Chunk, theta: Theta) -> Value:
            assert chunk.contexts is not None
            scores = row_scores(self.spec, theta, chunk.contexts)
            if len(scores) > WRITTEN_OUT:
                # Folded once: a lone reduction would take the sums of the scores into itself, and
                # compute them round by round with long strides.
                half = -(-len(scores) // 2)
                scores = jnp.maximum(scores[:half], scores[-half:])
            return total_of(self.bonus.phi(highest(scores)), chunk.valid)

        return rows.total(of_chunk, theta), memo


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
    filled: Int[Array, ""]
    cost: Int[Array, ""]
    anchors: Int[Array, ""]


class Pruned(Evaluator):
    """Exact, reading only the contexts whose best arm is not settled. One chain, disjoint arms."""

    def init(self, shape: tuple[int, ...]) -> Anchored:
        assert shape == () and not self.spec.shared
        theta = jnp.zeros((self.spec.dim, self.spec.arms))
        per_arm, number = jnp.zeros(self.spec.arms), jnp.zeros(())
        count = jnp.zeros((), jnp.int32)
        return Anchored(
            anchor=theta,
            centre=theta,
            radius=per_arm,
            reach=per_arm,
            settled=theta,
            settled_value=number,
            offset=number,
            active=jnp.zeros((self.spec.dim, 2 * CHUNK)),  # as `reserve` for the smallest room
            filled=count,
            cost=count,
            anchors=count,
        )

    def reserve(self, memo: Anchored, rounds: int) -> Anchored:
        room = max(rounds, CHUNK) + CHUNK  # setting an anchor writes whole chunks
        extra = room - memo.active.shape[1]
        if extra <= 0:
            return memo
        return memo._replace(active=jnp.pad(memo.active, ((0, 0), (0, extra))))

    def extend(self, memo: Anchored, rows: Rows, context: Float[Array, " dim"]) -> Anchored:
        memo = self.reserve(memo, rows.capacity)  # nothing to do unless the history has grown
        active = memo.active.at[:, memo.filled].set(context)
        return memo._replace(active=active, filled=memo.filled + 1)

    def begin(self, memo: Anchored, rows: Rows, theta: Theta) -> Anchored:
        del rows, theta
        return memo._replace(offset=memo.settled_value)

    def most(self, memo: Anchored, rows: Rows) -> Value:
        return super().most(memo, rows) - memo.offset

    def evaluate(
        self, memo: Anchored, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Anchored]:
        del luck
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
            # To the compiler this point changes from turn to turn: what depends on it alone would
            # otherwise be moved out of the loop and be computed at every evaluation.
            here = jnp.where(memo.anchors < 0, memo.anchor, theta)
            return self._anchor(memo, rows, here)

        # A loop of at most one turn, not a conditional: its carry is updated in place.
        memo = lax.while_loop(left, set_anchor, memo)

        # One branch a size, each a single pass over so many columns: a loop over chunks costs
        # more than the arithmetic.
        sizes = sizes_up_to(memo.active.shape[1])

        def reading(size: int) -> Callable[[Array, Array, Array], tuple[Value, Theta]]:
            def read(active: Array, filled: Array, theta: Array) -> tuple[Value, Theta]:
                valid = (jnp.arange(size) < filled).astype(jnp.float32)
                return rows_bonus(self.spec, self.bonus, theta, active[:, :size], valid)

            return read

        which = smallest_size(sizes, memo.filled)
        value, gradient = lax.switch(
            which, [reading(size) for size in sizes], memo.active, memo.filled, theta
        )
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
            best, hot = best_arm(scores)
            length = jnp.sqrt(jnp.sum(contexts * contexts, axis=0))
            own = jnp.sum(hot * radius[:, None], axis=0)
            leads = best - scores - (own + radius[:, None]) * length
            clear = jnp.all((leads > 0) | (hot > 0), axis=0)
            # φ must be straight over all values that the best score can take.
            straight = jnp.abs(self.bonus.b - best) > own * length + self.bonus.bend()
            settled = (clear & straight).astype(jnp.float32) * chunk.valid
            weights = hot * (self.bonus.slope(best) * settled)
            active = chunk.valid * (1.0 - settled)
            # Active columns first; what follows them is overwritten by the next chunk.
            order = jnp.argsort(-active, stable=True)
            return carry._replace(
                settled=carry.settled + contract(weights, contexts),
                settled_value=carry.settled_value + jnp.sum(self.bonus.phi(best) * settled),
                active=lax.dynamic_update_slice_in_dim(
                    carry.active, contexts[:, order], carry.filled, axis=1
                ),
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


class Batched(NamedTuple):
    """The memo of `Subsampled`: where the round began, and the full gradient there."""

    inner: Any
    start: Theta
    gradient: Theta


class Subsampled(Evaluator):
    """Unbiased: ∇B(θ₀) + (n/B) Σ_batch [∇φ_i(θ) − ∇φ_i(θ₀)], θ₀ where the round began.

    The batch is a random piece of the history for every evaluation; see `history.random_piece`.
    Dubey et al., "Variance reduction in stochastic gradient Langevin dynamics", NeurIPS 2016.
    """

    inner: Evaluator
    batch: int = eqx.field(static=True)

    @property
    def uniforms(self) -> int:
        return 1

    def init(self, shape: tuple[int, ...]) -> Batched:
        zeros = jnp.zeros((self.spec.dim, self.spec.blocks, *shape))
        return Batched(inner=self.inner.init(shape), start=zeros, gradient=zeros)

    def reserve(self, memo: Batched, rounds: int) -> Batched:
        return memo._replace(inner=self.inner.reserve(memo.inner, rounds))

    def extend(self, memo: Batched, rows: Rows, context: Float[Array, "..."]) -> Batched:
        return memo._replace(inner=self.inner.extend(memo.inner, rows, context))

    def begin(self, memo: Batched, rows: Rows, theta: Theta) -> Batched:
        inner = self.inner.begin(memo.inner, rows, theta)
        no_luck = jnp.zeros((0, *theta.shape[2:]))
        _, gradient, inner = self.inner.evaluate(inner, rows, theta, no_luck)
        return Batched(inner=self.inner.end(inner), start=theta, gradient=gradient)

    def evaluate(
        self, memo: Batched, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Batched]:
        piece, weight = random_piece(luck[0], rows.filled, self.batch)

        def change(longest: int | None) -> Callable[[], Theta]:
            """Σ_piece [∇φ_i(θ) − ∇φ_i(θ₀)] for a piece of at most so many rounds; None: any."""

            def of_piece() -> Theta:
                chunk = rows.piece(piece, self.batch, longest)
                assert chunk.contexts is not None
                _, here = rows_bonus(self.spec, self.bonus, theta, chunk.contexts, chunk.valid)
                _, there = rows_bonus(
                    self.spec, self.bonus, memo.start, chunk.contexts, chunk.valid
                )
                return here - there

            return of_piece

        if piece.ndim:
            total = change(None)()
        else:  # only the last piece may be longer than a batch
            longer = piece_length(piece, rows.filled, self.batch) > self.batch
            total = lax.cond(longer, change(None), change(self.batch))
        no_value = jnp.full(theta.shape[2:], jnp.nan)
        return no_value, memo.gradient + weight * total, memo
