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
    def matrix(self, state: TrainedState) -> Float[Array, "..."]:
        """U, or its diagonal."""

    @abstractmethod
    def variance(self, state: TrainedState) -> Number:
        """v."""

    def whitened(
        self, state: TrainedState, features: Float[Array, "arms width"]
    ) -> Float[Array, "width arms"]:
        """B g of every arm, with BᵀB = U⁻¹, for the last layer."""
        root = jnp.linalg.cholesky(self.matrix(state))
        return jax.scipy.linalg.solve_triangular(root, features.T, lower=True)

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
        if self.design == "diagonal":
            means, factors = network.factors(state.theta, context)
            squares = network.squared_norms(factors, 1.0 / self.matrix(state))
        else:
            features = network.features(state.theta, context)
            means = network.scores(state.theta, context)
            squares = jnp.sum(self.whitened(state, features) ** 2, axis=0)
        return means, jnp.sqrt(self.variance(state) * squares)

    def square(
        self, state: TrainedState, context: Float[Array, "..."], arm: Int[Array, ""]
    ) -> Float[Array, "..."]:
        """g gᵀ of the played arm, or its diagonal."""
        if self.design == "diagonal":
            network, onehot = self.network(state.spec), lanes.one_hot(arm, state.spec.arms)
            _, factors = network.factors(state.theta, context)
            return network.squared_gradient(factors, onehot)
        feature = self.played_feature(state, context, arm)
        return jnp.outer(feature, feature)

    def played_feature(
        self, state: TrainedState, context: Float[Array, "..."], arm: Int[Array, ""]
    ) -> Float[Array, " width"]:
        """The last hidden layer of the played arm."""
        features = self.network(state.spec).features(state.theta, context)
        return lanes.one_hot(arm, state.spec.arms) @ features
