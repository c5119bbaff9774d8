"""The feel-good bonus Σ_s λ_s φ(max_a f_θ(x_s, a)) over all arms of every stored context.

f is the mean reward: the score itself, or μ(score) where rewards have a link. How the sum is
evaluated is said in `targets.evaluators`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.settings import setting, settings_of
from feelgood.core.spec import Likelihood, Number

LAM_SCHEDULES = ("constant", "sqrt", "prior-mass")


class Bonus(eqx.Module):
    """What an energy and its evaluators see: φ as a function of the best score, and the weights.

    Round s, counted from 1, has the weight λ_s = strength · w_s for ever, whatever round it is
    today. So w_s is a function of the round's number alone.
    """

    @property
    @abstractmethod
    def strength(self) -> Number:
        """The factor that the weights of all rounds share."""

    @property
    @abstractmethod
    def weighs_rounds(self) -> bool:
        """Whether w_s differs from 1."""

    @property
    @abstractmethod
    def hard(self) -> bool:
        """Whether w_s φ' takes the values 0 and 1 only."""

    @abstractmethod
    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ of the best score g."""

    @abstractmethod
    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """Its derivative in g."""

    @abstractmethod
    def ceiling(self) -> Float[Array, "..."]:
        """A number that φ never exceeds."""

    def weighed(
        self, values: Float[Array, "..."], numbers: Int[Array, "..."]
    ) -> Float[Array, "..."]:
        """w_s · values, for the rounds with these numbers, which count from 0."""
        return values / jnp.sqrt(numbers + 1.0) if self.weighs_rounds else values

    def most(self, rounds: Int[Array, ""]) -> Float[Array, "..."]:
        """A number that Σ w_s φ over the first `rounds` rounds never exceeds.

        Σ s^(−1/2) ≤ 2 √n; a ceiling is above 0.
        """
        return self.ceiling() * (2.0 * jnp.sqrt(1.0 * rounds) if self.weighs_rounds else rounds)


class FeelGood(Bonus):
    """The bonus λ_s φ(g) with φ(g) = min(b, g), or its smoothed form.

    g is the largest mean reward. Where rewards have a link, `bonus_on = "score"` takes the largest
    score in its place. The pull of that does not fade as the mean comes near 1: a weight above η
    times what a mean lacks of 1 is held by the cap or the prior alone.

    Zhang, "Feel-good Thompson sampling for contextual bandits and reinforcement learning", 2022.
    """

    lam: Number = setting(
        1.0,
        "weight λ of the feel-good bonus, in units of one over the rewards'",
        low=0.0,
        high=1e6,
        tune=(1e-3, 1.0),
    )
    b: Number = setting(1000.0, "cap b of the feel-good bonus", above=0.0, high=1e9)
    bonus_on: str = setting(
        "mean",
        "bonus on the mean reward, or on the score before the link",
        choices=("mean", "score"),
    )
    lam_schedule: str = setting(
        "sqrt",
        "weight of round s: lam, lam/√s, or √(2 ln(1/prior_mass)/horizon)",
        choices=LAM_SCHEDULES,
    )
    prior_mass: Number = setting(
        0.01, "prior mass p of the good parameters, for prior-mass", above=0.0, high=1.0
    )
    horizon: Number = setting(
        10_000.0, "rounds T that are to be played, for prior-mass", low=1.0, high=1e9
    )

    @property
    def strength(self) -> Number:
        """λ, or √(2 ln(1/p)/T), which minimises λT/2 + ln(1/p)/λ."""
        if self.lam_schedule == "prior-mass":
            return jnp.sqrt(2.0 * jnp.log(1.0 / self.prior_mass) / self.horizon)
        return self.lam

    @property
    def weighs_rounds(self) -> bool:
        return self.lam_schedule == "sqrt"

    @property
    def hard(self) -> bool:
        return not self.weighs_rounds

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ(g)."""
        return jnp.minimum(self.b[..., None], best)

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ'(g)."""
        return (best < self.b[..., None]).astype(jnp.float32)

    def ceiling(self) -> Float[Array, "..."]:
        return self.b

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

    @property
    def hard(self) -> bool:
        return False

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


class MeanBonus(Bonus):
    """φ(μ(g)) with μ(g) = 1/(1 + e^(−g)): the bonus on a Bernoulli reward's mean, by the score.

    μ increases, so the arm with the largest score has the largest mean. The slope is
    φ'(μ(g)) μ(g) μ(−g).
    """

    inner: FeelGood

    @property
    def strength(self) -> Number:
        return self.inner.strength

    @property
    def weighs_rounds(self) -> bool:
        return self.inner.weighs_rounds

    @property
    def hard(self) -> bool:
        return False

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.inner.phi(jax.nn.sigmoid(best))

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        mean = jax.nn.sigmoid(best)
        return self.inner.slope(mean) * mean * jax.nn.sigmoid(-best)

    def ceiling(self) -> Float[Array, "..."]:
        return jnp.minimum(self.inner.ceiling(), 1.0)


def on_scores(bonus: FeelGood, likelihood: Likelihood) -> Bonus:
    """The bonus as a function of the score: itself where the score is the mean reward."""
    linked = likelihood == "bernoulli" and bonus.bonus_on == "mean"
    return MeanBonus(inner=bonus) if linked else bonus


def weighted_bonus(kind: type[FeelGood], values: Mapping[str, Any]) -> FeelGood | None:
    """The bonus with those of the settings that are its own.

    None where its weight is 0: no bonus, at no cost.
    """
    if values["lam"] <= 0 and values["lam_schedule"] != "prior-mass":
        return None
    return kind(**{name: values[name] for name in settings_of(kind)})
