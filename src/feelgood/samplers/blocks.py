"""What all kernels share: the protocol, the metric, the Metropolis filter, the inner loop.

A kernel has three parts, as in BlackJAX: a configuration (`Kernel`), a chain (a NamedTuple with
`theta` and `memo`, carried from round to round), and an `Info` per step. Whatever a chain caches of
the target (a value, a gradient) is stale once the data have grown. `refresh` recomputes it; the
inner loop calls it at the start of every round.

**Metric.** With a preconditioner V⁻¹ = BᵀB, the same B enters the drift, the noise and the
Metropolis ratio. Kernels are written in whitened coordinates: `whiten(g)` is Bg and `unwhiten(q)`
is Bᵀq, so V⁻¹g = unwhiten(whiten(g)), and unwhiten(ξ) has covariance V⁻¹. Without a preconditioner
both are the identity. The law of a kernel is right for any B. Rounding errors in B only make a step
a little longer or shorter.
"""

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.numerics.generator import normals_from
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.targets.sums import Theta, Value
from feelgood.targets.target import Target

#: A proposal whose energy is this much higher (in units of temperature) counts as a divergence.
DIVERGENCE = 1000.0


class Tuning(eqx.Module):
    """Step size (one, or one per block), inverse temperature and preconditioner of a round.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from feelgood.samplers.blocks import Tuning
    >>> tuning = Tuning(step=jnp.array(0.1), beta=jnp.array(1.0))
    >>> tuning.whiten(jnp.ones((2, 1))).shape  # without a preconditioner, as it was
    (2, 1)
    """

    step: Float[Array, "..."]
    beta: Number
    #: B of the metric; None: no preconditioner.
    root: Float[Array, "dim dim blocks *lanes"] | None = None
    #: The curvature that the step is measured in; None where the step is absolute.
    curvature: Float[Array, "..."] | None = None

    def whiten(self, gradient: Theta) -> Theta:
        """B g."""
        return gradient if self.root is None else lanes.matvec(self.root, gradient)

    def unwhiten(self, white: Theta) -> Theta:
        """Bᵀ q."""
        return white if self.root is None else lanes.matvec(jnp.swapaxes(self.root, 0, 1), white)


class Noise(NamedTuple):
    """The random numbers of one step: `normal` in the shape of θ, `uniform` as many as needed.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from feelgood.samplers.blocks import Noise, split_uniforms
    >>> noise = Noise(normal=jnp.zeros((2, 3)), uniform=jnp.array([0.1, 0.9]))
    >>> [part.shape for part in split_uniforms(noise, 1)]  # the kernel's, and the target's
    [(1,), (1,)]
    """

    normal: Theta
    uniform: Float[Array, "draws *lanes"]


class Info(NamedTuple):
    """What one step did. `acceptance` is a probability; 1 for kernels without a filter.

    **Example:**

    >>> from feelgood.samplers.blocks import Info
    >>> Info(acceptance=0.8)
    Info(acceptance=0.8, diverged=0.0)
    """

    acceptance: Value | float = 1.0
    diverged: Value | float = 0.0


class Kernel(eqx.Module):
    """A Markov kernel for π ∝ exp(−βL).

    **Example:**

    >>> import feelgood
    >>> from feelgood.samplers.blocks import KERNELS, Kernel
    >>> kernel = feelgood.AGENTS["malats"].build().kernel
    >>> isinstance(kernel, Kernel), kernel.adjusted, kernel.uniforms
    (True, True, 1)
    """

    #: Whether the kernel leaves π itself invariant (a Metropolis filter).
    adjusted: ClassVar[bool] = False
    #: Whether it can be preconditioned.
    preconditionable: ClassVar[bool] = True
    #: Whether it proposes jumps between the modes of a bonus, which only linear models have.
    jumps: ClassVar[bool] = False
    #: Whether it can follow a cheap force, see `Target.follow_surrogate`.
    follows: ClassVar[bool] = False
    #: What the name of the kernel means, for `feelgood list`.
    title: ClassVar[str] = ""
    #: The step, in units of the curvature, that suits most problems, and that for a network.
    default_step: ClassVar[float] = 0.5
    network_step: ClassVar[float] = 0.05
    #: The first with a preconditioner, where another one is better.
    preconditioned_step: ClassVar[float | None] = None

    @property
    def uniforms(self) -> int:
        """Uniform random numbers per step, besides those that the target uses."""
        return 0

    @property
    def batch_rounds(self) -> int:
        """Past rounds in the random batch of a step; 0: none."""
        return 0

    @property
    def gradients_per_step(self) -> float:
        """Evaluations of ∇L (or of as much data) that one step costs."""
        return 1.0

    @property
    def warmup(self) -> int:
        """Steps of plain gradient descent at the start of every round."""
        return 0

    def step_size(
        self, step: Number, curvature: Float[Array, "..."], beta: Number
    ) -> Float[Array, "..."]:
        """The step size in units of the target's curvature λ, a bound of ∇²L by block.

        A first-order kernel takes h = step / λ and is stable below 2.
        """
        del beta
        return step / curvature

    def without_bonus(self) -> "Kernel":
        """The kernel for a target that has no bonus: this one, unless it is made for a bonus."""
        return self

    @abstractmethod
    def init(self, theta: Theta, memo: Any) -> Any:
        """The chain before the first round."""

    @abstractmethod
    def refresh(self, chain: Any, target: Target, tuning: Tuning) -> Any:
        """Recompute what the chain caches of the target: the data have grown."""

    @abstractmethod
    def step(self, noise: Noise, chain: Any, target: Target, tuning: Tuning) -> tuple[Any, Info]:
        """One transition."""

    def descend(self, chain: Any, tuning: Tuning) -> Any:
        """The chain moved down its gradient, which `refresh` then renews; for a warm-up."""
        raise NotImplementedError


#: The kernels by the two parts of an agent's name that tell them apart: ("u", "lmc") is that of
#: `ulmcts`, with or without a bonus between the two.
KERNELS: dict[tuple[str, str], type[Kernel]] = {}
#: What the first part means, for messages.
VARIANTS: dict[str, str] = {}


def register_kernel(
    name: str, variant: str = "", meaning: str = ""
) -> Callable[[type[Kernel]], type[Kernel]]:
    """Class decorator: the kernel of agents `[variant][bonus]{name}ts`.

    `meaning` says in a few words, in the plural, what the variant is.

    **Example:**

    >>> from feelgood import AGENTS
    >>> from feelgood.samplers.blocks import register_kernel
    >>> from feelgood.samplers.mala import MALA
    >>> @register_kernel("careful")
    ... class Careful(MALA):
    ...     title = "MALA with small steps"
    ...     default_step = 0.1
    >>> "carefults" in AGENTS, "fgcarefults" in AGENTS
    (True, True)
    """

    def keep(kernel: type[Kernel]) -> type[Kernel]:
        KERNELS[variant, name] = kernel
        if variant:
            VARIANTS[variant] = meaning
        return kernel

    return keep


def split_uniforms(
    noise: Noise, kernel_draws: int
) -> tuple[Float[Array, "draws *lanes"], Float[Array, "more *lanes"]]:
    """The kernel's uniforms and the target's.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from feelgood.samplers.blocks import Noise, split_uniforms
    >>> own, rest = split_uniforms(Noise(jnp.zeros((2, 3)), jnp.array([0.25, 0.5, 0.75])), 1)
    >>> own.tolist(), rest.tolist()
    ([0.25], [0.5, 0.75])
    """
    return noise.uniform[:kernel_draws], noise.uniform[kernel_draws:]


def accept(
    uniform: Value, log_ratio: Value
) -> tuple[Bool[Array, "*lanes"], Value, Bool[Array, "*lanes"]]:
    """The Metropolis filter: (accepted, probability, diverged); a NaN is never accepted."""
    ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    probability = jnp.exp(jnp.minimum(ratio, 0.0))
    return uniform < probability, probability, ratio < -DIVERGENCE


def square(white: Theta) -> Value:
    """‖q‖² of each chain.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from feelgood.samplers.blocks import square
    >>> float(square(jnp.array([[3.0], [4.0]])))
    25.0
    """
    return jnp.sum(white * white, axis=(0, 1))


class RoundInfo(NamedTuple):
    """What the steps of one round did, summed up."""

    acceptance: Value
    divergences: Value
    gradients: Value

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> "RoundInfo":
        """Before the first round."""
        zeros = jnp.zeros(shape)
        return cls(acceptance=zeros, divergences=zeros, gradients=zeros)

    def health(self, step: Value, adjusted: bool) -> dict[str, Value]:
        """What is recorded of a round, together with its step size."""
        out = {"step": step, "gradients": self.gradients}
        if adjusted:
            out |= {"acceptance": self.acceptance, "divergences": self.divergences}
        return out


def _warmed_up(kernel: Kernel, chain: Any, target: Target, tuning: Tuning) -> Any:
    """The chain with what it caches of the target, after the descent that the kernel asks for."""
    if not kernel.warmup:
        return kernel.refresh(chain, target, tuning)

    def descended(i: Array, chain: Any) -> Any:
        """A descent, in all passes but the first, and the target there: compiled only once."""
        moved = kernel.descend(chain, tuning).theta
        chain = chain._replace(theta=jnp.where(i > 0, moved, chain.theta))
        return kernel.refresh(chain, target, tuning)

    return lax.fori_loop(0, kernel.warmup + 1, descended, chain)


def run_steps(
    key: AnyKey,
    kernel: Kernel,
    chain: Any,
    target: Target,
    tuning: Tuning,
    steps: int,
    unroll: int = 1,
    ahead: bool = True,
) -> tuple[Any, RoundInfo]:
    """A round: refresh what is stale, warm up, then `steps` transitions in all.

    `unroll` of them are written out in a pass of the loop.

    All random numbers of the round are drawn as two flat blocks and sliced in the loop: drawing
    inside it, or in a many-dimensional array, is several times slower. For a single chain, normals
    may be drawn step by step (`ahead`): the same ones. On an accelerator that is one kernel with
    the move, and spares memory.
    """
    moves = steps - kernel.warmup
    shape, own = chain.theta.shape, fold_in(key, 0)
    normals: Any = own
    if ahead:
        normals = lanes.normal_by_seed(own, moves * shape[0] * shape[1])
    draws = kernel.uniforms + target.uniforms
    uniforms = lanes.uniform_by_seed(fold_in(key, 1), moves * draws) if draws else None
    transitions = functools.partial(_transitions, moves=moves, unroll=unroll)
    return target.carry_out(transitions, chain, kernel, tuning, normals, uniforms)


def _transitions(
    target: Target,
    chain: Any,
    kernel: Kernel,
    tuning: Tuning,
    normals: Float[Array, "normals *seeds"] | Key[Array, ""],
    uniforms: Float[Array, "uniforms *seeds"] | None,
    *,
    moves: int,
    unroll: int,
) -> tuple[Any, RoundInfo]:
    """`run_steps` with these random numbers, or a key of the normals."""
    shape = chain.theta.shape
    size, draws = shape[0] * shape[1], kernel.uniforms + target.uniforms
    lane_shape = shape[2:]
    ahead = not jnp.issubdtype(normals.dtype, jax.dtypes.prng_key)
    if ahead:
        normals = lanes.for_chains(normals, lane_shape)
    if uniforms is not None:
        uniforms = lanes.for_chains(uniforms, lane_shape)
    chain = target.widened(chain)
    chain = chain._replace(memo=target.begin(chain.memo, chain.theta))
    chain = _warmed_up(kernel, chain, target, tuning)

    def one(i: Array, carry: tuple[Any, Value, Value]) -> tuple[Any, Value, Value]:
        chain, acceptance, divergences = carry
        if ahead:
            normal = lax.dynamic_slice_in_dim(normals, i * size, size)
        else:
            normal = normals_from(normals, i * size, size)
        if uniforms is None:
            uniform = jnp.zeros((0, *lane_shape))
        else:
            uniform = lax.dynamic_slice_in_dim(uniforms, i * draws, draws)
        noise = Noise(normal=target.widened(normal.reshape(shape)), uniform=uniform)
        chain, info = kernel.step(noise, chain, target.at(i), tuning)
        if not kernel.adjusted:
            return chain, acceptance, divergences
        return chain, acceptance + info.acceptance, divergences + info.diverged

    zeros = jnp.zeros(lane_shape)
    chain, acceptance, divergences = lax.fori_loop(
        0, moves, one, (chain, zeros, zeros), unroll=unroll
    )
    chain = target.narrowed(chain._replace(memo=target.end(chain.memo)))
    gradients = 1.0 * kernel.warmup + moves * kernel.gradients_per_step
    return chain, RoundInfo(
        acceptance=acceptance / moves if kernel.adjusted else zeros + 1.0,
        divergences=divergences,
        gradients=jnp.full(lane_shape, gradients),
    )
