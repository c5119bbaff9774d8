"""What a kernel sees: an energy bound to the data of one round, whatever the model."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.spec import Number
from feelgood.targets.arm_jumps import Jump
from feelgood.targets.sums import Theta, Value

#: ∇L, or what stands for it, at a point.
Force = Callable[[Theta], Theta]


class Evaluation(NamedTuple):
    """Value and gradient of L at a point, and the evaluator's memo."""

    value: Value
    gradient: Theta
    memo: Any


class Target(eqx.Module):
    """What a kernel sees: an energy bound to the data of one round, whatever the model.

    θ has two mathematical axes, then lanes; `memo` is what evaluations carry along.

    **Example:**

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import feelgood
    >>> from feelgood.targets.energy import LinearModelTarget
    >>> spec = feelgood.Spec(arms=2, dim=1, shared=True)
    >>> agent = feelgood.AGENTS["malats"].build({"eta": 0.5, "rho": 0.5})
    >>> state = agent.init(jax.random.key(0), spec)
    >>> state = agent.update(state, jnp.ones((1, 2)), jnp.array(0), jnp.array(3.0))
    >>> target = LinearModelTarget.of(agent.energy(spec), state.data, origin=jnp.zeros((1, 1)))
    >>> value, gradient, _ = target.evaluate(jnp.ones((1, 1)), None, jnp.zeros(0))
    >>> float(value), float(gradient[0, 0])  # ½(1 − 3)² + ½ − ½ 3², and (1 − 3) + 1
    (-2.0, -1.0)
    """

    energy: eqx.AbstractVar[Any]
    data: eqx.AbstractVar[Any]
    frozen: eqx.AbstractVar[Theta | None]

    @property
    def uniforms(self) -> int:
        """Uniform random numbers that one evaluation uses."""
        return 0

    def at(self, step: Int[Array, ""]) -> "Target":
        """The target of one inner step: the same in all, unless batches are drawn."""
        del step
        return self

    def carry_out(self, steps: Callable[..., Any], chain: Any, *arguments: Any) -> Any:
        """`steps` of this target, the chain and the arguments: the inner steps of a round.

        A target may play each chain by itself: then it has a program of its own, and no lanes.
        """
        return steps(self, chain, *arguments)

    def widened(self, vectors: Any) -> Any:
        """A chain, or noise, in the form in which the steps of a round move it."""
        return vectors

    def narrowed(self, vectors: Any) -> Any:
        """The same in the form that is kept."""
        return vectors

    def begin(self, memo: Any, theta: Theta) -> Any:
        """A round begins at `theta`."""
        del theta
        return memo

    def end(self, memo: Any) -> Any:
        """The round ends: what to keep of the memo."""
        return memo

    @abstractmethod
    def evaluate(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> Evaluation:
        """L(θ) and ∇L(θ)."""

    @abstractmethod
    def value(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        """L(θ) alone."""

    @abstractmethod
    def data_gradient(self, theta: Theta) -> Theta:
        """The part of ∇L that batches estimate, and the prior's, over all data."""

    @abstractmethod
    def batch_change(self, theta: Theta, old: Theta, uniform: Value, size: int) -> Theta:
        """How much that part differs between two points, estimated from a batch.

        Unbiased; the batch is one of consecutive rounds, see `random_batches.random_batch`.
        """

    @abstractmethod
    def with_bonus(
        self,
        theta: Theta,
        memo: Any,
        uniform: Float[Array, "draws *lanes"],
        value: Value,
        gradient: Theta,
    ) -> Evaluation:
        """Add the part of L that batches do not estimate."""

    def follow_surrogate(self, trajectory: Callable[[Force], Any]) -> Any:
        """A trajectory along a cheap force, where `frozen` says that there is one."""
        raise NotImplementedError

    def propose_jump(
        self, theta: Theta, beta: Number, uniform: Float[Array, "draws *lanes"]
    ) -> Jump:
        """A proposal that may change which arm is best in a past round, see `arm_jumps`."""
        raise NotImplementedError

    def value_or_bound(
        self,
        theta: Theta,
        memo: Any,
        uniform: Float[Array, "draws *lanes"],
        suffices: Callable[[Value], Bool[Array, "*lanes"]],
    ) -> tuple[Value, Any]:
        """L(θ), or a bound below it where that `suffices` and is cheaper."""
        del suffices
        return self.value(theta, memo, uniform)
