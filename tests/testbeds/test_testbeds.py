"""The synthetic testbeds against their definitions and closed forms."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from toys import Witness

from feelgood import TESTBEDS, FeelgoodError, Spec
from feelgood.agents import Uniform
from feelgood.engine.environment import Block, environment
from feelgood.engine.simulation import simulate
from feelgood.testbeds import Linear, Logistic, Wheel

#: False-alarm rate of one test below, where nothing else is said.
LEVEL = 1e-6


def has_law(sample: np.ndarray, cdf) -> None:
    assert stats.kstest(np.asarray(sample, np.float64).ravel(), cdf).pvalue > LEVEL


def sides(block: Block, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, rewards and means of one seed, rounds first, in float64."""
    return tuple(np.asarray(x, np.float64)[..., seed] for x in block)  # type: ignore[return-value]


# ---- linear ---------------------------------------------------------------------------------


def test_linear_40_is_five_arms_of_eight_dimensions() -> None:
    assert TESTBEDS["linear-40"].build().spec == Spec(arms=5, dim=8)
    assert TESTBEDS["linear-20"].build().spec == Spec(arms=5, dim=4)
    assert TESTBEDS["linear-12"].build({"arms": 3}).spec == Spec(arms=3, dim=4)


def test_parameters_that_the_arms_do_not_divide_are_refused() -> None:
    with pytest.raises(FeelgoodError) as caught:
        TESTBEDS["linear-7"].build()
    assert str(caught.value) == (
        "linear-7 cannot be split over 5 arms: use a multiple of 5, such as linear-5."
    )
    with pytest.raises(FeelgoodError, match="linear-20 cannot be split over 3 arms"):
        TESTBEDS["linear-20"].build({"arms": 3})


def test_linear_contexts_parameters_and_noise_have_their_laws() -> None:
    seeds, rounds = 100, 200
    block = environment(TESTBEDS["linear-20"].build(), range(seeds), rounds)
    contexts, rewards, means = (np.asarray(x, np.float64) for x in block)
    has_law(contexts, stats.norm.cdf)
    has_law((rewards - means)[:, 0] / 0.5, stats.norm.cdf)
    # One number serves all arms of a round; of its rewards only one is ever seen.
    np.testing.assert_allclose((rewards - means).std(axis=1), 0.0, atol=1e-6)
    # Correlations over 20,000 rounds have standard deviation 1/√20,000; 5 of these (6e-7 each).
    flat = np.moveaxis(contexts, 1, 0).reshape(4, -1)
    noise = (rewards - means)[:, 0].reshape(1, -1)
    off = np.corrcoef(np.vstack([flat, noise])) - np.eye(5)
    assert np.abs(off).max() < 5 / np.sqrt(seeds * rounds)
    # The means are linear in the context, with one block per arm, θ ~ N(0, 1).
    theta = []
    for seed in range(seeds):
        x, _, mean = sides(block, seed)
        solved, *_ = np.linalg.lstsq(x, mean, rcond=None)
        np.testing.assert_allclose(x @ solved, mean, atol=1e-5)
        theta.append(solved)
    has_law(np.stack(theta), stats.norm.cdf)


def test_linear_scale_and_condition_shape_the_covariance() -> None:
    testbed = Linear(parameters=12, arms=3, scale=2.0, condition=100.0, noise=0.0)
    contexts, rewards, means = environment(testbed, range(100), 200)
    np.testing.assert_array_equal(rewards, means)
    variance = np.asarray(contexts, np.float64).var(axis=(0, 2))
    # A variance over 20,000 draws has relative standard deviation √(2/20,000) = 0.01; 5 of these.
    np.testing.assert_allclose(variance, 4.0 * 100.0 ** -(np.arange(4) / 3), rtol=0.05)


def test_no_block_feature_is_ever_built() -> None:
    """For 5 arms of 400 dimensions nothing is larger than the 2,000 true parameters."""
    testbed = Linear(parameters=2000)
    assert testbed.spec.context_shape == (400,)
    state = jax.eval_shape(testbed.init, jax.random.key(0))
    assert state.theta.shape == (400, 5)
    program = jax.make_jaxpr(testbed.mean_rewards)(state, jax.numpy.zeros(400), 0)
    sizes = [v.aval.size for eqn in program.eqns for v in eqn.outvars]
    assert max(sizes) <= 2000


# ---- logistic -------------------------------------------------------------------------------


def test_logistic_contexts_and_parameter_are_unit_vectors() -> None:
    testbed = TESTBEDS["logistic-20"].build()
    assert testbed.spec == Spec(arms=50, dim=20, shared=True, rewards="bernoulli")
    block = environment(testbed, range(5), 30)
    contexts = np.asarray(block.contexts, np.float64)
    np.testing.assert_allclose(np.linalg.norm(contexts, axis=1), 1.0, rtol=1e-5)
    for seed in range(5):
        theta = np.asarray(testbed.init(jax.random.key(seed)).theta, np.float64)
        assert np.linalg.norm(theta) == pytest.approx(1.0, rel=1e-6)
        # And the one that the means show is a unit vector, too.
        x, _, mean = sides(block, seed)
        features = np.moveaxis(x, 1, 2).reshape(-1, 20)
        logit = np.log(mean / (1 - mean)).ravel()
        solved, *_ = np.linalg.lstsq(features, logit, rcond=None)
        assert np.linalg.norm(solved) == pytest.approx(1.0, rel=1e-4)
        np.testing.assert_allclose(features @ solved, logit, atol=1e-4)


def test_logistic_directions_are_uniform_on_the_sphere() -> None:
    """A coordinate x of a random unit vector in d dimensions: (x+1)/2 ~ Beta((d−1)/2, (d−1)/2)."""
    law = stats.beta(9.5, 9.5).cdf
    contexts = environment(TESTBEDS["logistic-20"].build(), range(4), 50).contexts
    has_law((np.asarray(contexts)[:, 0] + 1) / 2, law)
    has_law((np.asarray(contexts)[:, 7] + 1) / 2, law)


def test_logistic_rewards_are_bernoulli_with_the_mean_they_say() -> None:
    block = environment(Logistic(dim=3, arms=4, norm=3.0), range(50), 200)
    rewards, means = np.asarray(block.rewards, np.float64), np.asarray(block.means, np.float64)
    assert set(np.unique(rewards)) == {0.0, 1.0}
    # One uniform serves all arms of a round, so within a round the larger mean never loses.
    order = np.argsort(means, axis=1)
    assert (np.diff(np.take_along_axis(rewards, order, axis=1), axis=1) >= 0).all()
    # For independent draws take one arm per round, a different one each time.
    arm = np.arange(200)[:, None, None] % 4
    rewards, means = (np.take_along_axis(x, arm, axis=1) for x in (rewards, means))
    edges = np.quantile(means, np.linspace(0, 1, 11))
    for low, high in itertools.pairwise(edges):
        inside = (means >= low) & (means <= high)
        deviation = np.sum(rewards[inside] - means[inside])
        # A sum of independent Bernoulli variables: 5.5 standard deviations, 10 bins, 4e-7 in all.
        assert abs(deviation) < 5.5 * np.sqrt(np.sum((means * (1 - means))[inside]))


# ---- wheel ----------------------------------------------------------------------------------

DELTAS = (0.01, 0.1, 0.5, 0.99)
WHEEL_ROUNDS, WHEEL_SEEDS = 5_000, 100


@pytest.mark.parametrize("delta", DELTAS)
def test_wheel_regrets_are_the_closed_forms(delta: float) -> None:
    """Half a million rounds; within 3 standard errors, 0.27 % each, 2.1 % for all eight."""
    testbed = Wheel(delta=delta)
    mu1, mu2, mu3 = 1.2, 1.0, 50.0
    inner, outer = delta**2, 1 - delta**2
    safe = outer * (mu3 - mu1)
    uniform = 0.8 * inner * (mu1 - mu2) + outer * (mu3 - (mu1 + 3 * mu2 + mu3) / 5)
    for agent, closed_form in ((Witness(arm=0.0), safe), (Uniform(), uniform)):
        outcome = simulate(testbed, agent, rounds=WHEEL_ROUNDS, seeds=range(WHEEL_SEEDS))
        rates = outcome.final_regret[0] / WHEEL_ROUNDS
        error = rates.std(ddof=1) / np.sqrt(WHEEL_SEEDS)
        assert error < 0.01 * closed_form + 0.01, "too noisy to say anything"
        assert abs(rates.mean() - closed_form) < 3 * error


def test_wheel_means_against_the_definition() -> None:
    """Arm by arm and quadrant by quadrant, by plain comparisons."""
    testbed = TESTBEDS["wheel-0.5"].build()
    contexts, rewards, means = environment(testbed, [0, 1], 500)
    for seed in (0, 1):
        for t in range(500):
            x, y = (float(v) for v in contexts[t, :, seed])
            assert x * x + y * y <= 1.0 + 1e-6
            expected = [1.2, 1.0, 1.0, 1.0, 1.0]
            if x * x + y * y > 0.25:
                quadrant = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}
                expected[quadrant[x > 0, y > 0]] = 50.0
            np.testing.assert_allclose(means[t, :, seed], expected, rtol=1e-6)
    noise = np.asarray(rewards, np.float64) - np.asarray(means, np.float64)
    # 50 ± 0.01 in float32 keeps 3 digits of the noise: only its size is compared, to 5 %.
    assert noise.std() == pytest.approx(0.01, rel=0.05)


def test_wheel_contexts_are_uniform_in_the_disc() -> None:
    contexts = np.asarray(environment(Wheel(), range(20), 500).contexts, np.float64)
    x, y = contexts[:, 0].ravel(), contexts[:, 1].ravel()
    has_law(x**2 + y**2, stats.uniform.cdf)
    has_law(np.arctan2(y, x) / (2 * np.pi) + 0.5, stats.uniform.cdf)


def test_wheel_with_intercept_appends_a_one() -> None:
    testbed = Wheel(intercept=True)
    assert testbed.spec.dim == 3
    np.testing.assert_array_equal(environment(testbed, [0], 5).contexts[:, 2], 1.0)


# ---- names ----------------------------------------------------------------------------------

BAD_NAMES = [
    ("linear-0", r"linear-0\.parameters = '0' is not allowed: use a whole number at least 1"),
    ("linear-7.5", r"linear-7\.5\.parameters = '7\.5' is not allowed: use a whole number"),
    ("wheel-0", r"wheel-0\.delta = '0' is not allowed: use a finite number above 0 and at most 1"),
    ("wheel-1.5", r"wheel-1\.5\.delta = '1\.5' is not allowed"),
    ("linear-", "unknown testbed 'linear-': did you mean 'linear-"),
    ("linear-020", "unknown testbed 'linear-020': did you mean 'linear-20'"),
    ("linear-060", "unknown testbed 'linear-060': did you mean 'linear-60'"),
    ("linear-20.0", r"unknown testbed 'linear-20\.0': did you mean 'linear-20'"),
    ("wheel-0.50", r"unknown testbed 'wheel-0\.50': did you mean 'wheel-0\.5'"),
    ("wheel-00.5", r"unknown testbed 'wheel-00\.5': did you mean 'wheel-0\.5'"),
    ("linear--20", "unknown testbed 'linear--20': did you mean 'linear-20'"),
]


@pytest.mark.parametrize(("name", "message"), BAD_NAMES)
def test_bad_numbers_in_names(name: str, message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        TESTBEDS[name].build()


def test_any_number_that_makes_sense_is_a_name() -> None:
    assert float(TESTBEDS["wheel-0.75"].build().delta) == 0.75  # type: ignore[attr-defined]
    assert TESTBEDS["logistic-3"].build().spec.dim == 3
    assert TESTBEDS["linear-35"].build().spec == Spec(arms=5, dim=7)


BAD_SPECS = [({"arms": 1, "dim": 2}, "at least 2 arms"), ({"arms": 2, "dim": 0}, "at least 1 dim")]


@pytest.mark.parametrize(("fields", "message"), BAD_SPECS)
def test_a_spec_that_is_no_bandit_is_refused(fields: dict, message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        Spec(**fields)


def test_spec_counts_parameters_as_the_paper_does() -> None:
    disjoint, shared = Spec(arms=5, dim=4), Spec(arms=50, dim=20, shared=True)
    assert (disjoint.blocks, disjoint.parameters, disjoint.context_shape) == (5, 20, (4,))
    assert (shared.blocks, shared.parameters, shared.context_shape) == (1, 20, (20, 50))
