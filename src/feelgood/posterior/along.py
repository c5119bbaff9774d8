"""The measures along a run: every chain of a running group against its own exact posterior.

The engine's chains are one a seed and setting, so Monte Carlo errors come from batches of a
chain's repeated draws in place of parallel chains. The state is not changed: the run goes on as if
nothing had been measured.
"""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from feelgood.compiling import compiled
from feelgood.errors import FeelgoodError
from feelgood.lanes import AnyKey
from feelgood.policies.ridge import RidgePolicy
from feelgood.posterior.chains import redraw
from feelgood.posterior.laws import Moments, exact_posterior
from feelgood.posterior.measures import Row, measure
from feelgood.posterior.settings import PRECISION
from feelgood.protocols import Policy
from feelgood.types import Spec

#: Batches of a chain's draws, and draws a batch.
BATCHES, BATCH = 20, 10


class _Redrawer(eqx.Module):
    """Repeated draws; a module, so that equal ones share their program."""

    draws: int = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: AnyKey, state: Any, first: Int[Array, ""]
    ) -> Float[Array, "draws parameters *lanes"]:
        return redraw(policy, keys, state, self.draws, first)[0]


def state_moments(policy: Policy, state: Any) -> Moments:
    """Σ x xᵀ and Σ r x that a state holds, with its lanes as a leading axis: [lanes, blocks, …]."""
    if isinstance(policy, RidgePolicy):
        factor = np.asarray(state.ridge.factor, np.float64)
        white = np.asarray(state.ridge.white, np.float64)
        dim = len(factor)
        factor = factor.reshape(dim, dim, white.shape[1], -1)
        eye = np.eye(dim)[:, :, None, None]
        gram = np.einsum("ikbl,jkbl->ijbl", factor, factor) - np.asarray(policy.rho) * eye
        moment = np.einsum("ikbl,kbl->ibl", factor, white.reshape(dim, white.shape[1], -1))
    elif hasattr(state, "data"):
        gram = np.asarray(state.data.stats.gram, np.float64)
        gram = gram.reshape(*gram.shape[:3], -1)
        moment = np.asarray(state.data.stats.moment, np.float64)
        moment = moment.reshape(*moment.shape[:2], -1)
    else:
        raise FeelgoodError(
            f"{type(policy).__name__} keeps no sums of its observations: measure another agent."
        )
    return Moments(
        gram=np.moveaxis(gram, (3, 2), (0, 1)), moment=np.moveaxis(moment, (2, 1), (0, 1))
    )


def measure_state(
    policy: Policy,
    keys: AnyKey,
    state: Any,
    spec: Spec,
    t: int,
    *,
    noise: float,
    precision: float = PRECISION,
    contexts: np.ndarray | None = None,
    batches: int = BATCHES,
    batch: int = BATCH,
) -> list[list[Row]]:
    """Measures of all arms together after round `t`, one list a chain (lane).

    `state` and `keys` are those of a running group (`feelgood.simulate.Playing.state` and its
    keys); draws use the keys of rounds from `t` + 2³⁰ on, which no run reaches.
    """
    first = np.int32(t + 2**30)
    args = (policy, keys, state, first)
    program, _ = compiled(_Redrawer(draws=batches * batch), *args, quickly=True)
    drawn = np.asarray(program(*args), np.float64)
    drawn = drawn.reshape(batches, batch, spec.dim, spec.blocks, -1)
    drawn = np.moveaxis(drawn, (4, 0, 1, 3, 2), (0, 1, 2, 3, 4))
    moments = state_moments(policy, state)
    return [
        measure(
            own,
            exact_posterior(Moments(moments.gram[i], moments.moment[i]), noise, precision),
            spec,
            contexts,
            seed=t,
            by_arm=False,
        )
        for i, own in enumerate(drawn)
    ]
