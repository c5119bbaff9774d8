"""The released Langevin agent with a network, whose temperature and batches are not the paper's."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.gibbs import Coefficients
from feelgood.agents.neural_mcmc import NeuralThompson, NeuralThompsonState, neural_settings
from feelgood.core.registry import Entry
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics.keys import AnyKey
from feelgood.released.released_names import PREFIX, add_agents
from feelgood.released.stored_batches import stored_batch
from feelgood.samplers.blocks import Tuning
from feelgood.samplers.lmc import LMC
from feelgood.targets.network_energy import Memory, NetworkTarget
from feelgood.targets.sums import Theta
from feelgood.targets.target import Evaluation

#: What the step is multiplied with once there are more rounds than a batch holds.
BATCH_FACTOR = 10.0


class StoredTarget(NetworkTarget):
    """L of the batch of a step in stored order, as it is: not scaled to the whole history."""

    def at(self, step: Int[Array, ""]) -> "StoredTarget":
        batch = stored_batch(self.data.rows, step, self.size)
        return dataclasses.replace(self, batches=batch)

    def evaluate(
        self, theta: Theta, memo: None, uniform: Float[Array, "draws *lanes"]
    ) -> Evaluation:
        del uniform
        assert self.batches is not None
        term = self.energy.data_term(self.batches, theta[:, 0])
        return Evaluation(*self._with_prior(theta, *term), memo)


class ReleasedNeuralLangevin(NeuralThompson):
    """Langevin Thompson sampling of a network as released (Neural/algo/lmcts.py, langevin.py).

    - `steps_held`: the step is lr until the first round that `decay_step` divides, and then lr/t
      of the latest such round t; ten times that where there is a batch and t is above it. The right
      step is lr/t in every round.
    - `noise_fixed`: θ ← θ − h(∇L + c ξ) with c = √(2/(β lr)) for ever, so that the temperature
      falls as h does. The right noise is √(2h/β) ξ.
    - `stored_batches`: the steps of a round go through the rows in stored order, from the first row
      on, and the loss of a batch is not scaled to the whole history. The right batches are uniform
      and scaled.
    - `most_updates`: no round has more steps (run_classifier.py:101).

    FGLMCTS and SFGLMCTS are this agent: their bonus is never passed on (helper.py:167-173).
    """

    steps_held: bool = setting(True, "the step is renewed in every decay_step-th round only")
    decay_step: int = setting(20, "rounds between new steps", low=1, high=1_000_000)
    noise_fixed: bool = setting(True, "the noise is scaled as in the first round")
    stored_batches: bool = setting(True, "batches in stored order, not scaled")
    most_updates: int = setting(50, "inner steps at most", low=1, high=100_000)

    def tuning(self, count: Int[Array, ""], law: Coefficients) -> Tuning:
        usual = super().tuning(count, law)
        step = self._held(count) if self.steps_held else usual.step
        beta = law.beta * self.lr / step if self.noise_fixed else law.beta
        return dataclasses.replace(usual, step=step, beta=beta)

    def _held(self, count: Int[Array, ""]) -> Number:
        renewed = count - count % self.decay_step
        factor = jnp.where((self.batch > 0) & (renewed > self.batch), BATCH_FACTOR, 1.0)
        return jnp.where(renewed > 0, factor * self.lr / jnp.maximum(renewed, 1), self.lr)

    def target(self, key: AnyKey, state: NeuralThompsonState, law: Coefficients) -> NetworkTarget:
        if not self.stored_batches or self.batch == 0:
            return super().target(key, state, law)
        energy, data = self.energy(state.spec, law), Memory(state.replay)
        return StoredTarget(energy=energy, data=data, size=self.batch)

    def inner_steps(self) -> int:
        return min(self.updates, self.most_updates)


#: It speaks the paper's words only; a step that is held needs to be small.
_USUAL = {"beta": 30.0, "eta": 1.0, "rho": 1.0, "lr": 1e-3}
_settings = neural_settings(LMC, None, ReleasedNeuralLangevin)
_settings |= {k: dataclasses.replace(_settings[k], default=v) for k, v in _USUAL.items()}
add_agents(
    [
        Entry(
            name=f"{PREFIX}neural-lmcts",
            doc="Thompson sampling of a network by Langevin Monte Carlo as released.",
            settings=_settings,
            make=lambda values: ReleasedNeuralLangevin(kernel=LMC(), **values),
        )
    ],
    ReleasedNeuralLangevin,
)
