"""What a bandit problem looks like to an agent, and what can become of a chain."""

import enum
from typing import Any, Literal, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from feelgood.core.errors import FeelgoodError
from feelgood.core.knowledge import Knowledge

Likelihood = Literal["squared", "bernoulli"]
#: A float setting: an array leaf that holds one value, or one per lane in a sweep.
Number = Float[Array, "..."]


class Layout(eqx.Module):
    """How the engine lays out the chains of one program; agents for one chain need not look.

    The engine makes it once, from the device and the number of chains. Nothing below it asks for
    the device.

    **Example:**

    >>> from feelgood import Spec
    >>> from feelgood.core.spec import Layout
    >>> Spec(arms=3, dim=2, layout=Layout(chains=8)).lanes  # the last axis of an agent's arrays
    (8,)
    """

    #: Chains on the last axis of every array; 0: one chain, without that axis.
    chains: int = eqx.field(static=True, default=0)
    #: How many settings of a sweep share each seed's contexts and random numbers.
    settings: int = eqx.field(static=True, default=1)
    #: Whether passes over a history read its whole store under a mask. Otherwise they branch to
    #: the part that is filled, which on an accelerator means waiting for the host.
    reads_all: bool = eqx.field(static=True, default=False)
    #: Inner steps of a network's chain that one pass of the loop writes out.
    unroll: int = eqx.field(static=True, default=1)
    #: How the inner steps of a round are carried out: each operation for all chains ("together"),
    #: or all operations as one program per chain where that can be ("apart"); if not, a pass over
    #: past contexts may be a program. "interpreted" is the latter on any device, slowly.
    steps: Literal["together", "apart", "interpreted"] = eqx.field(static=True, default="together")


class Spec(eqx.Module):
    """Shape of a contextual bandit, and how the chains that play it are laid out.

    Two kinds of context are enough for every testbed of the paper:

    - *disjoint* (`shared=False`): one context `x` of length `dim` for all arms, and each arm
      has parameters of its own. The reward of arm `a` is modelled as `f(θ_a · x)`. This is the
      block feature map `x ⊗ e_a`, which is never built.
    - *shared* (`shared=True`): each arm `a` shows its own context `x_a` of length `dim`, and all
      arms share one parameter vector. The reward is modelled as `f(θ · x_a)`.

    **Example:**

    >>> from feelgood import Spec
    >>> each, shared = Spec(arms=5, dim=4), Spec(arms=5, dim=4, shared=True)
    >>> (each.blocks, each.parameters, each.context_shape), each.lanes
    ((5, 20, (4,)), ())
    >>> shared.blocks, shared.parameters, shared.context_shape
    (1, 4, (4, 5))
    """

    arms: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    shared: bool = eqx.field(static=True, default=False)
    rewards: Likelihood = eqx.field(static=True, default="squared")
    layout: Layout = eqx.field(static=True, default=Layout())
    #: What agents are told of the mean rewards, where that makes their exact law computable.
    known: Knowledge | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.arms < 2:
            raise FeelgoodError(f"a bandit needs at least 2 arms, got arms={self.arms}.")
        if self.dim < 1:
            raise FeelgoodError(f"a context needs at least 1 dimension, got dim={self.dim}.")
        if self.known is not None and self.known.arms != self.arms:
            raise FeelgoodError(
                f"known is about {self.known.arms} arms and the bandit has {self.arms}: "
                "tell of all of them."
            )
        copies = getattr(self.known, "copies", 1)
        if copies < 1 or self.dim % copies:
            raise FeelgoodError(
                f"known has copies = {copies} and a context {self.dim} dimensions: use a whole "
                "number that divides them."
            )

    @property
    def lanes(self) -> tuple[int, ...]:
        """The trailing axes of every array of an agent: none for one chain."""
        return (self.layout.chains,) if self.layout.chains else ()

    @property
    def blocks(self) -> int:
        """How many parameter vectors a linear model has."""
        return 1 if self.shared else self.arms

    @property
    def parameters(self) -> int:
        """Dimension `d` of a linear model's parameter, as the paper counts it."""
        return self.blocks * self.dim

    @property
    def context_shape(self) -> tuple[int, ...]:
        """Shape of one context: the dimension leads, as everywhere (see `numerics.lanes`)."""
        return (self.dim, self.arms) if self.shared else (self.dim,)


class LinearTarget(NamedTuple):
    """The law of a linear model's parameters that an agent says its draws follow.

    With squared loss: exp(−½[weight · Σ (f_θ − r)² + prior · ‖θ‖²]), a normal law; times
    exp(beta · λ Σ φ(max_a f_θ)) where there is a feel-good bonus. Other losses have no closed form.
    """

    #: None: learned along the run, and not known beforehand.
    weight: float | None
    prior: float | None
    loss: Likelihood = "squared"
    #: A `feelgood.targets.bonus.FeelGood`, and the inverse temperature that it is weighted with.
    bonus: Any = None
    beta: float = 1.0


class Status(enum.Enum):
    """What became of one chain. Failures are values: the other chains go on.

    **Example:**

    >>> import feelgood
    >>> result = feelgood.run("linear-20", "uniform", rounds=20, seeds=1)
    >>> result[0].statuses[0] is feelgood.Status.OK, feelgood.Status.OK.message
    (True, 'finished')
    """

    OK = "finished"
    DIVERGED = "parameters or scores became infinite or NaN"

    @property
    def message(self) -> str:
        """A sentence fragment for tables and reports."""
        return self.value
