"""Langevin Monte Carlo."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from feelgood.samplers.blocks import Info, Kernel, Noise, Tuning, register_kernel, split_uniforms
from feelgood.targets.sums import Theta
from feelgood.targets.target import Target


class LMCChain(NamedTuple):
    """Where the chain is."""

    theta: Theta
    memo: Any


def langevin(theta: Theta, gradient: Theta, normal: Theta, tuning: Tuning) -> Theta:
    """θ − h V⁻¹∇L + √(2h/β) V^{-1/2} ξ.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from feelgood.samplers.blocks import Tuning
    >>> from feelgood.samplers.lmc import langevin
    >>> theta, slope = jnp.ones((1, 1)), jnp.full((1, 1), 2.0)
    >>> tuning = Tuning(step=jnp.array(0.25), beta=jnp.array(1.0))
    >>> float(langevin(theta, slope, jnp.zeros((1, 1)), tuning)[0, 0])  # 1 − ¼ · 2, without noise
    0.5
    """
    h = tuning.step
    drift = h * tuning.whiten(gradient) - jnp.sqrt(2.0 * h / tuning.beta) * normal
    return theta - tuning.unwhiten(drift)


@register_kernel("lmc")
class LMC(Kernel):
    """Unadjusted Langevin: θ ← θ − h V⁻¹∇L + √(2h/β) V^{-1/2} ξ, V = I without preconditioner.

    Its stationary law is not π: on a Gaussian target with precision p it has variance
    1/(p(1 − hp/2)), with h in units of 1/β.

    Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar, "Langevin Monte Carlo for contextual
    bandits", ICML 2022.
    """

    title = "Langevin Monte Carlo"
    default_step = 0.5
    #: All directions of a preconditioned target are equally steep, and the step widens them all.
    preconditioned_step = 0.15

    def init(self, theta: Theta, memo: Any) -> LMCChain:
        return LMCChain(theta=theta, memo=memo)

    def refresh(self, chain: LMCChain, target: Target, tuning: Tuning) -> LMCChain:
        return chain

    def step(
        self, noise: Noise, chain: LMCChain, target: Target, tuning: Tuning
    ) -> tuple[LMCChain, Info]:
        _, uniform = split_uniforms(noise, 0)
        _, gradient, memo = target.evaluate(chain.theta, chain.memo, uniform)
        theta = langevin(chain.theta, gradient, noise.normal, tuning)
        return LMCChain(theta=theta, memo=memo), Info()
