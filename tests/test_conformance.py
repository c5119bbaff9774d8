"""What every registered agent and testbed must do, because it is registered.

A new agent or testbed is checked here without being named anywhere.
"""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import chosen, covering, slow_but
from playable import problems_of
from registered import built
from toys import Coins

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError, Policy, Spec, setting
from feelgood.agents import LinUCB, Uniform
from feelgood.api import check_agents, check_settings, check_testbeds, checking
from feelgood.api.agent_case import PROBLEMS, AgentCase
from feelgood.api.check_agent_kinds import check_agent_kinds
from feelgood.api.check_pmf import check_pmf
from feelgood.api.check_scores import check_scores
from feelgood.core.policy import Hints, Needs, Report
from feelgood.core.registry import Entry
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Number
from feelgood.engine.environment import environment
from feelgood.numerics import lanes
from feelgood.testbeds import Linear, Wheel

NAMES = [name for family in AGENTS.families() for name in (*family.names, *family.more_names)]
#: Of each family the plainest name; the others are made of the same parts.
PLAINEST = [min((*f.names, *f.more_names), key=len) for f in AGENTS.families()]
HEADING = {name: f.family for f in AGENTS.families() for name in (*f.names, *f.more_names)}


def kind(name: str) -> object:
    """Agents of one kind share most of their code; of networks those with a common base."""
    return type(AGENTS[name].build()).__mro__[1] if "neural" in name else HEADING[name]


#: Of every kind the first agent; kernels of other packages and released agents have quick tests of
#: their own, and what is special to an agent has a quick proof.
COMPILED = chosen(
    [name for name in PLAINEST if ":" not in name and not name.startswith("released-")],
    lambda name: {kind(name)},
)


#: Every name with the problems that it is checked on; the first one is that of single checks.
PLAYS = {name: problems_of(name) for name in NAMES}


def agents() -> list[Any]:
    """Every name. Quick: one agent of every kind."""
    return slow_but(COMPILED, NAMES)


def plays() -> list[Any]:
    """Every name on every problem. Quick: the quick agents, on one problem each.

    Each problem is played by a network and by an agent without one: what these do with contexts is
    written once for all of them.
    """
    every = [(name, problem) for name in NAMES for problem in PLAYS[name]]

    def features(name: str, problem: str) -> set[object]:
        return {name, (problem, "neural" in name)}

    return slow_but(chosen([pair for pair in every if pair[0] in COMPILED], features), every)


EVERY_AGENT = pytest.mark.parametrize("name", agents())
EVERY_PLAY = pytest.mark.parametrize(("name", "problem"), plays())
TESTBED_NAMES = TESTBEDS.names(more=True)
FAMILY_OF = {
    name: family.label
    for family in TESTBEDS.families()
    for name in (*family.names, *family.more_names)
}
EVERY_ENTRY = pytest.mark.parametrize(
    "entry",
    [registry[name] for registry in (AGENTS, TESTBEDS) for name in registry.names(more=True)],
    ids=lambda entry: entry.name,
)


# ---- agents ---------------------------------------------------------------------------------


@functools.cache
def case(name: str) -> AgentCase:
    """Its programs are shared by the tests of an agent."""
    return AgentCase(AGENTS[name])


@pytest.mark.parametrize(
    ("name", "problem"),
    slow_but(
        [(name, PLAYS[name][0]) for name in PLAINEST],
        [(name, problem) for name in NAMES for problem in PLAYS[name]],
    ),
)
def test_shapes_and_kinds(name: str, problem: str) -> None:
    """Of what every function returns; nothing is compiled, so that every family is quick."""
    assert list(check_agent_kinds(case(name), problem)) == []


@EVERY_PLAY
def test_some_rounds_are_played(name: str, problem: str) -> None:
    assert list(check_agents.check_play(case(name), problem)) == []


@EVERY_PLAY
def test_a_live_decision_is_that_of_the_same_chain_among_lanes(name: str, problem: str) -> None:
    assert list(check_agents.check_live(case(name), problem)) == []


@EVERY_PLAY
def test_chains_do_not_touch_each_other(name: str, problem: str) -> None:
    """The same program with other neighbours: bit for bit the same chain."""
    assert list(check_agents.check_apart(case(name), problem)) == []


@EVERY_PLAY
def test_action_probabilities_are_those_of_the_choices(name: str, problem: str) -> None:
    """Exact binomial tests at 1e-6, for agents that say them."""
    assert list(check_pmf(case(name), problem)) == []
    assert list(check_scores(case(name), problem)) == []


@EVERY_AGENT
def test_functions_are_pure(name: str) -> None:
    assert list(check_agents.check_pure(case(name), PLAYS[name][0])) == []


@pytest.mark.parametrize("name", AGENTS.names(more=True))
def test_number_settings_are_array_leaves(name: str) -> None:
    """Another value is another leaf of the same program."""
    assert list(check_agents.check_leaves(case(name))) == []


def sweeps() -> list[Any]:
    """Every agent. Quick: one with a network and one without."""
    return slow_but(chosen(COMPILED, lambda name: {"neural" in name}), NAMES)


@pytest.mark.parametrize("name", sweeps())
def test_a_sweep_is_one_program_and_equals_separate_runs(name: str) -> None:
    assert list(check_agents.check_sweep(case(name), PLAYS[name][0])) == []


# ---- testbeds -------------------------------------------------------------------------------


# Quick: one testbed of each family.
@pytest.mark.parametrize("name", covering(TESTBED_NAMES, lambda name: {FAMILY_OF[name]}))
def test_testbed_shapes_and_kinds(name: str) -> None:
    testbed = built(TESTBEDS[name])
    assert list(check_testbeds.check_testbed_kinds(testbed)) == []
    assert list(check_testbeds.check_testbed_rounds(testbed)) == []
    contexts, rewards, _ = environment(testbed, [0, 1], 4)
    differ = [len(np.unique(x, axis=0)) > 1 for x in (contexts, rewards)]
    assert any(differ), "rounds must differ"


def settings(name: str) -> set[frozenset[str]]:
    """Testbeds with the same settings, such as most data sets, have the same functions."""
    return {frozenset(TESTBEDS[name].settings)}


# The data set that needs no file comes first, and so is the quick one.
@pytest.mark.parametrize(
    "name", covering(sorted(TESTBED_NAMES, key=lambda name: name != "digits"), settings)
)
def test_testbed_functions_are_pure(name: str) -> None:
    assert list(check_testbeds.check_testbed_pure(built(TESTBEDS[name]))) == []


# ---- settings of both -----------------------------------------------------------------------


@EVERY_ENTRY
def test_documented(entry: Entry[Any]) -> None:
    assert list(check_settings.check_documented(entry)) == []


@EVERY_ENTRY
def test_bounds_are_declared_and_enforced(entry: Entry[Any]) -> None:
    built(entry)
    assert list(check_settings.check_bounds(entry)) == []


# ---- what is broken is found ----------------------------------------------------------------


class Sound(Policy):
    """Plays the arm with the best mean so far; a base for agents that are broken on purpose."""

    width: Number = setting(0.5, "size of the noise", low=0.0, high=10.0)

    def init(self, key: Any, spec: Spec) -> Any:
        return {"sum": jnp.zeros(spec.arms), "plays": jnp.ones(spec.arms)}

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        means = state["sum"] / state["plays"]
        return jnp.argmax(means + self.width * jax.random.normal(noise, means.shape))

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return {
            "sum": state["sum"].at[arm].add(reward),
            "plays": state["plays"].at[arm].add(1.0),
        }


class Careless(Sound):
    # No documentation, and settings without: one without bounds, one that shapes the program.
    width: Number = setting(0.5, "")
    other: float = setting(0.5, "nothing", low=0.0, high=10.0, static=True)


class Impure(Sound):
    """Takes its noise from numpy while it is traced."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        drawn = np.random.default_rng().normal(size=state["sum"].shape)
        return jnp.argmax(state["sum"] + drawn.astype(np.float32))


class FloatArm(Sound):
    """Its arm is no whole number."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.float32(1.0)


class LongArm(Sound):
    """Its arm has an axis."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.zeros(1, jnp.int32)


class OneTooMany(Sound):
    """Counts arms from 1."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return Sound.choose(self, noise, state, context) + 1


class Growing(Sound):
    """Its state changes its shape."""

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state | {"sum": jnp.append(state["sum"], reward)}


class Renamed(Sound):
    """Its state changes its fields."""

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return {"sum": state["sum"]}


class NoNumber(Sound):
    """Says from the start that it has diverged."""

    def report(self, state: Any) -> Any:
        return Report(finite=jnp.isfinite(jnp.nan * jnp.sum(state["sum"])))


class WideReport(Sound):
    """Its report has one entry per arm."""

    def report(self, state: Any) -> Any:
        return Report(finite=jnp.isfinite(state["sum"]))


class LongReport(Sound):
    """Its parameters are not those of the model."""

    def report(self, state: Any) -> Any:
        return Report(finite=jnp.ones((), bool), parameters=jnp.zeros(1))


class ArmAndState(Sound):
    """Returns the state beside the arm."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.int32(0), state


class Forgetful(Sound):
    """Loses a field when it draws."""

    def draw(self, noise: Any, state: Any) -> Any:
        return {"sum": state["sum"]}


class Crashing(Sound):
    """Fails where it learns."""

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state["nothing"]


class Gossip(Policy):
    """Plays what the average chain likes."""

    def init(self, key: Any, spec: Spec) -> Any:
        return jnp.zeros((spec.arms, *spec.lanes))

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        drawn = lanes.normal(noise, state.shape[0])
        liked = state + drawn + (jnp.mean(state, axis=-1, keepdims=True) if state.ndim > 1 else 0)
        return jnp.argmax(liked, axis=0)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state + reward * lanes.one_hot(arm, state.shape[0])

    def report(self, state: Any) -> Any:
        return Report(finite=jnp.isfinite(jnp.sum(state, axis=0)))

    def hints(self, spec: Spec) -> Hints:
        return Hints(layout="lanes")


class Greedy(Sound):
    """Asks for random numbers that do not exist."""

    def needs(self, spec: Spec) -> Any:
        return Needs(choose=-1)


class Boaster(Sound):
    """Says that it is sure of itself, which it is not."""

    def hints(self, spec: Spec) -> Hints:
        return Hints(pmf=lambda state, context: jnp.eye(spec.arms)[0])


class Miscounting(Sound):
    """Its probabilities have another sum than 1."""

    def hints(self, spec: Spec) -> Hints:
        return Hints(pmf=lambda state, context: jnp.full(spec.arms, 0.5))


class Tilted(Policy):
    """Plays the first of three arms with probability 0.4, and says that each has a third."""

    def init(self, key: Any, spec: Spec) -> Any:
        return jnp.zeros(spec.arms)

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jax.random.choice(noise, 3, p=jnp.array([0.4, 0.3, 0.3]))

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state

    def hints(self, spec: Spec) -> Hints:
        return Hints(pmf=lambda state, context: jnp.full(spec.arms, 1.0 / 3.0))


class Overconfident(Sound):
    """Its scores are normal, and twice as wide as it says."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return lanes.argmax(2.0 * lanes.normal(noise, 3) + jnp.array([1.0, 0.0, 0.0]))

    def hints(self, spec: Spec) -> Hints:
        law = ScoreLaw(jnp.array([1.0, 0.0, 0.0]), deviation=jnp.ones(3))
        return Hints(scores=lambda state, context: law)


class Lawless(Sound):
    """Says a law without a spread."""

    def hints(self, spec: Spec) -> Hints:
        return Hints(scores=lambda state, context: ScoreLaw(jnp.zeros(3)))


BROKEN: dict[type[Policy], str] = {
    Careless: "the setting 'width' is not documented",
    Impure: "its functions are not pure",
    FloatArm: "returns float32: return the arm, a whole number",
    LongArm: r"returns an arm of shape \(1,\): it must be \(\)",
    OneTooMany: "choose plays arm [34] of [34]",
    Growing: r"update .* turns float32\[3\] of the state into float32\[4\]",
    Renamed: "update .* returns a state of another structure",
    NoNumber: "report says after 12 healthy rounds that the chain is not finite",
    WideReport: r"report .* has bool\[3\] as finite",
    LongReport: r"report .* has float32\[1\] as parameters: it must be \(6,\)",
    ArmAndState: "choose .* returns tuple: return the arm",
    Forgetful: "draw .* returns a state of another structure",
    Crashing: "update .* fails with KeyError",
    Gossip: "a chain depends on its neighbours|a live decision differs",
    Greedy: "noise .* returns .* use a Needs of 'key' or whole numbers",
    Boaster: r"pmf returns \[1.0, 0.0, 0.0\], but arms are chosen otherwise",
    Miscounting: r"pmf returns \[0.5, 0.5, 0.5\], which is no law: its sum must be 1",
    Tilted: "pmf returns .* but arms are chosen otherwise",
    Overconfident: "scores returns a law that has other arms as the largest than are chosen",
    Lawless: "scores returns no law: a law of scores has either a deviation or a root",
}


def one_sentence(finding: str) -> bool:
    return "\n" not in finding and finding.endswith(".") and len(finding) < 300


@pytest.mark.parametrize("agent", BROKEN)
def test_a_broken_agent_is_found_out(agent: type[Policy]) -> None:
    report = feelgood.check_agent(agent, testbed=PROBLEMS["disjoint"])
    assert report and all(map(one_sentence, report)), report
    assert any(re.search(BROKEN[agent], finding) for finding in report), report
    assert repr(report).startswith(f"{agent.__name__}: ")


def test_all_that_is_wrong_with_settings_is_named() -> None:
    case = checking.entry_of(Careless, AGENTS, Policy, "agent", "lints")
    found = [*check_settings.check_documented(case), *check_settings.check_bounds(case)]
    found += check_agents.check_leaves(AgentCase(case))
    assert found == [
        "the first line of its documentation is '': write one sentence, with its full stop, which "
        "'feelgood list' shows.",
        "the setting 'width' is not documented: say in a few words what it is.",
        "the setting 'width' has no lower bound: give low or above.",
        "the setting 'width' has no upper bound: give high.",
        "the number 'other' is not an array leaf: each value in a sweep needs a program.",
    ]


def test_a_sound_agent_passes_as_class_object_and_name() -> None:
    report = feelgood.check_agent(Sound)
    assert not report and list(report) == []
    assert repr(report) == "Sound: all 17 checks passed."
    assert not feelgood.check_agent(Uniform(), testbed=PROBLEMS["disjoint"])
    assert not feelgood.check_agent("uniform", testbed="linear-5")


class Deaf(Coins):
    """Its rewards have no noise and its contexts neither."""

    def context(self, key: Any, state: Any, t: Any) -> Any:
        return jnp.ones(2)

    def rewards(self, key: Any, state: Any, means: Any) -> Any:
        return means


class Loaded(Coins):
    """Says that its rewards are 0 or 1, which they are not."""

    @property
    def spec(self) -> Spec:
        return Spec(arms=3, dim=2, rewards="bernoulli")


class Short(Coins):
    """Has more arms than it pays."""

    @property
    def spec(self) -> Spec:
        return Spec(arms=4, dim=2)


class Endless(Coins):
    """Its means are not finite."""

    def mean_rewards(self, state: Any, context: Any, t: Any) -> Any:
        return jnp.array([0.0, 1.0, jnp.inf])


class Moody(Coins):
    """Its contexts come from numpy."""

    def context(self, key: Any, state: Any, t: Any) -> Any:
        return jnp.asarray(np.random.default_rng().normal(size=2), jnp.float32)


class Never(Coins):
    """Has no rounds."""

    @property
    def rounds(self) -> int:
        return 0


BROKEN_TESTBEDS: dict[type[Coins], str] = {
    Deaf: "all rounds of all seeds are the same",
    Loaded: "a spec with Bernoulli rewards allows 0 and 1 only",
    Short: r"mean_rewards returns float32\[3\]: with its spec it must be float32\[4\]",
    Endless: "mean rewards are not all finite",
    Moody: "its functions are not pure",
    Never: "rounds is 0: return a whole number above 0",
}


@pytest.mark.parametrize("testbed", BROKEN_TESTBEDS)
def test_a_broken_testbed_is_found_out(testbed: type[Coins]) -> None:
    for given in (testbed, testbed()):
        report = feelgood.check_testbed(given)
        assert report and all(map(one_sentence, report)), report
        assert any(re.search(BROKEN_TESTBEDS[testbed], finding) for finding in report), report


def test_a_sound_testbed_passes_as_class_object_and_name() -> None:
    for given in (Coins, Coins(), Wheel(delta=0.7), "wheel-0.5"):
        assert not feelgood.check_testbed(given)


@dataclasses.dataclass
class Duck:
    """No agent and no testbed."""

    choose: int = 0


@pytest.mark.parametrize("given", [None, 3, Duck, Duck(), "linucb2", int, Linear, LinUCB])
def test_what_is_neither_is_refused(given: Any) -> None:
    with pytest.raises(FeelgoodError):
        feelgood.check_testbed(given) if given is not Linear else feelgood.check_agent(given)
