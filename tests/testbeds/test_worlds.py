"""The worlds where plain Thompson sampling fails, against their definitions."""

import math

import jax
import numpy as np
import pytest
from scipy import stats

from feelgood import TESTBEDS, FeelgoodError, Spec
from feelgood.core.knowledge import FiniteClass, GaussianArms
from feelgood.engine.environment import environment
from feelgood.testbeds.worlds import FixedArms

#: False-alarm rate of one test below.
LEVEL = 1e-6
WORLDS = [
    name
    for family in TESTBEDS.families()
    for name in family.names[:1]
    if isinstance(family.defined, type) and issubclass(family.defined, FixedArms)
]


def means_of(name: str, seeds: int = 1, **settings: object) -> np.ndarray:
    """Mean rewards of the arms in a first round, one column per seed."""
    return np.asarray(environment(TESTBEDS[name].build(settings), range(seeds), 1).means, float)[0]


def known_of(name: str, **settings: object) -> object:
    return TESTBEDS[name].build(settings).spec.known


# ---- each world -------------------------------------------------------------------------------


def test_trap() -> None:
    for name, delta in (("trap-0.01", 0.1), ("trap-0.0001", 1.0), ("trap-0.000001", 1.0)):
        np.testing.assert_allclose(means_of(name)[:, 0], [0.0, delta], rtol=1e-6)
        np.testing.assert_allclose(means_of(name, world="mirror")[:, 0], [0.0, -delta], rtol=1e-6)
        p = float(name.removeprefix("trap-"))
        known = known_of(name)
        assert isinstance(known, FiniteClass)
        assert known.masses == (p, 1.0 - p) and known.noise == 1.0
        np.testing.assert_allclose(known.means, [[0.0, delta], [0.0, -delta]])
    # Δ follows the horizon, unless it is told; the pessimist may say another number.
    assert means_of("trap-0.01", horizon=100)[1, 0] == 1.0
    assert means_of("trap-0.5", gap=0.5)[1, 0] == 0.5
    assert means_of("trap-0.5", gap=0.5, loss=0.25, world="mirror")[1, 0] == -0.25
    heads = np.sum(means_of("trap-0.3", 400, world="prior")[1] > 0)
    assert stats.binomtest(int(heads), 400, 0.3).pvalue > LEVEL


def test_super_arm() -> None:
    np.testing.assert_allclose(means_of("superarm-40")[:, 0], [0.75, 1.0])
    np.testing.assert_allclose(means_of("superarm-40", world="mirror")[:, 0], [0.75, 0.5])
    known = known_of("superarm-40")
    assert isinstance(known, FiniteClass) and known.noise == 0.5
    np.testing.assert_allclose(known.masses, stats.binom.pmf(np.arange(41), 40, 0.5), rtol=1e-9)
    np.testing.assert_allclose(np.array(known.means)[:, 1], np.arange(41) / 40)
    assert set(np.array(known.means)[:, 0]) == {0.75}
    drawn = means_of("superarm-40", 400, world="prior")[1] * 40
    # 400 draws of a binomial law: mean 20 with the standard error √10/20, and variance 10.
    assert abs(drawn.mean() - 20) < 4.9 * math.sqrt(10 / 400)
    assert drawn.var() == pytest.approx(10, rel=4.9 * math.sqrt(2 / 400))


def test_relaxed_super_arm() -> None:
    """The same regrets, and a linear model whose prior is the coins' first two moments."""
    for world in ("bad", "mirror"):
        plain = means_of("superarm-40", world=world)
        shown = means_of("superarm-40", world=world, relaxed=True)
        np.testing.assert_allclose(shown, plain - 0.5, atol=1e-6)
    spec = TESTBEDS["superarm-40"].build({"relaxed": True}).spec
    assert (spec.dim, spec.shared) == (41, True)
    context = np.asarray(environment(TESTBEDS["superarm-40"].build({"relaxed": True}), [0], 1)[0])
    np.testing.assert_allclose(np.sum(context[0, :, 1, 0] ** 2), 1 / (4 * 40), rtol=1e-6)


def test_linear_trap() -> None:
    for d in (80, 160):
        bad, mirror = means_of(f"linear-trap-{d}"), means_of(f"linear-trap-{d}", world="mirror")
        root = math.sqrt(d)
        np.testing.assert_allclose(bad[:, 0], [root / 2, root / 2 - 0.5], rtol=1e-5)
        np.testing.assert_allclose(mirror[:, 0], [-root / 2, root / 2 - 0.5], rtol=1e-5)
    known = known_of("linear-trap-80")
    assert known == GaussianArms((0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)), 1.0)
    testbed = TESTBEDS["linear-trap-80"].build()
    x = np.asarray(environment(testbed, [0], 1).contexts, float)[0, ..., 0]
    # Two unit vectors at a right angle: so what is known of the arms follows from θ ~ N(0, I).
    np.testing.assert_allclose(x.T @ x, np.eye(2), atol=1e-6)
    values = means_of("linear-trap-10", 1000, world="prior")
    assert stats.kstest(values[0], stats.norm.cdf).pvalue > LEVEL
    assert stats.kstest(values[1], stats.norm.cdf).pvalue > LEVEL


def test_copies_of_the_linear_trap() -> None:
    testbed = TESTBEDS["linear-trap-9"].build({"copies": 4})
    assert testbed.spec == Spec(arms=2, dim=40, shared=True, known=testbed.spec.known)
    contexts, _, means = environment(testbed, range(5), 200)
    x = np.moveaxis(np.asarray(contexts, float), -1, 1).reshape(1000, 4, 10, 2)
    shown = np.abs(x).sum(axis=(2, 3)) > 0
    assert np.all(shown.sum(axis=1) == 1), "one copy at a time"
    assert stats.chisquare(shown.sum(axis=0)).pvalue > LEVEL
    one = np.asarray(environment(TESTBEDS["linear-trap-9"].build(), [0], 1).contexts)[0, ..., 0]
    assert all(np.allclose(x[i, np.argmax(shown[i])], one) for i in range(1000))
    np.testing.assert_allclose(np.unique(np.asarray(means).round(5)), [1.0, 1.5])


def test_sceptic() -> None:
    np.testing.assert_allclose(means_of("sceptic-0.1", arms=3)[:, 0], [0.5, 0.0, 1.0])
    np.testing.assert_allclose(means_of("sceptic-0.1", world="mirror")[:, 0], [0.5, 0.0])
    known = known_of("sceptic-0.1")
    assert isinstance(known, GaussianArms)
    np.testing.assert_allclose(known.covariance, np.diag([0.25, 0.01]))
    values = means_of("sceptic-0.1", 1000, world="prior")
    assert stats.kstest(values[0] / 0.5, stats.norm.cdf).pvalue > LEVEL
    assert stats.kstest(values[1] / 0.1, stats.norm.cdf).pvalue > LEVEL


@pytest.mark.parametrize(("world", "noisy"), [("bad", 1), ("mirror", 0), ("prior", 1)])
def test_uneven_noise(world: str, noisy: int) -> None:
    testbed = TESTBEDS["uneven-noise-4"].build({"world": world})
    _, rewards, means = (np.asarray(x, float) for x in environment(testbed, range(50), 200))
    sizes = (rewards - means).std(axis=(0, 2))
    want = [1.0, 1.0]
    want[noisy] = 4.0
    # 10,000 normals: the relative error of their deviation is 1/√20,000; 5 of these, 6e-7.
    np.testing.assert_allclose(sizes, want, rtol=5 / math.sqrt(20_000))
    if world != "prior":
        np.testing.assert_allclose(means[0, :, 0], [0.0, 0.5])
    assert testbed.spec.known == GaussianArms.alone((1.0, 1.0), 1.0)
    assert testbed.reward_noise() is None


def test_opposites() -> None:
    np.testing.assert_allclose(means_of("opposites")[:, 0], [0.5, 1.0])
    np.testing.assert_allclose(means_of("opposites", world="mirror")[:, 0], [-0.5, -1.0])
    values = means_of("opposites", 5, world="prior")
    np.testing.assert_allclose(values[0], -values[1])
    testbed = TESTBEDS["opposites"].build()
    assert testbed.truth(testbed.init(jax.random.key(0))) is None


# ---- all of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_tells_its_arms_and_has_all_three_truths(name: str) -> None:
    specs = []
    for world in ("bad", "mirror", "prior"):
        testbed = TESTBEDS[name].build({"world": world})
        specs.append(testbed.spec)
        hash(testbed.spec)
        assert testbed.spec.known is not None and testbed.rounds == 10_000
    assert specs[0] == specs[1] == specs[2], "agents cannot know which world it is"
    best = {world: means_of(name, world=world)[:, 0].argmax() for world in ("bad", "mirror")}
    assert best["bad"] != best["mirror"] or name.startswith("uneven-noise")


def test_there_is_a_family_for_every_kind_of_failure() -> None:
    kinds = {name.rsplit("-", 1)[0] for name in WORLDS}
    assert kinds == {"trap", "superarm", "linear-trap", "sceptic", "uneven-noise", "opposites"}


BAD_KNOWLEDGE = [
    (lambda: FiniteClass((), (), 1.0), "needs one number per member and arm"),
    (lambda: FiniteClass(((0.0, 1.0), (1.0,)), (1.0, 1.0), 1.0), "one number per member and arm"),
    (lambda: FiniteClass(((0.0, 1.0),), (0.0,), 1.0), "masses = .* give one number above 0"),
    (lambda: FiniteClass(((0.0, 1.0),), (1.0,), 0.0), "noise = 0.0 is not allowed"),
    (lambda: GaussianArms((0.0, 0.0), ((1.0, 0.0),), 1.0), "give 2 rows of 2"),
    (lambda: GaussianArms.alone((1.0, 0.0), 1.0), "variances are above 0"),
    (lambda: GaussianArms((0.0,) * 2, ((1.0, 1.0), (1.0, 1.0)), 1.0), "correlation of −1 or more"),
    (lambda: GaussianArms((0.0,) * 2, ((1.0, 2.0), (2.0, 1.0)), 1.0), "correlation of −1 or more"),
    (
        lambda: GaussianArms((0.0,) * 3, ((1.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 1.0)), 1.0),
        "arms are independent, or two",
    ),
    (lambda: Spec(arms=3, dim=1, known=GaussianArms.alone((1.0, 1.0), 1.0)), "tell of all of them"),
    (
        lambda: Spec(arms=2, dim=3, known=GaussianArms.alone((1.0, 1.0), 1.0, copies=2)),
        "copies = 2 .* divides them",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD_KNOWLEDGE)
def test_knowledge_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        make()  # type: ignore[operator]


BAD_NAMES = [
    ("trap-0", r"trap-0\.mass = '0' is not allowed: use a finite number above 0"),
    ("trap-1", r"trap-1\.mass = '1' is not allowed"),
    ("superarm-1", r"superarm-1\.coins = '1' is not allowed: use a whole number at least 2"),
    ("linear-trap-0", r"linear-trap-0\.coordinates = '0' is not allowed"),
    ("linear-trap", "unknown testbed 'linear-trap'"),
]


@pytest.mark.parametrize(("name", "message"), BAD_NAMES)
def test_bad_numbers_in_names(name: str, message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        TESTBEDS[name].build()
