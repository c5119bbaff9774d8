"""Neural-Linear: Bayesian linear regression on the last hidden layer of a network."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedPolicy, TrainedState
from feelgood.core.policy import AGENTS, Hints
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch


class Regression(NamedTuple):
    """Σ φφᵀ and Σ rφ over the features of the played arms."""

    gram: Float[Array, "width width"]
    moment: Float[Array, " width"]


@AGENTS.register("neural-linear", family="Networks")
class NeuralLinear(TrainedPolicy):
    """Thompson sampling by exact Bayesian regression on a network's last hidden layer.

    With φ(x, a) the last hidden layer, w ~ N(V⁻¹b, νV⁻¹), V = ρI + Σ φφᵀ, b = Σ rφ; the arm with
    the largest w·φ is played. Whenever the network has learned, V and b are computed anew from all
    rounds, with the features as they are now.

    Riquelme, Tucker and Snoek, "Deep Bayesian bandits showdown", ICLR 2018.
    """

    rho: Number = setting(1.0, "prior precision ρ of the regression", above=0.0, high=1e9)
    nu: Number = setting(
        1.0, "noise variance ν of the regression", above=0.0, high=1e9, tune=(1e-3, 10.0)
    )

    def reads_history(self) -> bool:
        return True

    def explorer(self, network: Network) -> Regression:
        width = network.layers[-1]
        return Regression(gram=jnp.zeros((width, width)), moment=jnp.zeros(width))

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Regression:
        features = self.network(state.spec).features(state.theta, context)
        feature = lanes.one_hot(arm, state.spec.arms) @ features
        gram, moment = state.extra
        return Regression(gram + jnp.outer(feature, feature), moment + reward * feature)

    def retrained(self, state: TrainedState) -> Regression:
        network = self.network(state.spec)

        def sums(batch: Batch, theta: Float[Array, " parameters"]) -> Regression:
            onehot = lanes.one_hot(batch.arms, state.spec.arms).T
            _, tape = network.forward(network.split(theta), batch.contexts, onehot)
            features = tape.hidden[-1][:, 0] * batch.counts[:, None]
            exact = jax.lax.Precision.HIGHEST
            return Regression(
                gram=jnp.matmul(features.T, features, precision=exact),
                moment=jnp.matmul(features.T, batch.rewards, precision=exact),
            )

        return state.replay.total(sums, state.theta)

    def posterior(
        self, regression: Regression
    ) -> tuple[Float[Array, " width"], Float[Array, "width width"]]:
        """The mean of w, and the Cholesky factor of V."""
        width = len(regression.moment)
        root = jnp.linalg.cholesky(regression.gram + self.rho * jnp.eye(width))
        return jax.scipy.linalg.cho_solve((root, True), regression.moment), root

    def choose(
        self, key: AnyKey, state: TrainedState, context: Float[Array, "..."]
    ) -> Int[Array, ""]:
        mean, root = self.posterior(state.extra)
        white = lanes.normal(key, len(mean))
        spread = jax.scipy.linalg.solve_triangular(root, white, lower=True, trans=1)
        features = self.network(state.spec).features(state.theta, context)
        return lanes.argmax(features @ (mean + jnp.sqrt(self.nu) * spread))

    def scores(self, state: TrainedState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(φ·V⁻¹b, ν φ·V⁻¹φ) with one w for all arms, given the network."""
        mean, root = self.posterior(state.extra)
        features = self.network(state.spec).features(state.theta, context)
        white = jax.scipy.linalg.solve_triangular(root, features.T, lower=True)
        return ScoreLaw(features @ mean, root=jnp.sqrt(self.nu) * white.T)

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(scores=self.scores)
