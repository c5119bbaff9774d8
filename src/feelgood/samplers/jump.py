"""MALA that also jumps between the modes which a feel-good bonus makes."""

import jax.numpy as jnp

from feelgood.samplers.blocks import Info, Noise, Tuning, accept, register_kernel
from feelgood.samplers.mala import MALA, MALAChain
from feelgood.targets.arm_jumps import JUMP_UNIFORMS
from feelgood.targets.target import Target


@register_kernel("mala", variant="j", meaning="jumps between arms' modes")
class JumpMALA(MALA):
    """After every step of MALA, a proposal that may swap which arm is the best one.

    Under a feel-good bonus the target has a mode per arm that could be very good. A step along the
    gradient strengthens the arm that is best already, and the way to another mode is a valley that
    no short step crosses. The jump redraws the scores of two arms in a past round from a mixture
    of two normal laws (`feelgood.targets.arm_jumps`). It is accepted by the full ratio of
    Metropolis and Hastings, so the target is that of MALA. A jump costs three passes over the
    history.

    Jumps of this kind: Tjelmeland and Hegstad, "Mode jumping proposals in MCMC", Scandinavian
    Journal of Statistics 2001.
    """

    title = "Metropolis-adjusted Langevin with jumps between arms"
    jumps = True

    @property
    def uniforms(self) -> int:
        return 2 + JUMP_UNIFORMS

    @property
    def gradients_per_step(self) -> float:
        return 2.0

    def without_bonus(self) -> MALA:
        return MALA(warmup_steps=self.warmup_steps)

    def step(
        self, noise: Noise, chain: MALAChain, target: Target, tuning: Tuning
    ) -> tuple[MALAChain, Info]:
        local, uniform = noise.uniform[:1], noise.uniform[1:]
        chain, info = MALA.step(self, noise._replace(uniform=local), chain, target, tuning)
        jump = target.propose_jump(chain.theta, tuning.beta, uniform[1:])
        nothing = jnp.zeros((0, *chain.theta.shape[2:]))
        value, gradient, memo = target.evaluate(jump.theta, chain.memo, nothing)
        ratio = tuning.beta * (chain.value - value) + jump.log_densities
        accepted, _, _ = accept(uniform[0], ratio)
        moved = MALAChain(
            theta=jnp.where(accepted, jump.theta, chain.theta),
            value=jnp.where(accepted, value, chain.value),
            gradient=jnp.where(accepted, gradient, chain.gradient),
            memo=memo,
        )
        return moved, info
