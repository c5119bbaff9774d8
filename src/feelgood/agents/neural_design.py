"""How sure a network is: the design matrix that NeuralUCB and NeuralTS share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedPolicy, TrainedState
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.targets.networks import Network

DESIGNS = ("diagonal", "last-layer")


class DesignPolicy(TrainedPolicy):
    """The variance of f in each arm, σ² = reg · ν · gᵀU⁻¹g with U = reg I + Σ g gᵀ.

    With `design = "diagonal"`, g is ∇f of the played arm at the time of its play, and only the
    diagonal of U is kept. With `design = "last-layer"`, g is the last hidden layer, and U is full.
    """

    nu: Number = setting(0.1, "scale ν of the variance", low=0.0, high=1e9, tune=(1e-3, 10.0))
    reg: Number = setting(
        0.01, "regularisation: of the design matrix, and weight decay reg/t", above=0.0, high=1e9
    )
    design: str = setting(
        "diagonal", "design matrix: diagonal over all parameters, or last layer", choices=DESIGNS
    )

    def explorer(self, network: Network) -> Float[Array, "..."]:
        if self.design == "diagonal":
            return jnp.broadcast_to(self.reg, (network.parameters,))
        return self.reg * jnp.eye(network.layers[-1])

    def scores(
        self, state: TrainedState, context: Float[Array, "..."]
    ) -> tuple[Float[Array, " arms"], Float[Array, " arms"]]:
        """f and σ of every arm."""
        network = self.network(state.spec)
        if self.design == "diagonal":
            means, factors = network.factors(state.theta, context)
            squares = network.squared_norms(factors, 1.0 / state.extra)
        else:
            features = network.features(state.theta, context)
            means = network.scores(state.theta, context)
            root = jnp.linalg.cholesky(state.extra)
            white = jax.scipy.linalg.solve_triangular(root, features.T, lower=True)
            squares = jnp.sum(white**2, axis=0)
        return means, jnp.sqrt(self.reg * self.nu * squares)

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Float[Array, "..."]:
        del reward
        network = self.network(state.spec)
        onehot = lanes.one_hot(arm, state.spec.arms)
        if self.design == "diagonal":
            _, factors = network.factors(state.theta, context)
            return state.extra + network.squared_gradient(factors, onehot)
        feature = onehot @ network.features(state.theta, context)
        return state.extra + jnp.outer(feature, feature)
