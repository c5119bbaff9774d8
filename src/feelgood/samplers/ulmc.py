"""Underdamped Langevin Monte Carlo."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.samplers.blocks import Info, Kernel, Noise, Tuning, register_kernel, split_uniforms
from feelgood.targets.sums import Theta
from feelgood.targets.target import Target


class ULMCChain(NamedTuple):
    """Position and velocity."""

    theta: Theta
    velocity: Theta
    memo: Any


@register_kernel("lmc", variant="u", meaning="underdamped dynamics")
class ULMC(Kernel):
    """v ← (1 − γh) v − h∇L + √(2γh/β) ξ; θ ← θ + h v, with the new v.

    Zhang, Chewi, Li, Balasubramanian and Erdogdu, "Improved discretization analysis for
    underdamped Langevin Monte Carlo", COLT 2023. In units of the curvature, h = step/√λ and the
    friction is γ√λ, so that one setting serves every scale.
    """

    gamma: Number = setting(1.0, "friction γ", above=0.0, high=1e6, tune=(0.1, 10.0))

    title = "underdamped Langevin Monte Carlo"
    preconditionable = False
    default_step = 0.3
    network_step = 0.1

    def step_size(
        self, step: Number, curvature: Float[Array, "..."], beta: Number
    ) -> Float[Array, "..."]:
        """h = step / √λ."""
        del beta
        return step / jnp.sqrt(curvature)

    def init(self, theta: Theta, memo: Any) -> ULMCChain:
        return ULMCChain(theta=theta, velocity=jnp.zeros_like(theta), memo=memo)

    def refresh(self, chain: ULMCChain, target: Target, tuning: Tuning) -> ULMCChain:
        return chain

    def step(
        self, noise: Noise, chain: ULMCChain, target: Target, tuning: Tuning
    ) -> tuple[ULMCChain, Info]:
        _, uniform = split_uniforms(noise, 0)
        h = tuning.step
        friction = self.gamma
        if tuning.curvature is not None:
            friction = friction * jnp.sqrt(tuning.curvature)
        _, gradient, memo = target.evaluate(chain.theta, chain.memo, uniform)
        velocity = (
            (1.0 - friction * h) * chain.velocity
            - h * gradient
            + jnp.sqrt(2.0 * friction * h / tuning.beta) * noise.normal
        )
        return ULMCChain(theta=chain.theta + h * velocity, velocity=velocity, memo=memo), Info()
