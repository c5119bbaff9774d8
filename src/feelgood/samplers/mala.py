"""The Metropolis-adjusted Langevin algorithm."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from feelgood.core.settings import setting
from feelgood.samplers.blocks import (
    Info,
    Kernel,
    Noise,
    Tuning,
    accept,
    register_kernel,
    split_uniforms,
    square,
)
from feelgood.samplers.lmc import langevin
from feelgood.targets.sums import Theta, Value
from feelgood.targets.target import Target


class MALAChain(NamedTuple):
    """Where the chain is, with L and ∇L there."""

    theta: Theta
    value: Value
    gradient: Theta
    memo: Any


@register_kernel("mala")
class MALA(Kernel):
    """Langevin proposals with the full Metropolis–Hastings ratio.

    The proposal is θ' = θ − h V⁻¹∇L(θ) + √(2h/β) V^{-1/2} ξ, accepted with probability
    min(1, π(θ') q(θ|θ') / (π(θ) q(θ'|θ))). The two proposal densities together give
    ½‖ξ‖² − ½‖ξ − √(βh/2) B(∇L(θ) + ∇L(θ'))‖² in the exponent.

    Roberts and Tweedie, "Exponential convergence of Langevin distributions and their discrete
    approximations", Bernoulli 1996. `warmup_steps` steps of plain gradient descent may begin
    every round, as in the released code of the paper. The chain then no longer samples π alone.
    """

    warmup_steps: int = setting(
        0, "inner steps of plain gradient descent at the start of every round", low=0, high=10_000
    )

    title = "Metropolis-adjusted Langevin"
    adjusted = True
    default_step = 0.4

    @property
    def uniforms(self) -> int:
        return 1

    @property
    def warmup(self) -> int:
        return self.warmup_steps

    def init(self, theta: Theta, memo: Any) -> MALAChain:
        zeros = jnp.zeros(theta.shape[2:])
        return MALAChain(theta=theta, value=zeros, gradient=jnp.zeros_like(theta), memo=memo)

    def refresh(self, chain: MALAChain, target: Target, tuning: Tuning) -> MALAChain:
        nothing = jnp.zeros((0, *chain.theta.shape[2:]))
        value, gradient, memo = target.evaluate(chain.theta, chain.memo, nothing)
        return chain._replace(value=value, gradient=gradient, memo=memo)

    def descend(self, chain: MALAChain, tuning: Tuning) -> MALAChain:
        move = tuning.unwhiten(tuning.step * tuning.whiten(chain.gradient))
        return chain._replace(theta=chain.theta - move)

    def step(
        self, noise: Noise, chain: MALAChain, target: Target, tuning: Tuning
    ) -> tuple[MALAChain, Info]:
        uniform, target_uniforms = split_uniforms(noise, 1)
        h, beta, normal = tuning.step, tuning.beta, noise.normal
        proposal = langevin(chain.theta, chain.gradient, normal, tuning)
        value, gradient, memo = target.evaluate(proposal, chain.memo, target_uniforms)
        backward = normal - jnp.sqrt(0.5 * beta * h) * tuning.whiten(chain.gradient + gradient)
        densities = 0.5 * (square(normal) - square(backward))
        accepted, probability, diverged = accept(
            uniform[0], beta * (chain.value - value) + densities
        )
        moved = MALAChain(
            theta=jnp.where(accepted, proposal, chain.theta),
            value=jnp.where(accepted, value, chain.value),
            gradient=jnp.where(accepted, gradient, chain.gradient),
            memo=memo,
        )
        return moved, Info(acceptance=probability, diverged=1.0 * diverged)
