"""Langevin Monte Carlo with stochastic variance-reduced gradients."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from feelgood.core.settings import setting
from feelgood.numerics.lanes import Unbatched
from feelgood.samplers.blocks import Info, Kernel, Noise, Tuning, register_kernel, split_uniforms
from feelgood.samplers.lmc import langevin
from feelgood.targets.sums import Theta
from feelgood.targets.target import Target


class SVRGChain(NamedTuple):
    """Where the chain is, and the latest snapshot with the full gradient there."""

    theta: Theta
    snapshot: Theta
    snapshot_gradient: Theta
    #: Steps since then. The same in all chains, so that a new snapshot is a branch.
    age: Unbatched
    memo: Any


@register_kernel("lmc", variant="svrg", meaning="variance-reduced gradients")
class SVRGLMC(Kernel):
    """LMC with ∇L estimated without bias from a batch.

    ∇L(θ) ≈ ∇L_data(θ̃) + (n/B) Σ_batch [∇ℓ_i(θ) − ∇ℓ_i(θ̃)] + prior and bonus: an unbiased
    estimate of the *sum* over the n rounds so far. The batch is a random batch of the history, see
    `feelgood.targets.random_batches.random_batch`.
    The snapshot θ̃ is renewed every `snapshot` steps and at the start of every round, when the
    data have grown.

    Dubey et al., "Variance reduction in stochastic gradient Langevin dynamics", NeurIPS 2016.
    """

    batch: int = setting(64, "rounds per batch", low=1, high=1_000_000)
    snapshot: int = setting(10, "steps between snapshots", low=1, high=10_000)

    title = "Langevin Monte Carlo with variance-reduced gradients"
    preconditionable = False
    default_step = 0.15

    @property
    def uniforms(self) -> int:
        return 1

    @property
    def batch_rounds(self) -> int:
        return self.batch

    def init(self, theta: Theta, memo: Any) -> SVRGChain:
        return SVRGChain(
            theta=theta,
            snapshot=theta,
            snapshot_gradient=jnp.zeros_like(theta),
            age=Unbatched(jnp.zeros((), jnp.int32)),
            memo=memo,
        )

    def refresh(self, chain: SVRGChain, target: Target, tuning: Tuning) -> SVRGChain:
        return _renew(chain, target)

    def step(
        self, noise: Noise, chain: SVRGChain, target: Target, tuning: Tuning
    ) -> tuple[SVRGChain, Info]:
        uniform, target_uniforms = split_uniforms(noise, 1)
        chain = self.renewed(chain, target)
        change = target.batch_change(chain.theta, chain.snapshot, uniform[0], self.batch)
        prior = 2.0 * target.energy.rho * (chain.theta - chain.snapshot)
        estimate = chain.snapshot_gradient + change + prior
        nothing = jnp.zeros(chain.theta.shape[2:])
        _, gradient, memo = target.with_bonus(
            chain.theta, chain.memo, target_uniforms, nothing, estimate
        )
        theta = langevin(chain.theta, gradient, noise.normal, tuning)
        older = Unbatched(chain.age.value + 1)
        return chain._replace(theta=theta, age=older, memo=memo), Info()

    def renewed(self, chain: SVRGChain, target: Target) -> SVRGChain:
        """With a new snapshot, if it is time to."""
        due = chain.age.value >= self.snapshot
        return lax.cond(due, lambda c: _renew(c, target), lambda c: c, chain)


def _renew(chain: SVRGChain, target: Target) -> SVRGChain:
    """A snapshot here: the full gradient of data and prior."""
    return chain._replace(
        snapshot=chain.theta,
        snapshot_gradient=target.data_gradient(chain.theta),
        age=Unbatched(jnp.zeros((), jnp.int32)),
    )
