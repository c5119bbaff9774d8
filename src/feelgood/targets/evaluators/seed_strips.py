"""Exact on a processor where arms share parameters: most strips of rounds are not read at all.

Every arm has features of its own in every round, so that a pass over the history reads arms × dim
numbers per round, and soon more than any cache holds. But a step changes few best arms. Between the
best and the second best arm of a round lies a *lead*; scores move by at most the distance of θ
times the length of the features. So a strip of rounds, once read at an *anchor*, need not be read
again while θ is nearer to the anchor than the strip's *level*, the smallest lead over twice the
longest features. φ is then a function of the scores of known arms. Where it is straight there, too,
the whole strip is one inner product.

Rounds are sorted by their leads from time to time, so that strips have high levels or low ones. As
in `evaluators.pruned`, whose bounds these are, the result is exact wherever θ is. There an anchor
is one for all rounds and has a distance per arm; here each strip has one of its own.

Settings of a sweep share their seed's contexts, and their order.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.numerics.flagged import for_each
from feelgood.targets.bonus import Bonus, FeelGood
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.evaluators.pruned import SLACK
from feelgood.targets.history import Rows
from feelgood.targets.room import SMALLEST_ROOM
from feelgood.targets.strips import (
    PARTIAL_SUMS,
    STRIP,
    folded,
    kept,
    strip_minimum,
    strip_total,
    written_dot,
)
from feelgood.targets.sums import Theta, Value

#: Rounds are sorted anew when this part of them has come since.
UNSORTED_PART = 1 / 8


class Shown(NamedTuple):
    """Past contexts, once per seed. Nobody else keeps them."""

    contexts: Float[Array, "seeds strips arms dim strip"]
    #: Which rounds they are, counted from 0; −1: none.
    numbers: Int[Array, "seeds strips strip"]
    #: The length of the longest features.
    lengths: Float[Array, "seeds strips"]
    #: Rounds when they were last sorted.
    sorted: Int[Array, ""]


class Found(NamedTuple):
    """What was found when strips were read. Apart: a loop that changes it must copy no contexts."""

    #: The best arms, and what they showed; −1: none yet.
    winners: Int[Array, "seeds strips settings strip"]
    features: Float[Array, "seeds strips settings dim strip"]
    #: θ where a strip was read last, and how far from there it need not be read; −1: not read.
    anchors: Float[Array, "seeds strips settings dim"]
    levels: Float[Array, "seeds strips settings"]
    #: Σ w_s φ at the anchor over the rounds of a strip, and its gradient.
    values: Float[Array, "seeds strips settings"]
    pulls: Float[Array, "seeds strips settings dim"]


class SeedStore(NamedTuple):
    """The memo of `SeedStrips`."""

    shown: Shown
    found: Found

    @classmethod
    def empty(cls, seeds: int, settings: int, arms: int, dim: int, strips: int) -> "SeedStore":
        """No rounds."""
        each = (seeds, strips)
        shown = Shown(
            contexts=jnp.zeros((*each, arms, dim, STRIP)),
            numbers=jnp.full((*each, STRIP), -1),
            lengths=jnp.zeros(each),
            sorted=jnp.zeros((), jnp.int32),
        )
        found = Found(
            winners=jnp.full((*each, settings, STRIP), -1),
            features=jnp.zeros((*each, settings, dim, STRIP)),
            anchors=jnp.zeros((*each, settings, dim)),
            levels=jnp.full((*each, settings), -1.0),
            values=jnp.zeros((*each, settings)),
            pulls=jnp.zeros((*each, settings, dim)),
        )
        return cls(shown, found)


class SeedStrips(Evaluator):
    """Exact, reading only strips where a best arm could have changed; shared parameters."""

    @property
    def keeps_contexts(self) -> bool:
        return True

    @property
    def reads_filled(self) -> bool:
        return True

    @property
    def shares_reads(self) -> bool:
        return True

    @property
    def _group(self) -> tuple[int, int]:
        """Settings and seeds of the chains, in the order that their axis has."""
        layout = self.spec.layout
        return layout.settings, max(1, layout.chains) // layout.settings

    def _empty(self, strips: int) -> SeedStore:
        settings, seeds = self._group
        return SeedStore.empty(seeds, settings, self.spec.arms, self.spec.dim, strips)

    def init(self) -> SeedStore:
        return self._empty(SMALLEST_ROOM // STRIP)

    def reserve(self, memo: SeedStore, rounds: int) -> SeedStore:
        extra = -(-rounds // STRIP) - memo.shown.contexts.shape[1]
        if extra <= 0:
            return memo

        def grown(old: Array, new: Array) -> Array:
            return jnp.concatenate([old, new], axis=1) if old.ndim else old

        longer: SeedStore = jax.tree.map(grown, memo, self._empty(extra))
        return longer

    def extend(
        self, memo: SeedStore, rows: Rows, context: Float[Array, "dim arms *lanes"]
    ) -> SeedStore:
        shown, found = self.reserve(memo, rows.capacity)
        seeds, newest = len(shown.contexts), rows.filled - 1
        new = jnp.transpose(context.reshape(*context.shape[:2], -1)[..., :seeds])
        strip, place = newest // STRIP, newest % STRIP
        number = jnp.broadcast_to(newest, (seeds, 1, 1))
        longest = jnp.sqrt(jnp.max(jnp.sum(new * new, axis=2), axis=1))
        shown = shown._replace(
            contexts=lax.dynamic_update_slice(
                shown.contexts, new[:, None, :, :, None], (0, strip, 0, 0, place)
            ),
            numbers=lax.dynamic_update_slice(shown.numbers, number, (0, strip, place)),
            lengths=shown.lengths.at[:, strip].max(longest),
        )
        return SeedStore(shown, found._replace(levels=found.levels.at[:, strip].set(-1.0)))

    def begin(self, memo: SeedStore, rows: Rows, theta: Theta) -> SeedStore:
        fresh = rows.filled - memo.shown.sorted
        due = fresh > jnp.maximum(STRIP, UNSORTED_PART * rows.filled)

        def order(carry: tuple[Array, SeedStore]) -> tuple[Array, SeedStore]:
            def one(seed: Int[Array, ""], memo: SeedStore) -> SeedStore:
                return self._of_seed(theta, seed).sorted(memo, rows.filled)

            shown, found = lax.fori_loop(0, self._group[1], one, carry[1])
            return jnp.zeros((), bool), SeedStore(shown._replace(sorted=rows.filled), found)

        # A loop of at most one turn, not a conditional: its carry is updated in place.
        return lax.while_loop(lambda carry: carry[0], order, (due, memo))[1]

    def evaluate(
        self, memo: SeedStore, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, SeedStore]:
        del uniform
        (settings, seeds), dim, shown = self._group, self.spec.dim, memo.shown
        strips = -(-jnp.minimum(rows.filled, shown.numbers[0].size) // STRIP)

        def one(
            seed: Int[Array, ""], carry: tuple[Found, Array, Array]
        ) -> tuple[Found, Array, Array]:
            found, values, gradients = carry
            own = self._of_seed(theta, seed)
            found = own.read(shown, found, strips)
            value, gradient = own.sums(shown, found, strips)
            values = lax.dynamic_update_index_in_dim(values, value, seed, -1)
            return found, values, lax.dynamic_update_index_in_dim(gradients, gradient, seed, -1)

        nothing = jnp.zeros((settings, seeds)), jnp.zeros((dim, settings, seeds))
        found, value, gradient = lax.fori_loop(0, seeds, one, (memo.found, *nothing))
        return (
            value.reshape(theta.shape[2:]),
            gradient.reshape(theta.shape),
            SeedStore(shown, found),
        )

    def _of_seed(self, theta: Theta, seed: Int[Array, ""]) -> "_Seed":
        def own(x: Float[Array, "*lead lanes"]) -> Float[Array, "*lead settings"]:
            apart = x.reshape(*x.shape[:-1], *self._group)
            return lax.dynamic_index_in_dim(apart, seed, axis=-1, keepdims=False)

        bonus = jax.tree.map(lambda x: own(x) if x.ndim else x, self.bonus)
        return _Seed(seed, bonus, own(theta.reshape(self.spec.dim, -1)).T)


class _Seed(NamedTuple):
    """All settings of one seed."""

    number: Int[Array, ""]
    bonus: Bonus
    theta: Float[Array, "settings dim"]

    def _own(self, x: Array, *where: Int[Array, ""]) -> Array:
        """What this seed has in an array of the store, at a place of its next axes if given."""
        at = (self.number, *where)
        shape = x.shape[len(at) :]
        start = (*at, *[jnp.zeros((), jnp.int32)] * len(shape))
        return lax.dynamic_slice(x, start, (*[1] * len(at), *shape)).reshape(shape)

    def _put(self, x: Array, value: Array, *where: Int[Array, ""]) -> Array:
        at = (self.number, *where)
        start = (*at, *[jnp.zeros((), jnp.int32)] * value.ndim)
        return lax.dynamic_update_slice(x, value.reshape(*[1] * len(at), *value.shape), start)

    # ---- which strips are read ----------------------------------------------------------

    def read(self, shown: Shown, found: Found, strips: Int[Array, ""]) -> Found:
        """With all strips read that some setting's θ is too far from the anchor of."""
        away, levels = self.theta - self._own(found.anchors), self._own(found.levels)
        # Too far if the distance is not a number.
        near = (1.0 + SLACK) * jnp.sum(away * away, axis=-1) < levels * jnp.abs(levels)
        due = ~jnp.all(near, axis=1) & (jnp.arange(len(levels)) < strips)
        return for_each(due, lambda strip, found: self._read_one(shown, found, strip), found)

    def _read_one(self, shown: Shown, found: Found, strip: Int[Array, ""]) -> Found:
        """All settings at once: each arm is scored for all while it is in the nearest cache."""
        best, second, winner = self._compared(shown, strip, self.theta)
        numbers = self._own(shown.numbers, strip)
        here = numbers >= 0
        found = self._renewed(shown, found, strip, jnp.where(here, winner, -1))
        lead = 0.5 * (best - second)
        if isinstance(self.bonus, FeelGood):  # φ must be straight over all that a best score can be
            cap, bend = self.bonus.b[..., None], self.bonus.bend()[..., None]
            lead = jnp.minimum(lead, jnp.abs(cap - best) - bend)
        level = strip_minimum(jnp.where(here, lead, jnp.inf)) / self._own(shown.lengths, strip)
        value, pull = self._shares(best, numbers)
        pulls = strip_total(pull[:, None] * self._own(found.features, strip))
        return found._replace(
            anchors=self._put(found.anchors, self.theta, strip),
            levels=self._put(found.levels, level, strip),
            values=self._put(found.values, strip_total(value), strip),
            pulls=self._put(found.pulls, pulls, strip),
        )

    def _shares(
        self, best: Float[Array, "settings strip"], numbers: Int[Array, " strip"]
    ) -> tuple[Float[Array, "settings strip"], Float[Array, "settings strip"]]:
        """w_s φ and w_s φ' of the rounds with these numbers; 0 where there is none."""
        here = numbers >= 0
        counts = self.bonus.weighed(here.astype(jnp.float32), numbers)
        phi, slope = self.bonus.phi(best), self.bonus.slope(best)
        return jnp.where(here, phi * counts, 0.0), jnp.where(here, slope * counts, 0.0)

    def _compared(
        self, shown: Shown, strip: Int[Array, ""], theta: Float[Array, "settings dim"]
    ) -> tuple[Array, Array, Array]:
        """The two largest scores of every round, and the first arm that has the largest."""
        arms, dim = shown.contexts.shape[2:4]

        def compare(
            arm: Int[Array, ""], carry: tuple[Array, Array, Array]
        ) -> tuple[Array, Array, Array]:
            # One slice per feature: the compiler would copy a slice that it takes apart again.
            x = [
                lax.dynamic_slice(
                    shown.contexts, (self.number, strip, arm, d, 0), (1, 1, 1, 1, STRIP)
                ).reshape(STRIP)
                for d in range(dim)
            ]
            score = kept(arm, lambda: written_dot(theta.T, x))
            best, second, winner = carry
            wins = score > best
            return (
                jnp.where(wins, score, best),
                jnp.where(wins, best, jnp.where(score > second, score, second)),
                jnp.where(wins, arm, winner),
            )

        shape = (len(theta), STRIP)
        lowest = jnp.full(shape, -jnp.inf)
        return lax.fori_loop(0, arms, compare, (lowest, lowest, jnp.zeros(shape, jnp.int32)))

    def _renewed(
        self,
        shown: Shown,
        found: Found,
        strip: Int[Array, ""],
        winner: Int[Array, "settings strip"],
    ) -> Found:
        """With these best arms of a strip: the features of those that are new are read."""
        dim, at, arms = self.theta.shape[1], (self.number, strip), winner.reshape(-1)

        def one(number: Int[Array, ""], features: Array) -> Array:
            setting, place = number // STRIP, number % STRIP
            where = (*at, jnp.maximum(arms[number], 0), 0, place)
            column = lax.dynamic_slice(shown.contexts, where, (1, 1, 1, dim, 1))
            return lax.dynamic_update_slice(features, column, (*at, setting, 0, place))

        changed = winner != self._own(found.winners, strip)
        return found._replace(
            winners=self._put(found.winners, winner, strip),
            features=for_each(changed, one, found.features),
        )

    # ---- what they give -----------------------------------------------------------------

    def sums(
        self, shown: Shown, found: Found, strips: Int[Array, ""]
    ) -> tuple[Float[Array, " settings"], Float[Array, "dim settings"]]:
        """Σ w_s φ and its gradient."""
        if isinstance(self.bonus, FeelGood):
            return self.straight_sums(shown, found, strips)
        return self.sums_of_scores(shown, found, strips)

    def straight_sums(
        self, shown: Shown, found: Found, strips: Int[Array, ""]
    ) -> tuple[Float[Array, " settings"], Float[Array, "dim settings"]]:
        """From what was found where strips were read: φ is straight from there to here."""
        del shown
        there = jnp.arange(found.levels.shape[1])[:, None] < strips
        pulls = jnp.where(there[..., None], self._own(found.pulls), 0.0)
        away = self.theta - self._own(found.anchors)
        values = jnp.where(there, self._own(found.values), 0.0) + jnp.sum(pulls * away, axis=-1)
        return jnp.sum(values, axis=0), jnp.sum(pulls, axis=0).T

    def sums_of_scores(
        self, shown: Shown, found: Found, strips: Int[Array, ""]
    ) -> tuple[Float[Array, " settings"], Float[Array, "dim settings"]]:
        """From the scores of the best arms, where φ is not straight."""
        settings, dim = self.theta.shape

        def one(strip: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            features = self._own(found.features, strip)
            best = kept(strip, lambda: jnp.sum(self.theta[..., None] * features, axis=1))
            numbers = self._own(shown.numbers, strip)
            value = self._shares(best, numbers)[0]
            pull = kept(strip, lambda: self._shares(best, numbers)[1])
            return folded(sums[0], value), folded(sums[1], pull[:, None] * features)

        nothing = jnp.zeros((settings, PARTIAL_SUMS)), jnp.zeros((settings, dim, PARTIAL_SUMS))
        value, gradient = lax.fori_loop(0, strips, one, nothing)
        return jnp.sum(value, axis=-1), jnp.sum(gradient, axis=-1).T

    # ---- the order of the rounds --------------------------------------------------------

    def sorted(self, memo: SeedStore, rounds: Int[Array, ""]) -> SeedStore:
        """By the leads at the mean of the settings, the largest first; no strip counts as read."""
        shown, found = memo
        numbers, middle = self._own(shown.numbers), jnp.mean(self.theta, axis=0, keepdims=True)

        def lead(strip: Int[Array, ""], leads: Array) -> Array:
            best, second, _ = self._compared(shown, strip, middle)
            here = self._own(shown.numbers, strip) >= 0
            own = jnp.where(here, (best - second)[0], -jnp.inf)
            return lax.dynamic_update_index_in_dim(leads, own, strip, 0)

        leads = lax.fori_loop(0, -(-rounds // STRIP), lead, jnp.full(numbers.shape, -jnp.inf))
        order = jnp.argsort(-leads.reshape(-1)).reshape(leads.shape)
        strip, place = order // STRIP, order % STRIP
        old = self._own(shown.contexts)
        arms, dims = jnp.arange(old.shape[1])[:, None, None], jnp.arange(old.shape[2])[:, None]
        new = old[strip[:, None, None], arms, dims, place[:, None, None]]
        lengths = jnp.sqrt(jnp.max(jnp.sum(new * new, axis=2), axis=(1, 2)))
        shown = shown._replace(
            contexts=self._put(shown.contexts, new),
            numbers=self._put(shown.numbers, numbers[strip, place]),
            lengths=self._put(shown.lengths, lengths),
        )
        found = found._replace(
            winners=self._put(found.winners, jnp.full(found.winners.shape[1:], -1)),
            levels=self._put(found.levels, jnp.full(found.levels.shape[1:], -1.0)),
        )
        return SeedStore(shown, found)
