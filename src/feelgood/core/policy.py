"""The protocol of agents, and the table they register in.

A round of one chain is always the same four calls, in a compiled run of many chains, in one live
decision and in the analysis of a posterior:

    state = policy.draw(noise, state)             # new parameters, if the agent draws any
    arm = policy.choose(noise, state, context)
    state = policy.update(state, context, arm, reward)
    report = policy.report(state)
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.errors import FeelgoodError
from feelgood.core.registry import Registry
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import LinearTarget, Spec

#: Random numbers that a call takes: a key, or so many standard normals; 0: none.
Amount: TypeAlias = Literal["key"] | int


class Needs(NamedTuple):
    """The random numbers of one round.

    Where an amount is a number, the engine draws those of many rounds at once and passes them on
    as an array `[amount, *lanes]`. That is several times as fast as drawing a few in every round.
    Where it is 0, the call gets None.
    """

    draw: Amount = 0
    choose: Amount = "key"


class Report(NamedTuple):
    """What an agent says of its state."""

    #: Whether the chain is sound. From the round on in which it is not, it counts as diverged.
    finite: Bool[Array, "*lanes"]
    #: Diagnostics of the latest round, recorded along the run.
    health: dict[str, Float[Array, "*lanes"]] = {}  # noqa: RUF012  (nobody writes to it)
    #: The parameters that the latest `draw` drew; None: the agent draws none.
    parameters: Float[Array, "parameters *lanes"] | None = None


class Hints(NamedTuple):
    """What the engine may know of an agent to run it well, and the analysis to judge it.

    No result depends on a hint, but for the agent's own word on its target.
    """

    #: "one": written for one chain, and lifted with `vmap`. "chains first": the same, and its
    #: matrix products want the chains on the leading axis. "lanes": takes the lanes itself.
    layout: Literal["one", "chains first", "lanes"] = "one"
    #: Which chains a CPU plays best by one program: any, those of one seed, or none beside one.
    company: Literal["any", "seed", "none"] = "any"
    #: Whether a round costs more with more room: where passes read the whole store, it grows.
    grows: bool = False
    #: Bytes that one chain takes besides its history, and per remembered round; None: the engine
    #: estimates them from the state.
    memory: tuple[int, int] | None = None
    #: Whether repeated draws are independent of each other: there is no chain to diagnose.
    exact_draws: bool = False
    #: The law that the parameters should follow; None: the agent does not say.
    target: LinearTarget | None = None
    #: From the rewards' standard deviation and the prior's precision to the settings with which
    #: the target is the exact posterior; None: the agent's own settings are right.
    matched: Callable[[float, float], dict[str, float]] | None = None
    #: From a state before `draw`, a context and, where `choose` takes a mask, that mask to the
    #: probability with which the round plays each arm, `[arms, *lanes]`, over `draw` and `choose`
    #: together. None: the rule has no such formula.
    pmf: Callable[..., Float[Array, "arms *lanes"]] | None = None
    #: Whether `choose` plays the largest score x·θ of `Report.parameters`, laid out [dim, blocks].
    linear: bool = False
    #: Whether all that is learned of a round is x xᵀ, r x and r² of the played arm: then √w times
    #: x and r count w times.
    sums: bool = False
    #: From a state and a share to the state in which every past reward counts that share of what it
    #: did, with all factorisations made anew. Agents without `sums` are given 1 only.
    rebuilt: Callable[[Any, Float[Array, ""]], Any] | None = None
    #: From a state after `draw` and a context to the law of the scores whose largest is played,
    #: given all of the round's random numbers but those that the scores were drawn with. What was
    #: drawn with them, such as θ, is not looked at. None: that law is not normal or Student-t.
    scores: Callable[[Any, Float[Array, "..."]], ScoreLaw] | None = None


class Policy(eqx.Module):
    """An agent: pure functions on a state that is a pytree of arrays.

    `init`, `choose` and `update` are all that an agent needs. Arrays are those of one chain unless
    `hints` says that the agent takes lanes; then every array may have a trailing axis of chains
    (`feelgood.numerics.lanes`), which is `spec.lanes`.

    Every float setting is an array leaf, so a sweep over settings is one compiled program.

    **Example:**

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import feelgood
    >>> agent, spec = feelgood.AGENTS["lints"].build(), feelgood.Spec(arms=3, dim=2)
    >>> agent.needs(spec), agent.hints(spec).exact_draws  # 15 normal numbers for each draw
    (Needs(draw=15, choose=0), True)
    >>> state = agent.reserve(agent.init(jax.random.key(0), spec), rounds=10)
    >>> state = agent.draw(jnp.linspace(-1.0, 1.0, 15), state)  # a round: draw, choose, update
    >>> arm = agent.choose(None, state, x := jnp.array([1.0, 0.5]))
    >>> state = agent.update(state, x, arm, jnp.array(1.0))
    >>> isinstance(agent, feelgood.Policy), bool(agent.report(state).finite)
    (True, True)
    """

    @abstractmethod
    def init(self, key: Any, spec: Spec) -> Any:
        """The state before the first round."""

    def draw(self, noise: Any, state: Any) -> Any:
        """The state with newly drawn parameters; called at the start of every round.

        It may be called again with the same data: draws are then repeated.
        """
        del noise
        return state

    @abstractmethod
    def choose(self, noise: Any, state: Any, context: Float[Array, "..."]) -> Int[Array, "*lanes"]:
        """The arm to play. One that does not exist says that the chain has diverged.

        An agent may take a fourth argument, `allowed`: None, or which arms there are in this round,
        `[arms, *lanes]`. It then chooses as if there were no others.
        """

    @abstractmethod
    def update(
        self,
        state: Any,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Any:
        """Learn from one observed reward."""

    def report(self, state: Any) -> Report:
        """What the state looks like; by default it is sound while all its numbers are finite."""
        numbers = [x for x in jax.tree.leaves(state) if eqx.is_inexact_array(x)]
        finite = [jnp.all(jnp.isfinite(x)) for x in numbers]
        return Report(finite=jnp.all(jnp.array([True, *finite])))

    def reserve(self, state: Any, rounds: int) -> Any:
        """The state with room for `rounds` observations; called between blocks of rounds."""
        del rounds
        return state

    def needs(self, spec: Spec) -> Needs:
        """The random numbers of a round; by default a key for `choose`, and one for `draw`.

        All settings of a sweep share them, so they depend on no number setting.
        """
        del spec
        draws = type(self).draw is not Policy.draw
        return Needs(draw="key" if draws else 0)

    def hints(self, spec: Spec) -> Hints:
        """What helps to run and to judge the agent.

        An agent that cannot play this problem raises a `FeelgoodError` here: what it lacks, and
        the remedy.
        """
        del spec
        return Hints()


def refusal(policy: Policy, spec: Spec) -> str | None:
    """Why an agent cannot play this problem, in its own words; None: it can."""
    try:
        policy.hints(spec)
    except FeelgoodError as error:
        return str(error)
    return None


def require_playable(policy: Policy, spec: Spec, agent: str, problem: str) -> None:
    """Refuse, by their names, an agent and a problem that do not go together."""
    why = refusal(policy, spec)
    if why is not None:
        raise FeelgoodError(f"{agent} cannot play {problem}: {why}")


AGENTS: Registry[Policy] = Registry("agent", "feelgood.agents", "feelgood.released")
