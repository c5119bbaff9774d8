"""Which arm is the best: closed forms, independent integrals, and extremes."""

import re

import numpy as np
import pytest
from proofs.levels import LEVEL, generator_for
from scipy import integrate, special, stats

from feelgood.core.errors import FeelgoodError
from feelgood.core.score_law import ScoreLaw
from feelgood.stats.choice_probabilities import choice_probabilities
from feelgood.stats.counts_of_law import p_of_counts
from feelgood.stats.independent_scores import FINEST, USUAL, independent_choices
from feelgood.stats.scaled_scores import scaled_choices
from feelgood.stats.shared_scores import cone_shares

SOME = ScoreLaw(np.array([0.3, -0.2, 0.5, 0.1]), deviation=np.array([1.0, 0.4, 0.7, 0.2]))


def rng(label: str) -> np.random.Generator:
    return generator_for(f"choice probabilities, {label}")


def extremes(label: str, arms: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations from 1e-6 to 1e6, and mixtures of them."""
    draw = rng(label)
    mean = draw.normal(size=(count, arms)) * 10.0 ** draw.uniform(-6, 6, (count, 1))
    deviation = 10.0 ** draw.uniform(-6, 6, (count, arms))
    deviation[::3] = 1.0
    return mean, deviation


# ---- independent normal scores ----------------------------------------------------------------


def test_two_arms_have_the_closed_form_with_all_digits() -> None:
    """Φ(Δ/√(s₁² + s₂²)), down to 1e-290, with relative error below 1e-8."""
    mean, deviation = extremes("two", 2, 200)
    z = (mean[:, 0] - mean[:, 1]) / np.hypot(*deviation.T)
    want = np.stack([special.ndtr(z), special.ndtr(-z)], axis=1)
    got = independent_choices(mean, deviation)
    told = want > 1e-290
    assert np.sum(want < 1e-20) > 5
    np.testing.assert_allclose(got[told], want[told], rtol=1e-8)
    assert np.all(got[~told] < 1e-289)
    pairs = zip(mean, deviation, strict=True)
    closed = [choice_probabilities(ScoreLaw(m, deviation=s)) for m, s in pairs]
    assert not any(found.error.any() for found in closed)
    np.testing.assert_allclose(np.stack([c.pmf for c in closed])[told], want[told], rtol=1e-8)


@pytest.mark.parametrize("arms", [2, 3, 10, 100, 1000])
def test_equal_arms_have_equal_probabilities(arms: int) -> None:
    for deviation in (1e-6, 1.0, 1e6):
        got = independent_choices(np.full((1, arms), 1e6), np.full((1, arms), deviation))
        np.testing.assert_allclose(got, 1.0 / arms, rtol=1e-12)


@pytest.mark.parametrize(("arms", "count"), [(2, 100), (3, 100), (10, 30), (100, 2), (1000, 1)])
def test_probabilities_sum_to_one_although_nothing_is_normalised(arms: int, count: int) -> None:
    raw = independent_choices(*extremes("sums", arms, count))
    assert np.all(raw >= 0.0)
    assert np.max(np.abs(raw.sum(axis=1) - 1.0)) < 1e-10


def test_integrals_are_those_of_scipy() -> None:
    mean, deviation = SOME.mean, SOME.deviation

    def density(g: float, arm: int) -> float:
        others = np.arange(4) != arm
        below = special.ndtr((g - mean) / deviation)[others].prod()
        return float(stats.norm.pdf(g, mean[arm], deviation[arm]) * below)

    want = [integrate.quad(density, -8.0, 8.0, arm, epsabs=1e-12, limit=200)[0] for arm in range(4)]
    found = choice_probabilities(SOME)
    np.testing.assert_allclose(found.pmf, want, atol=1e-11)
    assert not found.error.any()


def test_scores_without_spread() -> None:
    """One such score is a floor for the others; of equal ones the first is the largest."""
    law = ScoreLaw(np.array([0.2, 0.5, 0.5, 0.1]), deviation=np.array([1.0, 0.0, 0.0, 2.0]))
    got = choice_probabilities(law).pmf
    assert got[1] == pytest.approx(special.ndtr(0.3) * special.ndtr(0.2), rel=1e-13)
    assert got[2] == 0.0 and got.sum() == pytest.approx(1.0, abs=1e-12)
    sure = ScoreLaw(np.array([0.0, 1.0, 1.0]), deviation=np.zeros(3))
    assert choice_probabilities(sure).pmf.tolist() == [0.0, 1.0, 0.0]
    as_root = ScoreLaw(sure.mean, root=np.zeros((3, 2)))
    assert choice_probabilities(as_root).pmf.tolist() == [0.0, 1.0, 0.0]


# ---- one common scale ---------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1.0, 3.0, 50.0, 1e6])
def test_two_arms_with_a_common_scale_are_students(freedom: float) -> None:
    """F_t(Δ/√(s₁² + s₂²)), and nothing is normalised."""
    for z in (0.0, 0.7, 12.0):
        got = scaled_choices(np.array([0.5 * z, 0.0]), np.array([0.3, 0.4]), freedom)
        want = stats.t.cdf(z, freedom), stats.t.sf(z, freedom)
        np.testing.assert_allclose(got, want, rtol=1e-9)
        assert abs(got.sum() - 1.0) < 1e-10


@pytest.mark.parametrize("freedom", [None, 1.0, 20.0, 200.0, 3_000.0, 1e6])
def test_the_usual_accuracy_has_eight_digits_of_what_is_played(freedom: float | None) -> None:
    """Against the finest: relative to every probability above 1e-9, absolute below it."""
    rng = np.random.default_rng(12)
    for scale in (0.1, 1.0, 4.0):
        mean, deviation = scale * rng.normal(size=5), np.exp(rng.normal(size=5))
        law = ScoreLaw(mean, deviation=deviation, freedom=freedom)
        fine, usual = (choice_probabilities(law, accuracy=a).pmf for a in (FINEST, USUAL))
        np.testing.assert_allclose(usual, fine, rtol=1e-8, atol=1e-15)
        assert abs(usual.sum() - 1.0) < 1e-10


def test_many_degrees_of_freedom_are_a_normal_law() -> None:
    want = choice_probabilities(SOME).pmf
    many = choice_probabilities(SOME._replace(freedom=1e9)).pmf
    np.testing.assert_allclose(many, want, atol=1e-8)
    assert np.array_equal(choice_probabilities(SOME._replace(freedom=np.inf)).pmf, want)
    assert np.max(np.abs(choice_probabilities(SOME._replace(freedom=2.0)).pmf - want)) > 0.005


# ---- shared parameters --------------------------------------------------------------------------


def test_two_arms_that_share_parameters_are_exact() -> None:
    root = rng("pair").normal(size=(2, 5))
    z = 0.8 / np.linalg.norm(root[0] - root[1])
    law = ScoreLaw(np.array([0.8, 0.0]), root=root)
    for freedom, want in ((None, stats.norm.cdf(z)), (2.5, stats.t.cdf(z, 2.5))):
        found = choice_probabilities(law._replace(freedom=freedom))
        np.testing.assert_allclose(found.pmf, [want, 1.0 - want], atol=1e-14)
        assert not found.error.any()


def test_three_arms_with_equal_means_have_the_angles_of_their_cones() -> None:
    """P = ¼ + arcsin ρ / 2π for each arm."""
    root = rng("angles").normal(size=(3, 4))
    found = choice_probabilities(ScoreLaw(np.zeros(3), root=root))
    for arm in range(3):
        one, other = (root[arm] - root[b] for b in range(3) if b != arm)
        rho = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        want = 0.25 + np.arcsin(rho) / (2.0 * np.pi)
        assert abs(found.pmf[arm] - want) < 1e-4
        assert abs(found.pmf[arm] - want) <= 8.0 * found.error[arm] + 1e-12


@pytest.mark.parametrize("freedom", [None, 4.0])
def test_independent_arms_as_shared_parameters(freedom: float | None) -> None:
    """The points are fixed: the error is what it is, and several times the stated one is enough."""
    exact = choice_probabilities(SOME._replace(freedom=freedom)).pmf
    law = ScoreLaw(SOME.mean, root=np.diag(SOME.deviation), freedom=freedom)
    found = choice_probabilities(law)
    assert 0.0 < np.max(found.error) < 1e-4
    assert np.all(np.abs(found.pmf - exact) < 8.0 * found.error)
    finer = choice_probabilities(law, points=4096)
    assert np.max(finer.error) < 0.5 * np.max(found.error)
    raw = cone_shares(law.mean, law.root, freedom)
    assert abs(raw.sum(axis=1).mean() - 1.0) < 1e-4


def test_cones_are_those_of_scipy() -> None:
    """An orthant of scipy's multivariate normal law for each of five arms, to its 1e-5."""
    draw = rng("cones")
    mean, root = draw.normal(size=5), draw.normal(size=(5, 7))
    found = choice_probabilities(ScoreLaw(mean, root=root))
    for arm in range(5):
        rows = np.delete(root, arm, 0) - root[arm]
        law = stats.multivariate_normal(np.zeros(4), rows @ rows.T, abseps=1e-6, releps=1e-6)
        assert abs(law.cdf(np.delete(mean[arm] - mean, arm)) - found.pmf[arm]) < 1e-4


@pytest.mark.parametrize(("arms", "normals", "freedom"), [(8, 3, None), (6, 9, 3.0), (5, 1, 2.0)])
def test_draws_of_singular_and_students_laws(
    arms: int, normals: int, freedom: float | None
) -> None:
    """Counts of 200,000 draws, exact binomial tests at the level of the proofs."""
    draw = rng(f"draws {arms}")
    mean, root = 0.5 * draw.normal(size=arms), draw.normal(size=(arms, normals))
    z = draw.normal(size=(200_000, normals))
    if freedom is not None:
        z *= np.sqrt(freedom / draw.chisquare(freedom, size=len(z)))[:, None]
    counts = np.bincount((mean + z @ root.T).argmax(axis=1), minlength=arms)
    law = choice_probabilities(ScoreLaw(mean, root=root, freedom=freedom))
    assert np.max(law.error) < 3e-4
    assert p_of_counts(counts, law.pmf) > LEVEL


@pytest.mark.parametrize("arms", [3, 6])
@pytest.mark.parametrize("freedom", [None, 2.0])
def test_extremes_of_shared_parameters(arms: int, freedom: float | None) -> None:
    """Rows of a root from 1e-6 to 1e6 long: numbers and no warnings, near the exact ones."""
    for mean, deviation in zip(*extremes("shared", arms, 12), strict=True):
        law = ScoreLaw(mean, deviation=deviation, freedom=freedom)
        exact = choice_probabilities(law).pmf
        found = choice_probabilities(law._replace(deviation=None, root=np.diag(deviation)))
        assert found.pmf.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(found.pmf, exact, atol=1e-3)


def test_of_two_arms_that_are_the_same_the_first_is_played() -> None:
    root = rng("same").normal(size=(3, 4))
    twice = ScoreLaw(np.array([0.1, 0.2, 0.3, 0.2]), root=root[[0, 1, 2, 1]])
    once = choice_probabilities(ScoreLaw(twice.mean[:3], root=root)).pmf
    got = choice_probabilities(twice).pmf
    assert got[3] == 0.0
    np.testing.assert_allclose(got[:3], once, atol=1e-4)
    lower = twice._replace(mean=np.array([0.1, 0.2, 0.3, 0.4]))
    assert choice_probabilities(lower).pmf[1] == 0.0


def test_the_same_law_has_the_same_answer() -> None:
    law = ScoreLaw(SOME.mean, root=np.diag(SOME.deviation))
    assert np.array_equal(choice_probabilities(law).pmf, choice_probabilities(law).pmf)


# ---- masks and mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [None, 4.0])
@pytest.mark.parametrize("shared", [False, True])
def test_a_mask_leaves_arms_out(shared: bool, freedom: float | None) -> None:
    law = SOME._replace(freedom=freedom)
    if shared:
        law = law._replace(deviation=None, root=np.diag(SOME.deviation))
    there = np.array([True, False, True, True])
    got = choice_probabilities(law, there)
    assert got.pmf[1] == 0.0 and got.error[1] == 0.0
    field = "root" if shared else "deviation"
    fewer = law._replace(mean=law.mean[there], **{field: getattr(law, field)[there]})
    np.testing.assert_array_equal(got.pmf[there], choice_probabilities(fewer).pmf)
    alone = choice_probabilities(law, np.array([False, False, True, False]))
    assert alone.pmf.tolist() == pytest.approx([0.0, 0.0, 1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(
    ("law", "mask", "said"),
    [
        (SOME, np.zeros(4, bool), "the mask leaves no arm"),
        (SOME, [True, False], "mask = [True, False] is not allowed: use 4 truth values"),
        (SOME._replace(mean=np.full(4, np.nan)), None, "not finite"),
        (SOME._replace(freedom=0.0), None, "freedom = 0.0 is not allowed"),
        (SOME._replace(root=np.eye(4)), None, "either a deviation or a root"),
        (SOME._replace(deviation=np.ones(3)), None, "(4,) and a spread of shape (3,) are no law"),
    ],
)
def test_mistakes_are_said_in_one_sentence(law: ScoreLaw, mask: object, said: str) -> None:
    with pytest.raises(FeelgoodError, match=re.escape(said)):
        choice_probabilities(law, mask)
