"""Thompson sampling of a network's parameters by MCMC: `neural-[u|svrg][fg|sfg]{lmc|mala|hmc}ts`.

The kernels, the bonus and the names are those of the linear agents; the target is that of
`feelgood.targets.network_energy`. Networks have no preconditioned form.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents import grammar
from feelgood.agents.gibbs import Coefficients, GibbsPolicy
from feelgood.agents.neural import WORKING_COPIES, maybe, play_greedily
from feelgood.agents.neural_model import NeuralModelPolicy, noise_health
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS, Needs, Policy, Report
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import Setting, setting, settings_of
from feelgood.core.spec import Layout, Number, Spec
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.numerics.lanes import Mask
from feelgood.samplers import KERNELS, Kernel
from feelgood.samplers.blocks import RoundInfo, Tuning, run_steps
from feelgood.targets.bonus import FeelGood, weighted_bonus
from feelgood.targets.network_energy import Memory, NetworkEnergy, NetworkTarget
from feelgood.targets.network_noise import NetworkNoise
from feelgood.targets.replay import Replay

_PREFIX = "neural-"
_SCHEDULES = ("decay", "constant")


class NeuralThompsonState(eqx.Module):
    """What is remembered, and the chain."""

    replay: Replay
    chain: Any
    info: RoundInfo
    step: Float[Array, ""]
    #: What is learned of the noise; None: nothing.
    noise: NetworkNoise | None
    spec: Spec = eqx.field(static=True)


class NeuralThompson(NeuralModelPolicy, GibbsPolicy):
    """Thompson sampling from π ∝ exp(−βL) over the parameters of a network.

    Every `update_every` rounds the chain makes `updates` steps of the kernel, warm-started; then
    the arm with the largest f_θ is played. The schedule `decay` measures the step in a curvature
    that grows as t, the number of observations plus one. The step is lr/t for Langevin kernels,
    lr/√t for underdamped and lr/√(βt) for Hamiltonian ones. In the user's words the curvature is
    ηt with η = 1/(2 noise²), so that gradients move the network as far with any noise. Kernels with
    a Metropolis filter always read the whole history: an accept step that sees a batch does not
    leave π invariant.

    Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar, "Langevin Monte Carlo for contextual
    bandits", ICML 2022.
    """

    kernel: Kernel = eqx.field(kw_only=True)
    bonus: FeelGood | None = eqx.field(default=None, kw_only=True)

    usual: ClassVar[dict[str, float]] = {"beta": 30.0, "eta": 1.0, "rho": 0.1}

    lr: Number = setting(
        0.05, "step size, in the units of the schedule", above=0.0, high=1e6, tune=(5e-3, 0.5)
    )
    schedule: str = setting(
        "decay", "the step size falls as data come, or stays", choices=_SCHEDULES
    )

    def __check_init__(self) -> None:
        name = type(self.kernel).__name__
        if self.kernel.adjusted and self.batch > 0:
            raise FeelgoodError(
                f"batch = {self.batch} is not allowed with {name}: its accept step needs the "
                "whole history, use batch = 0."
            )
        if self.kernel.batch_rounds > 0 and self.batch > 0:
            raise FeelgoodError(
                f"{name} draws batches of its own: set its batch, not the policy's."
            )
        if self.kernel.warmup >= self.updates:
            raise FeelgoodError(
                f"warmup_steps = {self.kernel.warmup} leaves none of the {self.updates} inner "
                "steps: use fewer."
            )

    def numbers_per_parameter(self, layout: Layout) -> int:
        return 8 + (0 if layout.reads_all else WORKING_COPIES * self.updates)

    def energy(self, spec: Spec, law: Coefficients) -> NetworkEnergy:
        """L for this problem."""
        return self.energy_with(spec, law.eta, law.rho, self.bonus)

    def tuning(self, count: Int[Array, ""], law: Coefficients) -> Tuning:
        """Step size and temperature with `count` observations."""
        curvature = count + 1.0 if self.schedule == "decay" else jnp.ones(())
        if not self.in_papers_words():
            curvature = law.eta * curvature
        elif self.schedule == "constant":
            return Tuning(step=self.lr, beta=law.beta)
        step = self.kernel.step_size(self.lr, curvature, law.beta)
        return Tuning(step=step, beta=law.beta, curvature=curvature)

    def init(self, key: AnyKey, spec: Spec) -> NeuralThompsonState:
        network = self.network(spec)
        theta = network.init(key)[:, None]
        return NeuralThompsonState(
            replay=Replay.empty(network),
            chain=self.kernel.init(theta, None),
            info=RoundInfo.nothing(()),
            step=jnp.zeros(()),
            noise=self.first_noise(spec),
            spec=spec,
        )

    def reserve(self, state: NeuralThompsonState, rounds: int) -> NeuralThompsonState:
        return dataclasses.replace(state, replay=state.replay.reserve(rounds))

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw="key", choose=0)

    def draw(self, noise: AnyKey, state: NeuralThompsonState) -> NeuralThompsonState:
        """A new draw of θ, in `state.chain.theta`, if it is time to; before it σ² is renewed."""
        key, theta = fold_in(noise, 3), state.chain.theta[:, 0]
        learned = self.renewed(key, state.noise, theta, state.replay, state.spec)
        state = dataclasses.replace(state, noise=learned)
        return maybe(self.due(state.replay.filled), lambda s: self.moved(noise, s), state)

    def moved(self, key: AnyKey, state: NeuralThompsonState) -> NeuralThompsonState:
        """One round of inner steps."""
        replay = state.replay
        law = self.coefficients(state.spec, self.network_scales(state.spec, state.noise))
        tuning = self.tuning(replay.filled, law)
        target = self.target(fold_in(key, 2), state, law)
        chain, info = run_steps(
            *(key, self.kernel, state.chain, target, tuning, self.inner_steps()),
            unroll=state.spec.layout.unroll,
            ahead=not state.spec.layout.reads_all,
        )
        return dataclasses.replace(state, chain=chain, info=info, step=1.0 * tuning.step)

    def inner_steps(self) -> int:
        """Inner steps when the network learns."""
        return self.updates

    def target(self, key: AnyKey, state: NeuralThompsonState, law: Coefficients) -> NetworkTarget:
        """What the inner steps of a round sample."""
        return NetworkTarget(
            energy=self.energy(state.spec, law),
            data=Memory(state.replay),
            batches=self.batches(key, state.replay, self.inner_steps()),
            size=self.batch,
        )

    def choose(
        self,
        noise: None,
        state: NeuralThompsonState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        del noise
        return play_greedily(self.network(state.spec), state.chain.theta[:, 0], context, allowed)

    def update(
        self,
        state: NeuralThompsonState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> NeuralThompsonState:
        row = self.network(state.spec).row(context)
        replay = state.replay.add(row, arm, reward)
        chain = state.chain._replace(theta=replay.unless_lost(state.chain.theta))
        return dataclasses.replace(state, replay=replay, chain=chain)

    def report(self, state: NeuralThompsonState) -> Report:
        """Not finite once θ or a step is not: a filter rejects such steps, and θ stays finite."""
        return Report(
            finite=jnp.isfinite(jnp.sum(state.chain.theta) + state.step),
            health={
                **state.info.health(state.step, self.kernel.adjusted),
                **noise_health(state.noise),
            },
        )


# ---- names ----------------------------------------------------------------------------------


def neural_settings(
    kernel: type[Kernel],
    bonus: type[FeelGood] | None,
    policy: type[NeuralThompson] = NeuralThompson,
) -> dict[str, Setting]:
    """The settings of an agent made of these parts."""
    own = settings_of(policy)
    own["lr"] = Setting(**{**vars(own["lr"]), "default": kernel.network_step})
    if kernel.adjusted:
        own["batch"] = Setting(**{**vars(own["batch"]), "default": 0})
    return {**own, **settings_of(kernel), **(settings_of(bonus) if bonus else {})}


def _compose(
    kernel: type[Kernel], bonus: type[FeelGood] | None, values: Mapping[str, Any]
) -> NeuralThompson:
    """The agent with these parts and settings."""

    def pick(component: type) -> dict[str, Any]:
        return {name: values[name] for name in settings_of(component) if name in values}

    own = pick(NeuralThompson)
    inner = kernel(**pick(kernel))
    if inner.batch_rounds > 0:  # the batch is the kernel's
        own["batch"] = 0
    return NeuralThompson(
        kernel=inner,
        bonus=None if bonus is None else weighted_bonus(bonus, values),
        **own,
    )


def network_parts_of(name: str) -> grammar.Parts | None:
    """The parts of a name; None for a name of another kind; an error for nonsense."""
    if not name.startswith(_PREFIX):
        return None
    parts = grammar.parts_of(name.removeprefix(_PREFIX))
    if parts is not None and parts.preconditioned:
        raise FeelgoodError(
            f"'{name}' makes no sense: networks have no preconditioned form, "
            f"use '{_PREFIX}{name.removeprefix(_PREFIX + 'p')}'."
        )
    if parts is not None and parts.kernel.jumps:
        raise FeelgoodError(
            f"'{name}' makes no sense: jumps between arms' modes need a linear model, "
            f"use '{_PREFIX}{parts.bonus_name}{parts.kernel_name}ts'."
        )
    return parts


def _parse(name: str) -> Entry[Policy] | None:
    """The agent of this name; None for a name of another kind; an error for nonsense."""
    parts = network_parts_of(name)
    if parts is None:
        return None
    kernel = parts.kernel
    bonus, bonus_text = grammar.BONUSES[parts.bonus_name]
    return Entry(
        name=name,
        doc=f"Thompson sampling of a network by {kernel.title}{bonus_text}.",
        settings=neural_settings(kernel, bonus),
        make=lambda values: _compose(kernel, bonus, values),
    )


NAMES = tuple(
    f"{_PREFIX}{variant}{bonus}{kernel_name}ts"
    for (variant, kernel_name), kernel in KERNELS.items()
    for bonus in grammar.BONUSES
    if not kernel.jumps
)
AGENTS.add(
    Family(
        label="MCMC Thompson sampling of a network",
        doc="neural-[u|svrg][fg|sfg]{lmc|mala|hmc}ts",
        parse=_parse,
        names=NAMES,
        family="Networks",
    )
)
