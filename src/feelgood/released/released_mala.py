"""The released MALA: a Metropolis ratio that is none, and a bonus that a proposal does not feel."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.core.settings import setting
from feelgood.released.released_names import register_kernel_agents
from feelgood.samplers.blocks import Info, Noise, Tuning, accept, split_uniforms, square
from feelgood.samplers.lmc import langevin
from feelgood.samplers.mala import MALA, MALAChain
from feelgood.targets.sums import Theta, Value
from feelgood.targets.target import Evaluation, Target


class ReleasedMALA(MALA):
    """MALA with the released filter and the released bonus, each of which can be switched off.

    `ratio = "released"` (src/MCMC.py:125-158): the proposal θ' = θ − hg + √(2h/β) ξ is accepted
    with probability e^a, a = L(θ) − L(θ') + q(θ', θ) − q(θ, θ'), where
    q(x, y) = −‖y − x − h g(x)‖²/(4h). The sign of g is wrong, and β is missing, in q and in the
    target.

    `bonus_at = "state"` (src/MCMC.py:203-213, 269-281): L(θ') has the bonus of θ, so that it
    cancels, and g(θ') has none. Each such evaluation adds the bonus' gradient at θ once more to
    g(θ), which is kept in place; a chain that moves is rid of it.
    """

    ratio: str = setting(
        "released",
        "Metropolis ratio: the released one, or the right one",
        choices=("released", "right"),
    )
    bonus_at: str = setting(
        "state",
        "where a proposal's bonus is taken: at the state, or at the proposal",
        choices=("state", "proposal"),
    )

    title = "Metropolis-adjusted Langevin as released"

    def step(
        self, noise: Noise, chain: MALAChain, target: Target, tuning: Tuning
    ) -> tuple[MALAChain, Info]:
        uniform, target_uniforms = split_uniforms(noise, 1)
        proposal = langevin(chain.theta, chain.gradient, noise.normal, tuning)
        if self.bonus_at == "proposal":
            there = target.evaluate(proposal, chain.memo, target_uniforms)
        else:
            chain, there = _without_bonus(chain, proposal, target, target_uniforms)
        if self.ratio == "released":
            h = tuning.step
            back = _log_density(proposal, chain.theta, there.gradient, h)
            forth = _log_density(chain.theta, proposal, chain.gradient, h)
            log_ratio = chain.value - there.value + back - forth
        else:
            log_ratio = _right_log_ratio(noise.normal, chain, there, tuning)
        accepted, probability, diverged = accept(uniform[0], log_ratio)
        moved = MALAChain(
            theta=jnp.where(accepted, proposal, chain.theta),
            value=jnp.where(accepted, there.value, chain.value),
            gradient=jnp.where(accepted, there.gradient, chain.gradient),
            memo=there.memo,
        )
        return moved, Info(acceptance=probability, diverged=1.0 * diverged)


def _without_bonus(
    chain: MALAChain, proposal: Theta, target: Target, uniform: Float[Array, "draws *lanes"]
) -> tuple[MALAChain, Evaluation]:
    """The chain with what its gradient gains, and the proposal without a bonus of its own."""
    plain = eqx.tree_at(lambda t: t.energy.bonus, target, None, is_leaf=lambda x: x is None)
    smooth = plain.evaluate(proposal, chain.memo, jnp.zeros((0, *proposal.shape[2:])))
    nothing = jnp.zeros(proposal.shape[2:]), jnp.zeros_like(proposal)
    value, gradient, memo = target.with_bonus(chain.theta, chain.memo, uniform, *nothing)
    there = Evaluation(smooth.value + value, smooth.gradient, memo)
    return chain._replace(gradient=chain.gradient + gradient), there


def _log_density(x: Theta, y: Theta, gradient: Theta, h: Float[Array, "..."]) -> Value:
    """−‖y − x − h g‖²/(4h), where each block may have a step of its own."""
    return -0.25 * square((y - x - h * gradient) / jnp.sqrt(h))


def _right_log_ratio(normal: Theta, chain: MALAChain, there: Any, tuning: Tuning) -> Value:
    """As in `feelgood.samplers.mala`."""
    whitened = tuning.whiten(chain.gradient + there.gradient)
    backward = normal - jnp.sqrt(0.5 * tuning.beta * tuning.step) * whitened
    return tuning.beta * (chain.value - there.value) + 0.5 * (square(normal) - square(backward))


register_kernel_agents(ReleasedMALA, malats="", fgmalats="fg", sfgmalats="sfg")
