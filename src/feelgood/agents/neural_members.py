"""Several networks, of which one drawn anew in every round plays: ensembles and bootstraps."""

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, Shaped, UInt32

from feelgood.agents.neural import TrainedPolicy, TrainedState, maybe
from feelgood.core.policy import Hints, Needs
from feelgood.core.settings import setting
from feelgood.core.spec import Layout, Number, Spec
from feelgood.numerics import generator, lanes
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_in
from feelgood.numerics.lanes import Mask
from feelgood.targets.losses import loss_for, loss_slope
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch, Replay, tree_slice

_Vector = Float[Array, " parameters"]


class Members(NamedTuple):
    """What does not change: the words of a key, and what tells the members apart."""

    #: Batches and all other random numbers of learning come from it, so that a state says which
    #: arms will be played how often.
    words: UInt32[Array, " words"]
    own: Any

    @property
    def key(self) -> Key[Array, ""]:
        """The key."""
        return jax.random.wrap_key_data(self.words, impl=generator.THREEFRY)


class MembersPolicy(TrainedPolicy):
    """Networks of the same shape that learn on the same batches, each what it is made to see.

    In every round one of them, drawn uniformly, plays its best arm. So arm a has probability
    (number of members whose best arm is a) / (number of members). Gradients of the mean loss that
    are longer than `clip` are shortened to it: steps may then be larger.
    """

    members: int = setting(10, "networks", low=1, high=10_000)
    lr: Number = setting(
        0.2, "learning rate of the networks", above=0.0, high=1e6, tune=(2e-2, 1.0)
    )
    updates: int = setting(6, "inner steps when the networks learn", low=1, high=100_000)
    clip: Number = setting(1.0, "longest gradient of a network's mean loss", above=0.0, high=1e9)

    @abstractmethod
    def made_to_see(
        self, state: TrainedState, batch: Batch
    ) -> tuple[Float[Array, "members rows"], Float[Array, "members rows"]]:
        """What is added to each member's f, and how much the rows of a batch count for it."""

    def of_each_member(
        self, spec: Spec, function: Callable[..., Array], *own: Shaped[Array, "members ..."]
    ) -> Shaped[Array, "members ..."]:
        """The function of what each member has.

        One member after the other on a processor, where the products of one network are faster than
        those of all together.
        """
        if spec.layout.reads_all:
            return jax.vmap(function)(*own)
        return lax.map(lambda one: function(*one), own)

    def own(self, key: AnyKey, network: Network) -> Any:
        """What tells the members apart besides where they start."""
        del key, network
        return ()

    def member_scores(
        self, state: TrainedState, member: Int[Array, ""], context: Float[Array, "..."]
    ) -> Float[Array, " arms"]:
        """The rewards that a member expects."""
        return self.network(state.spec).scores(state.theta[member], context)

    # ---- learning -----------------------------------------------------------------------

    def init(self, key: AnyKey, spec: Spec) -> TrainedState:
        """The first member starts as one network alone would, by the key itself.

        The others take its folds with 1, 2, …; what all share comes from those that are left.
        """
        network, common = self.network(spec), fold_in(key, 0)
        assert not isinstance(common, LaneKeys)  # an agent for one chain gets one key
        return TrainedState(
            replay=Replay.empty(network),
            theta=jnp.stack([network.init(k) for k in self.member_keys(key)]),
            extra=Members(
                words=jax.random.key_data(common),
                own=self.own(fold_in(key, self.members), network),
            ),
            spec=spec,
        )

    def member_keys(self, key: AnyKey) -> list[AnyKey]:
        """One key per member; the first is the key itself."""
        return [key, *(fold_in(key, k) for k in range(1, self.members))]

    def gradient(
        self, state: TrainedState, batch: Batch, theta: Float[Array, "members parameters"]
    ) -> Float[Array, "members parameters"]:
        """∇ Σ w ℓ(f + offset, r) over the rows of a batch, of every member."""
        one = functools.partial(self._gradient_of_one, state.spec, batch)
        return jax.vmap(one)(theta, *self.made_to_see(state, batch))

    def _gradient_of_one(
        self,
        spec: Spec,
        batch: Batch,
        theta: _Vector,
        offset: Float[Array, " rows"],
        weight: Float[Array, " rows"],
    ) -> _Vector:
        network, likelihood = self.network(spec), loss_for(self.likelihood, spec)
        weights = network.split(theta)
        scores, tape = network.forward(weights, batch.contexts, batch.arms)
        slope = loss_slope(likelihood, scores[:, 0] + offset, batch.rewards)
        slopes = (weight * slope * batch.counts)[:, None]
        return network.backward(weights, tape, slopes)[: len(theta)]

    def learn(self, key: AnyKey, state: TrainedState) -> TrainedState:
        """All steps of one learning, of all members."""
        replay = state.replay
        batches = self.batches(key, replay, self.updates)
        descend = functools.partial(self._descend, state)
        if batches is None:

            def whole(i: Int[Array, ""], theta: Array) -> Array:
                del i
                return replay.total(lambda rows, v: self.gradient(state, rows, v), theta)

            theta = descend(state.theta, whole)
        else:

            def one(theta: _Vector, offset: Array, weight: Array) -> _Vector:
                def part(i: Int[Array, ""], theta: _Vector) -> _Vector:
                    own = tree_slice((batches, offset, weight), i * self.batch, self.batch)
                    batch, offsets, weights = own
                    return self._gradient_of_one(state.spec, batch, theta, offsets, weights)

                return descend(theta, part)

            every = (state.theta, *self.made_to_see(state, batches))
            theta = self.of_each_member(state.spec, one, *every)
        return TrainedState(replay, theta, state.extra, state.spec)

    def _descend(
        self,
        state: TrainedState,
        theta: Float[Array, "*members parameters"],
        gradient: Callable[[Int[Array, ""], Array], Array],
    ) -> Float[Array, "*members parameters"]:
        """Steps along the gradient of the mean loss, shortened, and of the weight decay."""
        filled = state.replay.filled
        size = self.batch if self.batch else jnp.maximum(filled, 1)
        decay = self.weight_decay(state) / (filled + 1.0)

        def step(i: Int[Array, ""], theta: Array) -> Array:
            mean = gradient(i, theta) / size
            length = jnp.sqrt(jnp.sum(mean**2, axis=-1, keepdims=True))
            mean = mean * (self.clip / jnp.maximum(length, self.clip))
            return theta - self.lr * (mean + decay * theta)

        return lax.fori_loop(0, self.updates, step, theta, unroll=state.spec.layout.unroll)

    def learning_key(self, state: TrainedState) -> AnyKey:
        """The key of the learning after so many rounds."""
        return fold_in(state.extra.key, state.replay.filled)

    def draw(self, noise: AnyKey | None, state: TrainedState) -> TrainedState:
        """The networks learn, if it is time to."""
        del noise
        due = self.due(state.replay.filled)
        return maybe(due, lambda s: self.learn(self.learning_key(s), s), state)

    # ---- playing ------------------------------------------------------------------------

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw=0, choose="key")

    def choose(
        self,
        key: AnyKey,
        state: TrainedState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        member = lanes.randint(key, 1, self.members)[0]
        return lanes.argmax(self.member_scores(state, member, context), allowed)

    def pmf(
        self, state: TrainedState, context: Float[Array, "..."], allowed: Mask = None
    ) -> Float[Array, " arms"]:
        """The share of the members whose best arm each is, once they have learned."""
        after = self.draw(None, state)

        def vote(member: Int[Array, ""]) -> Float[Array, " arms"]:
            best = lanes.argmax(self.member_scores(after, member, context), allowed)
            return lanes.one_hot(best, state.spec.arms)

        return jnp.mean(jax.vmap(vote)(jnp.arange(self.members)), axis=0)

    def numbers_per_parameter(self, layout: Layout) -> int:
        del layout
        return 6 * self.members

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)
