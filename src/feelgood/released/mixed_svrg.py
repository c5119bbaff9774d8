"""The released variance-reduced gradient: a mean of a batch beside a sum of all."""

from typing import Any

import jax.numpy as jnp

from feelgood.core.settings import setting
from feelgood.numerics.lanes import Unbatched
from feelgood.released.released_names import register_kernel_agents
from feelgood.samplers.blocks import Info, Noise, Tuning, split_uniforms, square
from feelgood.samplers.lmc import langevin
from feelgood.samplers.svrg import SVRGLMC, SVRGChain
from feelgood.targets.sums import Theta
from feelgood.targets.target import Target


class ReleasedSVRG(SVRGLMC):
    """SVRG with the released estimate and the released snapshots (src/MCMC.py:1089-1113).

    `scaling = "released"`: g = ∇L(θ̃) + (1/B) Σ_batch [∇ℓ_i(θ) − ∇ℓ_i(θ̃)], a sum over all n rounds
    and the prior at the snapshot θ̃, and the *mean* of a batch. The second is n times too small,
    so a chain follows the slope of its snapshot for all steps between two of them.

    `snapshots = "running"`: steps are counted across rounds, so that a round begins with a snapshot
    and a sum of the round before.

    The prior's gradient goes through ‖θ‖, whose square overflows in float32 beyond 1.8 · 10¹⁹: from
    then on the chain is lost. Chains of the released estimate come that far within 100 rounds.
    """

    scaling: str = setting(
        "released",
        "the batch as a mean beside a sum, or as an unbiased sum",
        choices=("released", "right"),
    )
    snapshots: str = setting(
        "running",
        "steps to a snapshot: counted across rounds, or from each round on",
        choices=("running", "rounds"),
    )

    title = "Langevin Monte Carlo with variance-reduced gradients as released"

    def init(self, theta: Theta, memo: Any) -> SVRGChain:
        """The first step makes a snapshot."""
        return (
            super().init(theta, memo)._replace(age=Unbatched(jnp.asarray(self.snapshot, jnp.int32)))
        )

    def refresh(self, chain: SVRGChain, target: Target, tuning: Tuning) -> SVRGChain:
        return chain if self.snapshots == "running" else super().refresh(chain, target, tuning)

    def step(
        self, noise: Noise, chain: SVRGChain, target: Target, tuning: Tuning
    ) -> tuple[SVRGChain, Info]:
        if self.scaling == "right":
            return super().step(noise, chain, target, tuning)
        uniform, _ = split_uniforms(noise, 1)
        chain = self.renewed(chain, target)
        change = target.batch_change(chain.theta, chain.snapshot, uniform[0], self.batch)
        mean = change / jnp.maximum(target.data.count, 1)
        lost = jnp.where(jnp.isfinite(square(chain.snapshot)), 0.0, jnp.nan)
        slope = chain.snapshot_gradient + mean + lost
        theta = langevin(chain.theta, slope, noise.normal, tuning)
        return chain._replace(theta=theta, age=Unbatched(chain.age.value + 1)), Info()


register_kernel_agents(ReleasedSVRG, svrglmcts="")
