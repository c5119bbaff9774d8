"""The problems of the released code are what it says they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feelgood
from feelgood.core.errors import FeelgoodError
from feelgood.core.testbed import TESTBEDS
from feelgood.engine.environment import environment
from feelgood.released.torch_normals import TorchNormals

#: From PyTorch 2.13 itself: manual_seed(s), x = randn(10000, 1, p), θ = randn(d, 1). The first
#: three and the last two of x, entries 0, 1, 4, 5, −17, −16 and −1 of θ, Σ|x| and Σ|θ|.
FROM_TORCH = {
    (0, 4, 20): (
        [-1.12584, -1.15236, -0.250579, 1.220594, 1.034611],
        [-0.086749, -0.002385, -1.605111, 1.069316, -1.484388, -1.605111, -0.092601],
        (32013.705, 14.756155),
    ),
    (9, 4, 20): (
        [-1.067395, -0.717245, 1.089719, -0.066838, -1.07321],
        [-0.655018, -0.047472, -0.430107, 1.849683, -0.051841, -0.430107, 1.201712],
        (31855.715, 13.875756),
    ),
    (3, 8, 40): (
        [-0.076644, 0.359882, -0.782017, -1.444944, -0.049281],
        [-0.350867, -0.289156, 0.406041, -0.174467, -0.590926, -2.177285, 1.274682],
        (63588.26, 24.120388),
    ),
}


@pytest.mark.parametrize(("seed", "dim", "parameters"), FROM_TORCH)
def test_numbers_are_those_of_pytorch(seed: int, dim: int, parameters: int) -> None:
    contexts, theta, (size_of_x, size_of_theta) = FROM_TORCH[seed, dim, parameters]
    stream = TorchNormals(seed)
    x, true = stream.randn(10_000 * dim), stream.randn(parameters)
    np.testing.assert_allclose(x[[0, 1, 2, -2, -1]], contexts, atol=2e-6)
    np.testing.assert_allclose(true[[0, 1, 4, 5, -17, -16, -1]], theta, atol=2e-6)
    assert np.abs(x.astype(np.float64)).sum() == pytest.approx(size_of_x, rel=1e-7)
    assert np.abs(true.astype(np.float64)).sum() == pytest.approx(size_of_theta, rel=1e-6)


def test_all_numbers_are_those_of_pytorch_where_it_is_installed() -> None:
    torch = pytest.importorskip("torch")
    for seed in range(10):
        torch.manual_seed(seed)
        x, theta = torch.randn(10_000, 1, 4).numpy(), torch.randn(20, 1).numpy()
        stream = TorchNormals(seed)
        np.testing.assert_allclose(stream.randn(40_000), x.reshape(-1), atol=1e-6)
        np.testing.assert_allclose(stream.randn(20), theta.reshape(-1), atol=1e-6)


def test_seeds_play_the_ten_instances_in_turn() -> None:
    """Contexts and means of seed s are those of instance s mod 10; the noise is the seed's own."""
    testbed = TESTBEDS["released-linear-20"].build()
    block = environment(testbed, [3, 13, 4], 50)
    stream = TorchNormals(3)
    contexts = stream.randn(40_000).reshape(10_000, 4)[:50]
    theta = stream.randn(20)
    np.testing.assert_allclose(block.contexts[..., 0], contexts, atol=1e-6)
    features = np.stack([np.kron(np.eye(5)[a], contexts) for a in range(5)], axis=1)
    np.testing.assert_allclose(block.means[..., 0], features @ theta, atol=1e-5)
    np.testing.assert_array_equal(block.means[..., 0], block.means[..., 1])
    assert np.abs(block.means[..., 0] - block.means[..., 2]).max() > 0.1
    noise = np.asarray(block.rewards - block.means)
    assert np.abs(noise[..., 0] - noise[..., 1]).max() > 0.1
    # Over 150 draws: a standard deviation beyond these bounds has probability below 1e-6.
    assert 0.35 < noise[:, 0].std() < 0.65


def test_after_the_last_round_the_contexts_come_again() -> None:
    testbed = TESTBEDS["released-linear-20"].build()
    state = testbed.begin(jax.random.key(0), jnp.uint32(7))
    first, again = (testbed.context(jax.random.key(1), state, jnp.asarray(t)) for t in (2, 10_002))
    np.testing.assert_array_equal(first, again)
    any_instance = testbed.init(jax.random.key(5))
    assert 0 <= int(any_instance.number) < 10


def test_an_uneven_split_is_refused() -> None:
    with pytest.raises(FeelgoodError, match="cannot be split over 3 arms: use a multiple of 3"):
        TESTBEDS["released-linear-20"].build({"arms": 3})


def test_logistic_parameters_are_not_scaled() -> None:
    """‖θ*‖² of 200 seeds is χ² with 20 degrees: mean 20 ± 0.45; 5 of these have p < 1e-6."""
    testbed = TESTBEDS["released-logistic-20"].build()
    right = TESTBEDS["logistic-20"].build()
    keys = jax.random.split(jax.random.key(0), 200)
    lengths = jax.vmap(lambda k: jnp.sum(testbed.init(k).theta ** 2))(keys)
    assert abs(float(lengths.mean()) - 20.0) < 5 * 0.45
    np.testing.assert_allclose(jnp.sum(right.init(keys[0]).theta ** 2), 1.0, rtol=1e-5)


@pytest.mark.parametrize("scaling", ["arms", "matrix"])
def test_logistic_contexts(scaling: str) -> None:
    """Each column of length 1, or the largest singular value 1; the law of rewards is σ(x·θ)."""
    testbed = TESTBEDS["released-logistic-20"].build({"scaling": scaling})
    state = testbed.init(jax.random.key(0))
    x = np.asarray(testbed.context(jax.random.key(1), state, jnp.asarray(0)), np.float64)
    lengths = np.linalg.norm(x, axis=0)
    if scaling == "arms":
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-5)
    else:
        assert np.linalg.svd(x, compute_uv=False)[0] == pytest.approx(1.0, rel=1e-5)
        assert lengths.max() < 0.9
    means = testbed.mean_rewards(state, jnp.asarray(x, jnp.float32), jnp.asarray(0))
    want = 1.0 / (1.0 + np.exp(-(x.T @ np.asarray(state.theta, np.float64))))
    np.testing.assert_allclose(means, want, rtol=1e-5)


def test_the_wheel_is_none() -> None:
    """No context and no δ: every wrong arm costs 0.9, so that arm 0 costs 54 in 60 rounds."""
    for delta in ("0.01", "0.99"):
        testbed = TESTBEDS[f"released-wheel-{delta}"].build()
        block = environment(testbed, [0], 60)
        want = np.tile([0.1, 0.1, 0.1, 0.1, 1.0], (60, 1))
        np.testing.assert_allclose(block.means[..., 0], want)
        regret = np.asarray(block.means[:, 4, 0] - block.means[:, 0, 0]).sum()
        assert regret == pytest.approx(54.0, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("testbed", "agent", "published"),
    [
        ("released-linear-20", "linucb", 73.0),
        ("released-linear-20", "lints", 114.7),
        ("released-linear-40", "linucb", 126.3),
        ("released-linear-40", "lints", 204.6),
    ],
)
def test_published_means_on_the_ten_instances(testbed: str, agent: str, published: float) -> None:
    """Ten runs of each instance, published is one: 4 standard errors of the difference."""
    settings = {"linucb": {"alpha": 1.0}} if agent == "linucb" else {}
    (result,) = feelgood.run(
        testbed, [agent], rounds=10_000, seeds=100, preset="paper", settings=settings
    )
    within = result.final_regret.reshape(10, 10)  # runs × instances
    error = within.std(axis=0, ddof=1).mean() / np.sqrt(10)
    assert abs(result.final_regret.mean() - published) < 4 * error * np.sqrt(1.1)
