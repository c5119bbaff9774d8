"""Hamiltonian Monte Carlo."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.samplers.blocks import (
    DIVERGENCE,
    Info,
    Kernel,
    Noise,
    Tuning,
    accept,
    register_kernel,
    split_uniforms,
    square,
)
from feelgood.targets.sums import Theta, Value
from feelgood.targets.target import Force, Target


class HMCChain(NamedTuple):
    """Where the chain is, with L and the force there."""

    theta: Theta
    value: Value
    force: Theta
    memo: Any


@register_kernel("hmc")
class HMC(Kernel):
    """Leapfrog trajectories on H = βL + ½ pᵀM⁻¹p, M = I or V, accepted with min(1, e^{−ΔH}).

    The force may come from a surrogate (`Target.follow_surrogate`): any force that is a function of
    the position keeps the trajectory reversible and volume-preserving. The accept step uses the
    exact energy, so the target is exact whatever the force.

    Neal, "MCMC using Hamiltonian dynamics", Handbook of Markov Chain Monte Carlo, 2011.
    """

    leapfrog: int = setting(5, "leapfrog steps per proposal", low=1, high=1000)

    title = "Hamiltonian Monte Carlo"
    adjusted = True
    follows = True
    default_step = 0.8
    network_step = 0.2

    @property
    def uniforms(self) -> int:
        return 1

    @property
    def gradients_per_step(self) -> float:
        return float(self.leapfrog)

    def step_size(
        self, step: Number, curvature: Float[Array, "..."], beta: Number
    ) -> Float[Array, "..."]:
        """ε = step / √(βλ): the leapfrog is stable below 2."""
        return step / jnp.sqrt(beta * curvature)

    def init(self, theta: Theta, memo: Any) -> HMCChain:
        zeros = jnp.zeros(theta.shape[2:])
        return HMCChain(theta=theta, value=zeros, force=jnp.zeros_like(theta), memo=memo)

    def refresh(self, chain: HMCChain, target: Target, tuning: Tuning) -> HMCChain:
        no_uniforms = jnp.zeros((0, *chain.theta.shape[2:]))
        if target.frozen is None:
            value, force, memo = target.evaluate(chain.theta, chain.memo, no_uniforms)
        else:
            # The force is computed where a trajectory begins: which one it is depends on the step.
            value, memo = target.value(chain.theta, chain.memo, no_uniforms)
            force = chain.force
        return HMCChain(theta=chain.theta, value=value, force=force, memo=memo)

    def step(
        self, noise: Noise, chain: HMCChain, target: Target, tuning: Tuning
    ) -> tuple[HMCChain, Info]:
        uniform, target_uniforms = split_uniforms(noise, 1)
        step, beta = tuning.step, tuning.beta

        def kick(momentum: Theta, force: Theta, size: float) -> Theta:
            return momentum - size * step * beta * tuning.whiten(force)

        def leap(_: Array, carry: tuple[Theta, Theta, Theta, Value, Any]) -> Any:
            theta, momentum, force, value, memo = carry
            momentum = kick(momentum, force, 0.5)
            theta = theta + tuning.unwhiten(step * momentum)
            value, force, memo = target.evaluate(theta, memo, target_uniforms)
            return theta, kick(momentum, force, 0.5), force, value, memo

        def along(force_at: Force) -> tuple[Theta, Theta, Theta]:
            """The trajectory under another force."""

            def leap_along(i: Array, carry: tuple[Theta, Theta, Theta]) -> Any:
                """Pass 0 only computes the force at the start, so that it is compiled once."""
                theta, momentum, force = carry
                half = kick(momentum, force, 0.5)
                moved = jnp.where(i > 0, theta + tuning.unwhiten(step * half), theta)
                new_force = force_at(moved)
                return moved, jnp.where(i > 0, kick(half, new_force, 0.5), momentum), new_force

            start = (chain.theta, noise.normal, jnp.zeros_like(chain.theta))
            return lax.fori_loop(0, self.leapfrog + 1, leap_along, start)

        def log_ratio(value: Value) -> Value:
            kinetic = 0.5 * (square(noise.normal) - square(momentum))
            return beta * (chain.value - value) + kinetic

        if target.frozen is None:
            start = (chain.theta, noise.normal, chain.force, chain.value, chain.memo)
            theta, momentum, force, value, memo = lax.fori_loop(0, self.leapfrog, leap, start)
        else:
            theta, momentum, force = target.follow_surrogate(along)

            def hopeless(least: Value) -> Bool[Array, "*lanes"]:
                """Whether `accept` calls it diverged however much more the energy is."""
                return ~(log_ratio(least) >= -DIVERGENCE)

            value, memo = target.value_or_bound(theta, chain.memo, target_uniforms, hopeless)
        accepted, probability, diverged = accept(uniform[0], log_ratio(value))
        moved = HMCChain(
            theta=jnp.where(accepted, theta, chain.theta),
            value=jnp.where(accepted, value, chain.value),
            force=jnp.where(accepted, force, chain.force),
            memo=memo,
        )
        return moved, Info(acceptance=probability, diverged=1.0 * diverged)
