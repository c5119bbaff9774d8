"""Thompson sampling with any BlackJAX kernel: `blackjax:nuts`, `blackjax:mclmc`, `blackjax:barker`.

A kernel fits if it has the usual pair `init(position, logdensity_fn, …)` and `build_kernel()`.
Every argument that it needs must be one that can be supplied here (see `SUPPLIED`).
BlackJAX is imported when such an agent is named, not before.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from feelgood.agents.gibbs import GibbsPolicy
from feelgood.core.errors import FeelgoodError, did_you_mean, missing_package
from feelgood.core.policy import AGENTS, Hints, Needs, Policy, Report
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import setting, settings_of
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.lanes import Mask
from feelgood.targets import models
from feelgood.targets.bonus import FeelGood, on_scores, weighted_bonus
from feelgood.targets.energy import Energy, LinearModelTarget
from feelgood.targets.evaluators import FullPass
from feelgood.targets.history import Rows
from feelgood.targets.losses import loss_for
from feelgood.targets.observations import Data
from feelgood.targets.scales import Scales, linear_reward, started
from feelgood.targets.sums import Stats

_PREFIX = "blackjax:"
#: Kernels that a listing shows; any other that fits is understood too.
LISTED_KERNELS = ("nuts", "hmc", "mala", "barker", "mclmc")
#: What can be supplied to a kernel, by the name of the argument.
SUPPLIED = ("step_size", "inverse_mass_matrix", "num_integration_steps", "L")
#: What can be supplied to `init` besides the position and the log-density.
INIT_KEYS = ("rng_key", "random_generator_arg")


class BlackjaxState(eqx.Module):
    """Data, position and the diagnostics of the latest round."""

    data: Data
    theta: Float[Array, "dim blocks"]
    acceptance: Float[Array, ""]
    #: What is learned of noise and prior; None: nothing.
    scales: Scales | None
    spec: Spec = eqx.field(static=True)


class _Kernel(NamedTuple):
    """A BlackJAX algorithm, taken apart."""

    name: str
    init: Callable[..., Any]
    build_kernel: Callable[..., Any]
    wants: tuple[str, ...]
    wants_key: str | None


def find_kernel(name: str) -> _Kernel:
    """The BlackJAX kernel of this name, or a sentence that says why there is none."""
    try:
        import blackjax
    except ModuleNotFoundError:
        raise missing_package(f"'{_PREFIX}{name}' needs", "blackjax", "blackjax") from None

    found = getattr(blackjax, name, None)
    usable = [n for n in dir(blackjax) if hasattr(getattr(blackjax, n), "build_kernel")]
    if found is None or not hasattr(found, "init") or not hasattr(found, "build_kernel"):
        raise FeelgoodError(
            f"'{_PREFIX}{name}' is not a BlackJAX kernel: {did_you_mean(name, usable)}"
        )
    try:
        arguments = inspect.signature(found.build_kernel()).parameters
        init_arguments = list(inspect.signature(found.init).parameters)
    except TypeError as error:
        raise FeelgoodError(
            f"'{_PREFIX}{name}' does not fit: its build_kernel needs arguments ({error}); "
            f"use for example {_PREFIX}nuts."
        ) from None
    extra = [a for a in arguments.values() if a.name not in ("rng_key", "state", "logdensity_fn")]
    strange = [a.name for a in extra if a.default is a.empty and a.name not in SUPPLIED]
    strange += [a for a in init_arguments[2:] if a not in INIT_KEYS]
    if strange or init_arguments[:2] != ["position", "logdensity_fn"]:
        raise FeelgoodError(
            f"'{_PREFIX}{name}' does not fit: it needs {', '.join(strange) or 'another init'}, "
            f"and only {', '.join(SUPPLIED)} can be supplied; use for example {_PREFIX}nuts."
        )
    return _Kernel(
        name=name,
        init=found.init,
        build_kernel=found.build_kernel,
        wants=tuple(a.name for a in extra if a.name in SUPPLIED),
        wants_key=next((a for a in init_arguments[2:]), None),
    )


class BlackjaxThompson(GibbsPolicy):
    """Thompson sampling from π ∝ exp(−βL) with a BlackJAX kernel, written for one chain.

    The kernel sees coordinates θ√(βλ), with λ the curvature of their block. There the target's
    curvature is at most 1, and one step size serves every kernel and every scale of the data. It
    is initialised anew every round, at the last position, because the data have grown.
    """

    kernel: str = eqx.field(static=True, kw_only=True)
    bonus: FeelGood | None = eqx.field(kw_only=True, default=None)
    step: Number = setting(0.5, "step size, in units of the curvature", above=0.0, high=1e3)
    steps: int = setting(5, "kernel steps per round", low=1, high=10_000)
    leapfrog: int = setting(5, "integration steps, where the kernel takes them", low=1, high=1000)

    def _energy(self, spec: Spec, scales: Scales | None = None) -> Energy:
        law = self.coefficients(spec, scales)
        likelihood = loss_for(self.likelihood, spec)
        bonus = None
        if self.bonus is not None:
            bonus = FullPass(bonus=on_scores(self.bonus, likelihood), spec=spec)
        return Energy(eta=law.eta, rho=law.rho, bonus=bonus, likelihood=likelihood, spec=spec)

    def hints(self, spec: Spec) -> Hints:
        return Hints(
            company="none",
            linear=True,
            target=self.linear_target(spec, self.bonus),
            matched=functools.partial(self.matched, spec),
        )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw="key", choose=0)

    def init(self, key: Key[Array, ""], spec: Spec) -> BlackjaxState:
        scales = self.first_scales(spec)
        energy = self._energy(spec, scales)
        rows = None
        if energy.needs_contexts or energy.needs_played:
            rows = Rows.empty(spec, all_arms=energy.needs_contexts, played=energy.needs_played)
        return BlackjaxState(
            data=Data(stats=Stats.empty(spec), rows=rows, count=jnp.zeros((), jnp.int32)),
            theta=jax.random.normal(key, (spec.dim, spec.blocks)),
            acceptance=jnp.ones(()),
            scales=scales,
            spec=spec,
        )

    def reserve(self, state: BlackjaxState, rounds: int) -> BlackjaxState:
        return dataclasses.replace(state, data=state.data.reserve(rounds))

    def draw(self, noise: Key[Array, ""], state: BlackjaxState) -> BlackjaxState:
        kernel = find_kernel(self.kernel)
        law = self.coefficients(state.spec, state.scales)
        energy = self._energy(state.spec, state.scales)
        target = LinearModelTarget.of(energy, state.data, state.theta)
        shape = state.theta.shape

        curvature = law.beta * energy.curvature(state.data.stats)
        scale = jnp.broadcast_to(1.0 / jnp.sqrt(curvature), shape)

        def logdensity(scaled: Float[Array, " parameters"]) -> Float[Array, ""]:
            # The energy gives its own gradient; this carries it to BlackJAX's autodiff.
            here = lax.stop_gradient(scaled)
            theta = here.reshape(shape) * scale
            value, gradient, _ = target.evaluate(theta, (), jnp.zeros((0,)))
            value, slope = lax.stop_gradient((value, (gradient * scale).reshape(-1)))
            return -law.beta * (value + jnp.sum(slope * (scaled - here)))

        supplies: dict[str, Any] = {
            "step_size": self.step,
            "inverse_mass_matrix": jnp.ones(state.spec.parameters),
            "num_integration_steps": self.leapfrog,
            "L": jnp.sqrt(1.0 * state.spec.parameters),
        }
        arguments = {name: supplies[name] for name in kernel.wants}
        start_key, *step_keys = jax.random.split(noise, self.steps + 1)
        start_arguments = {kernel.wants_key: start_key} if kernel.wants_key else {}
        chain = kernel.init((state.theta / scale).reshape(-1), logdensity, **start_arguments)
        one_step = kernel.build_kernel()

        def move(chain: Any, key: Key[Array, ""]) -> tuple[Any, Array]:
            chain, info = one_step(key, chain, logdensity_fn=logdensity, **arguments)
            return chain, jnp.asarray(getattr(info, "acceptance_rate", 1.0), jnp.float32)

        chain, acceptance = lax.scan(move, chain, jnp.stack(step_keys))
        theta = chain.position.reshape(shape) * scale
        return dataclasses.replace(state, theta=theta, acceptance=acceptance.mean())

    def choose(
        self,
        noise: None,
        state: BlackjaxState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        del noise
        return lanes.argmax(models.scores(state.spec, state.theta, context), allowed)

    def update(
        self,
        state: BlackjaxState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> BlackjaxState:
        x, block = models.played(state.spec, context, arm)
        seen = linear_reward(loss_for(self.likelihood, state.spec), reward)
        data = state.data.add(context, x, block, arm, reward, seen)
        theta, old, model = data.unless_lost(state.theta), state.scales, self.scale_model()
        scales = old
        if old is not None and model is not None:
            scales, _ = model.learn(old, data.stats, data.count, seen)
            theta = started(theta, old, scales)
        return dataclasses.replace(state, data=data, theta=theta, scales=scales)

    def report(self, state: BlackjaxState) -> Report:
        return Report(
            finite=jnp.isfinite(jnp.sum(state.theta)),
            health={"acceptance": state.acceptance},
            parameters=state.theta.reshape(-1),
        )


def _parse(name: str) -> Entry[Policy] | None:
    """`blackjax:KERNEL`; an error for a kernel that does not exist or does not fit."""
    if not name.startswith(_PREFIX):
        return None
    kernel = name.removeprefix(_PREFIX)
    find_kernel(kernel)
    bonus_rules = settings_of(FeelGood)
    # No bonus unless it is asked for.
    bonus_rules["lam"] = type(bonus_rules["lam"])(**{**vars(bonus_rules["lam"]), "default": 0.0})

    def make(values: Mapping[str, Any]) -> Policy:
        own = {k: v for k, v in values.items() if k not in bonus_rules}
        bonus = weighted_bonus(FeelGood, values)
        return BlackjaxThompson(kernel=kernel, bonus=bonus, **own)

    return Entry(
        name=name,
        doc=f"Thompson sampling by BlackJAX's {kernel}.",
        settings={**settings_of(BlackjaxThompson), **bonus_rules},
        make=make,
    )


AGENTS.add(
    Family(
        label="BlackJAX Thompson sampling",
        doc="blackjax:KERNEL",
        parse=_parse,
        names=(),
        more_names=tuple(_PREFIX + kernel for kernel in LISTED_KERNELS),
        family="Thompson sampling by MCMC",
    )
)
