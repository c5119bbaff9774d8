"""The released underdamped dynamics: another noise, another prior, and a mean for a sum."""

from typing import Any

import jax.numpy as jnp

from feelgood.core.settings import setting
from feelgood.released.released_names import register_kernel_agents
from feelgood.samplers.blocks import Info, Noise, Tuning, split_uniforms
from feelgood.samplers.ulmc import ULMC, ULMCChain
from feelgood.targets.sums import Theta
from feelgood.targets.target import Target


class ReleasedULMC(ULMC):
    """Underdamped Langevin as released (src/MCMC.py:808-941); each part can be switched off.

    `force = "released"`: g = η · mean of x(x·θ − r) over the rounds, plus θ/ρ². The right one is
    ∇L = 2η Σ x(x·θ − r) + 2ρθ.

    `thermostat = "released"`: the noise is √(2h) ξ, the right one √(2γh/β) ξ.

    `integrator = "released"`: v ← v − ½h g; θ ← θ + ½h v; v ← (1 − γh) v − h g + noise;
    θ ← θ + ½h v, with g anew for the second kick. The right one is ULMC's.

    Agents with a bonus override a loss that the sampler never calls, and so have none. The released
    file multiplies the raw context by θ, which fails on linear bandits; here it is mended.
    """

    force: str = setting(
        "released", "a mean over rounds and the prior θ/ρ², or ∇L", choices=("released", "right")
    )
    thermostat: str = setting("released", "noise √(2h), or √(2γh/β)", choices=("released", "right"))
    integrator: str = setting(
        "released",
        "a half kick and two half drifts per step, or one each",
        choices=("released", "right"),
    )

    title = "underdamped Langevin Monte Carlo as released"

    def step(
        self, noise: Noise, chain: ULMCChain, target: Target, tuning: Tuning
    ) -> tuple[ULMCChain, Info]:
        _, uniform = split_uniforms(noise, 0)
        h, theta, velocity, memo = tuning.step, chain.theta, chain.velocity, chain.memo
        friction = self.gamma
        if tuning.curvature is not None:
            friction = friction * jnp.sqrt(tuning.curvature)
        warmth = 1.0 if self.thermostat == "released" else friction / tuning.beta
        half = self.integrator == "released"
        if half:
            slope, memo = self._slope(theta, memo, target, uniform)
            velocity = velocity - 0.5 * h * slope
            theta = theta + 0.5 * h * velocity
        slope, memo = self._slope(theta, memo, target, uniform)
        velocity = (
            (1.0 - friction * h) * velocity - h * slope + jnp.sqrt(2.0 * warmth * h) * noise.normal
        )
        theta = theta + (0.5 * h if half else h) * velocity
        return ULMCChain(theta=theta, velocity=velocity, memo=memo), Info()

    def _slope(self, theta: Theta, memo: Any, target: Target, uniform: Any) -> tuple[Theta, Any]:
        if self.force == "right":
            _, gradient, memo = target.evaluate(theta, memo, uniform)
            return gradient, memo
        rho = target.energy.rho
        data = target.data_gradient(theta) - 2.0 * rho * theta
        mean = data / (2.0 * jnp.maximum(target.data.count, 1))
        return mean + theta / rho**2, memo


register_kernel_agents(ReleasedULMC, ulmcts="")
