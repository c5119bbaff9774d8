"""The two things a run is made of, a testbed and a policy, and the tables they register in."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key

from feelgood.core.registry import Registry
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import generator
from feelgood.numerics.lanes import AnyKey


class Testbed(eqx.Module):
    """A contextual bandit problem, written for one seed.

    `init` draws what stays fixed in a run (the true parameters), `context` what an agent sees in
    round `t`, `mean_rewards` the expected reward of every arm there, and `rewards` one noisy
    reward of **every** arm: all agents then meet the same contexts and the same luck. The engine
    lifts these functions over rounds and seeds.

    The luck of a round may be one number for all its arms. Only one of the rewards is ever seen,
    so no agent's law changes, and agents that play different arms are compared more closely.
    """

    __test__: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What results call it; a testbed that is built by its name is called by that."""
        return type(self).__name__

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Shape of the problem."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The usual horizon."""

    @abstractmethod
    def init(self, key: Key[Array, ""]) -> Any:
        """What stays fixed in a run."""

    @abstractmethod
    def context(self, key: Key[Array, ""], state: Any, t: Int[Array, ""]) -> Float[Array, "..."]:
        """The context of round `t`, of shape `spec.context_shape`."""

    @abstractmethod
    def mean_rewards(
        self, state: Any, context: Float[Array, "..."], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        """Expected reward of each arm in this context of round `t`."""

    @abstractmethod
    def rewards(
        self, key: Key[Array, ""], state: Any, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        """One noisy reward of each arm, given the expected ones."""

    def truth(self, state: Any) -> Float[Array, "..."] | None:
        """The true parameters θ of a linear model: `dim` numbers for every block of parameters.

        An array of the state as it is there. A testbed that returns one says that the expected
        reward of an arm is θ · x, or its logistic function where `spec.rewards` is "bernoulli".
        None: no linear model is right here.
        """
        del state
        return None

    def reward_noise(self) -> Number | None:
        """Standard deviation of the rewards' normal noise; None: their noise is something else."""
        return None


class Policy(eqx.Module):
    """An agent: pure functions on a state that is a pytree of arrays.

    The same three functions serve a compiled run of many chains and one live decision:

    - a policy with `laned = True` accepts trailing lane axes on every array (`numerics.lanes`);
    - any other policy is written for one chain, and the engine lifts it with `vmap`.

    Every float setting is an array leaf, so a sweep over settings is one compiled program.
    """

    laned: ClassVar[bool] = False
    #: Whether, once lifted, the state's leading axis is the chains: what matrix products want.
    chains_first: ClassVar[bool] = False
    #: Whether redraws are independent of each other: there is no chain to diagnose.
    exact_draws: ClassVar[bool] = False

    @abstractmethod
    def init(self, key: AnyKey, spec: Spec, shape: tuple[int, ...] = ()) -> Any:
        """The state before the first round."""

    @abstractmethod
    def act(
        self, key: AnyKey, state: Any, context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*lanes"], Any]:
        """Choose an arm. One that does not exist says that the chain has diverged."""

    def noise(self, key: Key[Array, ""], spec: Spec) -> Float[Array, " numbers"]:
        """All random numbers of one round of one chain. Optional, together with `decide`.

        A policy whose numbers do not depend on its state may define both. The engine then draws
        the numbers of many rounds at once, several times faster than a few at a time, and calls
        `decide` instead of `act`. The key is the one `act` would get; so must the decision be. All
        settings of a sweep share these numbers, so they depend on no number setting.
        """
        raise NotImplementedError

    def decide(
        self, noise: Float[Array, "numbers *lanes"], state: Any, context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*lanes"], Any]:
        """As `act`, with the round's `noise` drawn already."""
        raise NotImplementedError

    @abstractmethod
    def update(
        self,
        state: Any,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Any:
        """Learn from one observed reward."""

    @abstractmethod
    def probe(self, state: Any) -> Float[Array, "*lanes"]:
        """A number that stops being finite when the chain has diverged."""

    def chains_per_program(self, spec: Spec) -> int | None:
        """How many chains one program should hold on CPU; None: as many as there are."""
        del spec
        return None

    def memory(self, spec: Spec, rounds: int) -> int:
        """Bytes that one chain needs at most: by default three times its state, with room for all.

        A round holds the old state, the new one, and what it computes on the way.
        """

        def last(key: Array) -> Any:
            return self.reserve(self.init(key, spec), rounds)

        leaves = jax.tree.leaves(jax.eval_shape(last, generator.key(0)))
        return 3 * sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)

    def segment_rounds(self, rounds: int, chains: int) -> int | None:
        """The most rounds to play before `reserve` is called again; None: any number."""
        del rounds, chains
        return None

    def reserve(self, state: Any, rounds: int) -> Any:
        """Make room for `rounds` observations; called between blocks of rounds."""
        del rounds
        return state

    def health(self, state: Any) -> dict[str, Float[Array, "*lanes"]]:
        """Diagnostics of the latest round, recorded along the run; empty for exact agents."""
        del state
        return {}

    def redraw(
        self, key: AnyKey, state: Any
    ) -> tuple[Float[Array, "parameters *lanes"], Any] | None:
        """Another draw of the parameters with the same data.

        Agents that draw none leave it as it is here. With `arm_of_draw` the engine calls the two
        instead of `act`, which must come to the same, and repeats the draw at the end of a run.
        """
        del key, state
        return None

    def target(self, spec: Spec) -> LinearTarget | None:
        """The law that draws of `redraw` should follow; None: the agent does not say.

        The measures of the posterior then judge the sampler by it.
        """
        del spec
        return None

    def matched(self, spec: Spec, noise: float, precision: float) -> dict[str, float]:
        """Settings with which the target is the exact posterior; none: the agent's own are right.

        `noise` is the standard deviation of the rewards, N(0, I/`precision`) the prior.
        """
        del spec, noise, precision
        return {}

    def arm_of_draw(self, state: Any, context: Float[Array, "..."]) -> Int[Array, "*lanes"]:
        """The arm that the latest draw of `redraw` plays, in the state that it returned."""
        raise NotImplementedError


AGENTS: Registry[Policy] = Registry("agent", "feelgood.agents")
TESTBEDS: Registry[Testbed] = Registry("testbed", "feelgood.testbeds")
