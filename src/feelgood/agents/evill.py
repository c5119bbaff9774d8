"""Exploration by a loss with a random slope."""

import dataclasses
import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.agents.estimates import EstimateState, FittedState
from feelgood.agents.laplace_ts import LaplaceTS
from feelgood.core.policy import AGENTS, Hints
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.targets import logistic_fit
from feelgood.targets.logistic_fit import Effort

#: A draw is so far from θ̂ that its own matrix would be another one, but that of θ̂ serves as well:
#: most steps leave less than a third of the error. The last one moves no past logit by more than
#: 0.01, else the matrix is made anew.
_EFFORT = Effort(steps=6, drift=math.inf, reach=0.01)


@AGENTS.register("evill", family="Thompson sampling by perturbation")
class Evill(LaplaceTS):
    """The minimum of the loss plus a random linear term, anew in every round.

    θ = argmin L(θ') + W·θ' with W ~ N(0, τ H(θ̂)), θ̂ = argmin L and H = ∇²L; plays
    argmax_a f_θ(x, a). For Bernoulli rewards L(θ) = Σ [log(1 + e^{x·θ}) − r x·θ] + ‖θ‖²/(2s²), and
    ∇L(θ) = −W has that law exactly. The paper sums W over the data, √μ' Z x for each and Z/s for
    the prior; a root of H times normals has the same law. H is that of `laplace-ts`.

    With normal rewards it is `laplace-ts` and, where the noise is told, `lints` in law. There are
    no uniform rounds at the start, since the prior is perturbed as well.

    Janz, Liu, Ayoub and Szepesvári, "Exploration via linearly perturbed loss minimisation",
    AISTATS 2024.
    """

    def draw(self, noise: Float[Array, "normals *lanes"], state: EstimateState) -> EstimateState:
        if not isinstance(state, FittedState):
            return super().draw(noise, state)
        fit = state.fit
        normal = jnp.sqrt(self.widening(state.spec)) * noise.reshape(fit.theta.shape)
        pull = lanes.matvec(fit.lower, normal)
        nowhere = jnp.zeros(state.spec.lanes, bool)
        found = logistic_fit.follow(state.rows, self.precision(state), fit, nowhere, pull, _EFFORT)
        return dataclasses.replace(state, theta=found.theta)

    def hints(self, spec: Spec) -> Hints:
        hints = super().hints(spec)
        return hints if self.squared(spec) else hints._replace(target=None, scores=None)
