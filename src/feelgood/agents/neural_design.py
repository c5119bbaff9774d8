"""How sure a network is: the design matrix that NeuralUCB and NeuralTS share."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedAgent, TrainedState
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.targets.networks import Network

DESIGNS = ("diagonal", "last-layer")


class DesignPolicy(TrainedAgent):
    """The variance of f in each arm, v · gᵀU⁻¹g with U = ρI + Σ g gᵀ.

    With `design = "diagonal"`, g is ∇f of the played arm at the time of its play, and only the
    diagonal of U is kept. With `design = "last-layer"`, g is the last hidden layer, and U is full.
    """

    design: str = setting(
        "diagonal", "design matrix: diagonal over all parameters, or last layer", choices=DESIGNS
    )

    @abstractmethod
    def matrix(self, state: TrainedState) -> tuple[Float[Array, "..."], Number]:
        """U, or its diagonal, and v."""

    def ridge(self, network: Network, rho: Number) -> Float[Array, "..."]:
        """ρI, or its diagonal."""
        if self.design == "diagonal":
            return jnp.broadcast_to(rho, (network.parameters,))
        return rho * jnp.eye(network.layers[-1])

    def scores(
        self, state: TrainedState, context: Float[Array, "..."]
    ) -> tuple[Float[Array, " arms"], Float[Array, " arms"]]:
        """f and its standard deviation in every arm."""
        network = self.network(state.spec)
        matrix, variance = self.matrix(state)
        if self.design == "diagonal":
            means, factors = network.factors(state.theta, context)
            squares = network.squared_norms(factors, 1.0 / matrix)
        else:
            features = network.features(state.theta, context)
            means = network.scores(state.theta, context)
            root = jnp.linalg.cholesky(matrix)
            white = jax.scipy.linalg.solve_triangular(root, features.T, lower=True)
            squares = jnp.sum(white**2, axis=0)
        return means, jnp.sqrt(variance * squares)

    def square(
        self, state: TrainedState, context: Float[Array, "..."], arm: Int[Array, ""]
    ) -> Float[Array, "..."]:
        """g gᵀ of the played arm, or its diagonal."""
        network = self.network(state.spec)
        onehot = lanes.one_hot(arm, state.spec.arms)
        if self.design == "diagonal":
            _, factors = network.factors(state.theta, context)
            return network.squared_gradient(factors, onehot)
        feature = onehot @ network.features(state.theta, context)
        return jnp.outer(feature, feature)
