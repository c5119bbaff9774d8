"""Neural-Linear: Bayesian linear regression on the last hidden layer of a network."""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.model_settings import ModelPolicy
from feelgood.agents.neural import TrainedPolicy, TrainedState, maybe
from feelgood.core.policy import AGENTS, Hints
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.chi_square import NORMALS, chi_square
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets.network_noise import feature_sums, learned_from
from feelgood.targets.networks import Network
from feelgood.targets.scales import LEAST_NOISE, Scales, due
from feelgood.targets.sums import Stats


class Regression(NamedTuple):
    """The sums over the features of the played arms, and what is learned of noise and prior."""

    stats: Stats
    #: Σ r².
    squares: Float[Array, ""]
    #: None where noise and prior are told.
    scales: Scales | None


@AGENTS.register("neural-linear", family="Networks")
class NeuralLinear(ModelPolicy, TrainedPolicy):
    """Thompson sampling by exact Bayesian regression on a network's last hidden layer.

    With φ(x, a) the last hidden layer, w ~ N(V⁻¹b, σ²τV⁻¹), V = ρI + Σ φφᵀ, ρ = σ²/s², b = Σ rφ.
    The arm with the largest w·φ is played. Whenever the network has learned, V and b are computed
    anew from all rounds, with the features as they are now. A learned σ² is drawn from
    (Σ r² − bᵀV⁻¹b)/χ²_n first: the conjugate normal–inverse-gamma law. Noise and prior are those of
    the regression; the network learns by gradient descent. In the paper's words σ² is ν.

    Riquelme, Tucker and Snoek, "Deep Bayesian bandits showdown", ICLR 2018.
    """

    papers: ClassVar[tuple[str, ...]] = ("rho", "nu")

    rho: Number | None = setting(
        "auto",
        "prior precision ρ of the regression; auto: noise²/prior²",
        above=0.0,
        high=1e9,
        open_word="auto",
    )
    nu: Number | None = setting(
        "auto", "noise variance ν; auto: noise²", above=0.0, high=1e9, open_word="auto"
    )

    def reads_history(self) -> bool:
        return True

    def explorer(self, network: Network) -> Regression:
        width, model = network.layers[-1], self.scale_model()
        return Regression(
            stats=Stats(gram=jnp.zeros((width, width, 1)), moment=jnp.zeros((width, 1))),
            squares=jnp.zeros(()),
            scales=None if model is None else model.init(network.spec),
        )

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Regression:
        features = self.network(state.spec).features(state.theta, context)
        feature = lanes.one_hot(arm, state.spec.arms) @ features
        stats = state.extra.stats.add(feature, jnp.ones(1), reward)
        squares, count = state.extra.squares + reward**2, state.replay.filled + 1
        model, scales = self.scale_model(), state.extra.scales
        if model is not None:
            scales = maybe(
                due(count), lambda old: learned_from(old, stats, squares, count, model), scales
            )
        return Regression(stats, squares, scales)

    def retrained(self, state: TrainedState) -> Regression:
        network = self.network(state.spec)
        stats, _ = state.replay.total(lambda rows, v: feature_sums(network, rows, v), state.theta)
        return state.extra._replace(stats=stats)

    def told(self, scales: Scales | None) -> tuple[Number, Number | None]:
        """ρ and σ² as told or learned; σ² is None where it has a law of its own."""
        if self.in_papers_words():
            one = jnp.ones(())
            return one if self.rho is None else self.rho, one if self.nu is None else self.nu
        noise = None if self.noise is None else self.noise**2
        if scales is not None:
            return scales.noise / scales.prior, noise
        assert noise is not None and self.prior is not None
        return noise / self.prior**2, noise

    def posterior(
        self, regression: Regression
    ) -> tuple[Float[Array, " width"], Float[Array, "width width"]]:
        """The mean of w, and the Cholesky factor of V.

        The library's factor is NaN where V is singular but for rounding; then it is ours.
        """
        gram, moment = regression.stats.gram[..., 0], regression.stats.moment[..., 0]
        rho, _ = self.told(regression.scales)
        precision = gram + rho * jnp.eye(len(moment))
        root = jnp.linalg.cholesky(precision)
        failed = ~jnp.isfinite(jnp.sum(root))
        root = maybe(failed, lambda _: lanes.cholesky(precision), root)
        return jax.scipy.linalg.cho_solve((root, True), moment), root

    def variance(
        self,
        normals: Float[Array, " normals"],
        regression: Regression,
        mean: Float[Array, " width"],
        count: Int[Array, ""],
    ) -> Number:
        """σ²: as told, or a draw."""
        _, told = self.told(regression.scales)
        if told is not None:
            return told
        left, freedom = self.noise_law(regression, mean, count)
        return left / chi_square(normals, freedom)

    def noise_law(
        self, regression: Regression, mean: Float[Array, " width"], count: Int[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Σ r² − bᵀV⁻¹b and n, with which σ² = (first)/χ²_n, where the noise is learned.

        Before the first reward that is not 0 any σ draws the same arms: then both are 1.
        """
        squares, moment = regression.squares, regression.stats.moment[:, 0]
        left = jnp.maximum(squares - mean @ moment, LEAST_NOISE * squares)
        known = squares > 0.0
        return jnp.where(known, left, 1.0), jnp.where(known, 1.0 * count, 1.0)

    def weights(
        self, key: AnyKey, regression: Regression, count: Int[Array, ""]
    ) -> Float[Array, " width"]:
        """A draw of w."""
        mean, root = self.posterior(regression)
        width, told = len(mean), self.told(regression.scales)[1]
        normals = lanes.normal(key, width + (NORMALS if told is None else 0))
        variance = self.variance(normals[width:], regression, mean, count)
        spread = jax.scipy.linalg.solve_triangular(root, normals[:width], lower=True, trans=1)
        return mean + jnp.sqrt(variance * self.temperature) * spread

    def choose(
        self,
        key: AnyKey,
        state: TrainedState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        drawn = self.weights(key, state.extra, state.replay.filled)
        features = self.network(state.spec).features(state.theta, context)
        return lanes.argmax(features @ drawn, allowed)

    def scores(self, state: TrainedState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(φ·V⁻¹b, σ²τ φ·V⁻¹φ) with one w for all arms, given the network; or Student's law."""
        regression, freedom = state.extra, None
        mean, root = self.posterior(regression)
        variance = self.told(regression.scales)[1]
        if variance is None:
            left, freedom = self.noise_law(regression, mean, state.replay.filled)
            variance = left / freedom
        features = self.network(state.spec).features(state.theta, context)
        white = jax.scipy.linalg.solve_triangular(root, features.T, lower=True)
        spread = jnp.sqrt(variance * self.temperature) * white.T
        return ScoreLaw(features @ mean, root=spread, freedom=freedom)

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(scores=self.scores)
