"""What a Thompson agent with a network believes of the rewards: noise, prior and temperature."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.agents.model_settings import ModelPolicy
from feelgood.agents.neural import NeuralPolicy, maybe
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics.keys import AnyKey
from feelgood.targets.losses import loss_for
from feelgood.targets.network_noise import NetworkNoise, feature_sums
from feelgood.targets.replay import Replay, tree_slice
from feelgood.targets.scales import Scales, due
from feelgood.targets.sums import Stats

#: The usual scale s of the weights. A hidden layer of H units has values of about
#: s² √(H (‖x‖² + 1) / 2): near 1 with 50 units and contexts of length 1.
PRIOR = 0.4

_Vector = Float[Array, " parameters"]


class NeuralModelPolicy(ModelPolicy, NeuralPolicy):
    """An agent with the model r = f_θ(x, a) + N(0, noise²), θ ~ N(0, prior² I).

    Learned noise is that of the regression on the last hidden layer, and is renewed as often as the
    linear agents renew theirs (`feelgood.targets.network_noise`). Bernoulli rewards have none.
    """

    prior: Number | None = setting(
        "auto",
        f"standard deviation of the weights before any data; auto: {PRIOR}",
        above=0.0,
        high=1e9,
        open_word="auto",
    )

    def first_noise(self, spec: Spec) -> NetworkNoise | None:
        """Before the first reward; None where nothing is learned."""
        told = self.in_papers_words() or self.noise is not None
        return None if told or self._bernoulli(spec) else NetworkNoise.unknown()

    def network_scales(self, spec: Spec, learned: NetworkNoise | None) -> Scales:
        """σ² and s² of the network: as told, or as learned so far; σ = 1 where there is none."""
        prior = jnp.asarray(PRIOR) if self.prior is None else self.prior
        noise = jnp.ones(()) if learned is None else learned.variance
        if self.noise is not None and not self._bernoulli(spec):
            noise = self.noise**2
        return Scales(jnp.zeros(()), noise, prior**2, jnp.zeros(()))

    def _bernoulli(self, spec: Spec) -> bool:
        return loss_for(self.likelihood, spec) == "bernoulli"

    def renewed(
        self, key: AnyKey, learned: NetworkNoise | None, theta: _Vector, replay: Replay, spec: Spec
    ) -> NetworkNoise | None:
        """The noise learned again, if it is time to.

        It takes the rounds that a learning reads: as many random ones, or the whole history.
        """
        if learned is None:
            return None
        count, network = replay.filled, self.network(spec)

        def renew(old: NetworkNoise) -> NetworkNoise:
            batches = self.batches(key, replay, self.updates)
            if batches is None:
                sums = replay.total(lambda batch, v: feature_sums(network, batch, v), theta)
            elif not spec.layout.reads_all:  # in a small loop products would be no library calls
                stats, squares = feature_sums(network, batches, theta)
                weight = count / (self.updates * self.batch)
                sums = stats.times(weight), weight * squares
            else:

                def part(i: Int[Array, ""]) -> tuple[Stats, Number]:
                    return feature_sums(
                        network, tree_slice(batches, i * self.batch, self.batch), theta
                    )

                def add(i: Int[Array, ""], so_far: tuple[Stats, Number]) -> tuple[Stats, Number]:
                    return jax.tree.map(jnp.add, so_far, part(i))

                weight = count / (self.updates * self.batch)
                sums = lax.fori_loop(1, self.updates, add, part(jnp.zeros((), jnp.int32)))
                sums = jax.tree.map(lambda x: weight * x, sums)
            stats, squares = sums
            return old.learn(stats, squares, count)

        return maybe((count > 0) & due(count), renew, learned)


def noise_health(learned: NetworkNoise | None) -> dict[str, Float[Array, ""]]:
    """The learned σ, to be recorded along a run."""
    return {} if learned is None else {"noise": jnp.sqrt(learned.variance)}
