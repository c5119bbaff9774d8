"""The noise of the rewards around a network, learned by regression on its last hidden layer.

A network is linear in its last hidden layer φ(x, a), so r = w·φ + N(0, σ²) is a linear model, whose
noise is learned as in `feelgood.targets.scales`: by steps towards the largest evidence, with w
integrated out. What is left of the rewards by one draw of the network would not do. Draws that are
too wide leave more, which makes the next ones wider still. While a network has more parameters than
rewards, nothing pulls back.

Early on, the last layer leaves what the layers below have not learned yet, which is no noise. So
σ² has a prior that counts as ν₀ = 300 rewards: with n rewards of mean square m and σ̂² by evidence,

    σ² = (n σ̂² + ν₀ · 0.01 m) / (n + ν₀)
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Number, Spec
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch
from feelgood.targets.scales import ScaleModel, Scales, tells_of_scales
from feelgood.targets.sums import Stats

_Vector = Float[Array, " parameters"]

#: ν₀, and the share of the rewards' mean square that the prior has for noise.
PRIOR_REWARDS, PRIOR_SHARE = 300.0, 0.01


class NetworkNoise(NamedTuple):
    """What is learned of the noise."""

    #: σ².
    variance: Number
    #: What the regression on the last layer says.
    scales: Scales

    @classmethod
    def unknown(cls) -> "NetworkNoise":
        """Before the first reward that is not 0: as with a mean square of 1."""
        scales = ScaleModel(None, None).init(Spec(arms=2, dim=1))
        return cls(jnp.asarray(PRIOR_SHARE), scales)

    def learn(self, stats: Stats, squares: Number, count: Int[Array, ""]) -> "NetworkNoise":
        """With the sums over so many rewards; as it was while all of them are 0."""
        scales = learned_from(self.scales, stats, squares, count, ScaleModel(None, None))
        total = count * scales.noise + PRIOR_REWARDS * PRIOR_SHARE * squares / count
        variance = total / (count + PRIOR_REWARDS)
        return NetworkNoise(jnp.where(squares > 0.0, variance, self.variance), scales)


def feature_sums(network: Network, batch: Batch, theta: _Vector) -> tuple[Stats, Number]:
    """Σ φφᵀ and Σ rφ of the played arms over the rows of a batch, as one block; and Σ r²."""
    _, tape = network.forward(network.split(theta), batch.contexts, batch.arms)
    features = tape.hidden[-1][:, 0] * batch.counts[:, None]
    exact = lax.Precision.HIGHEST
    stats = Stats(
        gram=jnp.matmul(features.T, features, precision=exact)[:, :, None],
        moment=jnp.matmul(features.T, batch.rewards, precision=exact)[:, None],
    )
    return stats, jnp.sum(batch.rewards**2 * batch.counts)


def learned_from(
    old: Scales, stats: Stats, squares: Number, count: Int[Array, ""], model: ScaleModel
) -> Scales:
    """The scales after so many rewards; as they were while all rewards or features are 0."""
    known = tells_of_scales(stats, squares)
    first = model.untold(old) & known
    new = model.estimate(old._replace(squares=squares), stats, count, first)
    return Scales(*(jnp.where(known, a, b) for a, b in zip(new, old, strict=True)))
