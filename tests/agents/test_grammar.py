"""The names of the MCMC agents: every one composes, nonsense is refused in one clear sentence."""

import re

import equinox as eqx
import jax.numpy as jnp
import pytest

from feelgood import AGENTS, FeelgoodError
from feelgood.agents.grammar import PAPER_AGENTS, all_names, parts_of
from feelgood.agents.thompson import Thompson
from feelgood.core.settings import settings_of
from feelgood.samplers import KERNELS, Kernel
from feelgood.samplers.hmc import HMC
from feelgood.samplers.lmc import LMC
from feelgood.samplers.mala import MALA
from feelgood.samplers.svrg import SVRGLMC
from feelgood.samplers.ulmc import ULMC
from feelgood.targets.bonus import SmoothedFeelGood

PAPER = [
    "lmcts",
    "plmcts",
    "fglmcts",
    "pfglmcts",
    "sfglmcts",
    "psfglmcts",
    "svrglmcts",
    "malats",
    "fgmalats",
    "sfgmalats",
    "hmcts",
    "phmcts",
    "fghmcts",
    "pfghmcts",
    "sfghmcts",
    "psfghmcts",
    "ulmcts",
    "ufglmcts",
    "usfglmcts",
]
PAPER_NEVER_RAN = ["pmalats", "pfgmalats", "psfgmalats", "svrgfglmcts", "svrgsfglmcts"]


def one_sentence(message: str) -> bool:
    """It begins with what is wrong and ends with the only full stop or question mark."""
    return len(re.findall(r"[.?!](?:\s|$)", message)) == 1 and message[-1] in ".?"


def kernel_of(name: str) -> type[Kernel]:
    parts = parts_of(name)
    assert parts is not None
    return parts.kernel


def test_the_names_of_the_paper_and_all_others() -> None:
    """All names of the paper's kernels; a kernel in a new file adds names of its own."""
    assert sorted(PAPER_AGENTS) == sorted(PAPER)
    papers = [name for name in all_names() if kernel_of(name) in (LMC, MALA, HMC, ULMC, SVRGLMC)]
    assert sorted(papers) == sorted(PAPER + PAPER_NEVER_RAN)
    listed = AGENTS.names(more=True)
    assert set(all_names()) <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", all_names())
def test_a_name_is_its_parts(name: str) -> None:
    """The entry, the agent and the description all come from the parts that the name names."""
    entry = AGENTS[name]
    policy = entry.build()
    assert isinstance(policy, Thompson)
    assert entry.name == name
    # Put the name together again from what was built.
    ((variant, kernel_name),) = [
        parts for parts, kernel in KERNELS.items() if kernel is type(policy.kernel)
    ]
    bonus = "" if policy.bonus is None else "fg"
    if isinstance(policy.bonus, SmoothedFeelGood):
        bonus = "sfg"
    assert f"{'p' * policy.preconditioned}{variant}{bonus}{kernel_name}ts" == name
    assert type(policy.kernel).title in entry.doc
    assert ("preconditioned" in entry.doc) == policy.preconditioned
    assert ("feel-good" in entry.doc) == (policy.bonus is not None)
    assert ("smoothed" in entry.doc) == (bonus == "sfg")
    assert one_sentence(entry.doc)


def test_descriptions_differ() -> None:
    descriptions = [AGENTS[name].doc for name in all_names()]
    assert len(set(descriptions)) == len(descriptions)


@pytest.mark.parametrize("name", all_names())
def test_settings_are_those_of_the_parts(name: str) -> None:
    """Each value arrives at its part, as an array leaf where a sweep needs one."""
    entry = AGENTS[name]
    policy = entry.build()
    assert isinstance(policy, Thompson)
    parts = [part for part in (policy, policy.kernel, policy.bonus) if part is not None]
    known = {setting for part in parts for setting in settings_of(type(part))}
    assert set(entry.settings) <= known
    assert ("lambda_reg" in entry.settings) == policy.preconditioned
    assert ("lam" in entry.settings) == (policy.bonus is not None)
    for setting, rule in entry.settings.items():
        (owner,) = [part for part in parts if setting in settings_of(type(part))]
        value = getattr(owner, setting)
        if rule.default == rule.open_word:
            assert value is None
            continue
        assert value == (jnp.float32(rule.default) if rule.kind is float else rule.default)
        assert isinstance(value, jnp.ndarray) == (not rule.static)


@pytest.mark.parametrize(
    "name", ["svrghmcts", "pulmcts", "umalats", "psvrglmcts", "ppmalats", "uuhmcts", "upfglmcts"]
)
def test_nonsense_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(FeelgoodError) as caught:
        AGENTS[name]
    message = str(caught.value)
    assert one_sentence(message)
    first, *remedies = re.findall(r"'(\w+ts)'", message)
    assert first == name
    assert remedies and all(remedy in all_names() for remedy in remedies)


@pytest.mark.parametrize("name", ["lmct", "fgsfglmcts", "hmcmalats", "mala", "sgldts"])
def test_other_names_get_a_suggestion(name: str) -> None:
    with pytest.raises(FeelgoodError, match="unknown agent") as caught:
        AGENTS[name]
    assert one_sentence(str(caught.value))


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        *[("psfghmcts", setting, -1.0) for setting in ("beta", "eta", "rho", "step", "lam")],
        *[("psfghmcts", setting, 0.0) for setting in ("beta", "eta", "rho", "step", "lambda_reg")],
        *[("sfglmcts", setting, value) for setting in ("s", "b") for value in (0.0, -2.0)],
        *[
            ("sfglmcts", setting, value)
            for setting in ("lam", "b", "s", "beta")
            for value in (float("nan"), float("inf"), "many")
        ],
        ("ulmcts", "gamma", 0.0),
        ("hmcts", "leapfrog", 0),
        ("hmcts", "leapfrog", 10**6),
        ("hmcts", "leapfrog", 2.5),
        ("lmcts", "steps", 0),
        ("lmcts", "steps", 10**9),
        ("lmcts", "schedule", "sometimes"),
        ("svrglmcts", "batch", 0),
        ("svrglmcts", "snapshot", 0),
        ("malats", "warmup_steps", -1),
        ("malats", "warmup_steps", 25),
        ("lmcts", "lam", 0.1),
        ("lmcts", "leapfrog", 5),
        ("malats", "lambda_reg", 1.0),
        ("fgmalats", "bonus_gradient", "svrg"),
        ("fglmcts", "bonus_gradient", "sometimes"),
        ("fglmcts", "bonus_on", "logit"),
        ("fglmcts", "lam_schedule", "linear"),
        ("fglmcts", "prior_mass", 0.0),
        ("fglmcts", "prior_mass", 2.0),
        ("fglmcts", "horizon", 0.0),
    ],
)
def test_bad_settings_are_refused(name: str, setting: str, value: object) -> None:
    with pytest.raises(FeelgoodError) as caught:
        AGENTS[name].build({setting: value})
    message = str(caught.value)
    assert one_sentence(message), message
    assert setting in message


def test_parts_that_do_not_go_together_are_refused() -> None:
    """An agent that is composed by hand is checked as one that is built by its name."""
    from feelgood.samplers.mala import MALA
    from feelgood.samplers.ulmc import ULMC
    from feelgood.targets.bonus import FeelGood

    with pytest.raises(FeelgoodError, match="no preconditioned form") as caught:
        Thompson(kernel=ULMC(), preconditioned=True)
    assert one_sentence(str(caught.value))
    with pytest.raises(FeelgoodError, match="Metropolis filter") as caught:
        Thompson(kernel=MALA(), bonus=FeelGood(), bonus_gradient="svrg")
    assert one_sentence(str(caught.value))
    with pytest.raises(FeelgoodError, match="warmup_steps = 25") as caught:
        Thompson(kernel=MALA(warmup_steps=25), steps=25)
    assert one_sentence(str(caught.value))


WITH_BONUS = [
    name for name in AGENTS.names(more=True) if "lam" in AGENTS[name].settings and ":" not in name
]


@pytest.mark.parametrize("name", WITH_BONUS)
def test_weight_0_is_the_plain_agent(name: str) -> None:
    """The very same agent is built, with no part that knows a bonus: so the program is the same."""
    plain = re.sub("s?fg-?", "", name).replace("jmala", "mala")  # no bonus, no modes to jump to
    assert plain != name and "lam" not in AGENTS[plain].settings
    weightless = AGENTS[name].build({"lam": 0.0})
    assert eqx.tree_equal(weightless, AGENTS[plain].build())
    assert not eqx.tree_equal(AGENTS[name].build({"lam": 0.1}), AGENTS[plain].build())
