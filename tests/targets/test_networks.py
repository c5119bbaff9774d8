"""The network: its block first layer, its gradients, and what the agents take from them."""

import math
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but

from feelgood import FeelgoodError, Spec
from feelgood.targets import networks
from feelgood.targets.networks import Network, parse_layers

SPECS = {
    "disjoint": Spec(arms=3, dim=4),
    "shared": Spec(arms=3, dim=4, shared=True),
}
EVERY = pytest.mark.parametrize(
    ("kind", "layers", "activation"),
    slow_but(
        [("disjoint", (5,), "leaky"), ("shared", (5, 4), "leaky")],
        [
            ("disjoint", (5,), "leaky"),
            ("disjoint", (4, 3, 5), "relu"),
            ("shared", (5,), "relu"),
            ("shared", (5, 4), "leaky"),
        ],
    ),
)


def explicit(network: Network, theta: np.ndarray, feature: np.ndarray) -> float:
    """f on the feature x ⊗ e_a, written out: every layer a matrix, in float64."""
    spec = network.spec
    ends = np.cumsum([math.prod(shape) for shape in network.shapes])[:-1]
    parts = [
        part.reshape(shape)
        for part, shape in zip(np.split(theta, ends), network.shapes, strict=True)
    ]
    depth = len(network.layers)
    blocks = parts[0].reshape(spec.dim, spec.blocks, -1)
    first = np.concatenate([blocks[:, a] for a in range(spec.blocks)])
    layer = feature
    for matrix, bias in zip((first, *parts[1:depth]), parts[depth:-1], strict=True):
        before = layer @ matrix + bias
        floor = 0.0 if network.activation == "relu" else 0.01 * before
        layer = np.maximum(before, floor)
    return float(layer @ parts[-1])


def feature_of(spec: Spec, context: np.ndarray, arm: int) -> np.ndarray:
    """x ⊗ e_a, or what the arm shows."""
    if spec.shared:
        return context[:, arm]
    return np.kron(np.eye(spec.arms)[arm], context)


def example(
    kind: str, layers: tuple[int, ...], activation: str
) -> tuple[Network, jax.Array, np.ndarray]:
    spec = SPECS[kind]
    network = Network(spec=spec, layers=layers, activation=activation)  # type: ignore[arg-type]
    theta = network.init(jax.random.key(1))
    contexts = np.random.default_rng(2).normal(size=(7, *spec.context_shape)).astype(np.float32)
    return network, theta, contexts


@EVERY
def test_block_first_layer_is_the_explicit_feature(
    kind: str, layers: tuple[int, ...], activation: str
) -> None:
    network, theta, contexts = example(kind, layers, activation)
    spec = network.spec
    rows = jnp.stack([network.row(jnp.asarray(x)) for x in contexts])
    weights = network.split(theta)
    every, _ = network.forward(weights, rows)
    played, _ = network.forward(weights, rows, jnp.arange(len(rows)) % spec.arms)
    for i, x in enumerate(contexts):
        want = [
            explicit(network, np.asarray(theta), feature_of(spec, x, a)) for a in range(spec.arms)
        ]
        np.testing.assert_allclose(every[i], want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            network.scores(theta, jnp.asarray(x)), want, rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(played[i, 0], want[i % spec.arms], rtol=1e-5, atol=1e-6)


@EVERY
def test_gradients_by_finite_differences(
    kind: str, layers: tuple[int, ...], activation: str
) -> None:
    network, theta, contexts = example(kind, layers, activation)
    spec = network.spec
    rows = jnp.stack([network.row(jnp.asarray(x)) for x in contexts])
    weights = network.split(theta)
    slopes = np.random.default_rng(3).normal(size=(len(rows), spec.arms)).astype(np.float32)
    _, tape = network.forward(weights, rows)
    gradient = network.backward(weights, tape, jnp.asarray(slopes))
    picked = jnp.arange(len(rows)) % spec.arms
    _, short = network.forward(weights, rows, picked)
    one_arm = network.backward(weights, short, jnp.asarray(slopes[:, :1]))

    def total(vector: np.ndarray, weight: np.ndarray) -> float:
        return sum(
            weight[i, a] * explicit(network, vector, feature_of(spec, x, a))
            for i, x in enumerate(contexts)
            for a in range(spec.arms)
        )

    single = np.eye(spec.arms)[picked] * slopes[:, :1]
    point, step = np.asarray(theta, np.float64), 1e-6
    for got, chosen in ((gradient, slopes), (one_arm, single)):
        weight = np.asarray(chosen, np.float64)
        moves = step * np.eye(network.parameters)
        want = [(total(point + m, weight) - total(point - m, weight)) / (2 * step) for m in moves]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@EVERY
def test_factors_are_the_gradient_of_each_arm(
    kind: str, layers: tuple[int, ...], activation: str
) -> None:
    network, theta, contexts = example(kind, layers, activation)
    spec = network.spec
    context = jnp.asarray(contexts[0])
    gradients = jax.jacobian(lambda v: network.scores(v, context))(theta)
    scores, factors = network.factors(theta, context)
    np.testing.assert_allclose(scores, network.scores(theta, context), rtol=1e-6)
    scales = jax.random.uniform(jax.random.key(4), (network.parameters,))
    want = np.sum(np.asarray(scales) * np.asarray(gradients) ** 2, axis=1)
    np.testing.assert_allclose(network.squared_norms(factors, scales), want, rtol=1e-4)
    for a in range(spec.arms):
        square = network.squared_gradient(factors, jax.nn.one_hot(a, spec.arms))
        np.testing.assert_allclose(square, gradients[a] ** 2, rtol=1e-4, atol=1e-8)


def test_layout_of_the_vector() -> None:
    network = Network(spec=SPECS["disjoint"], layers=(5, 2))
    assert network.parameters == 4 * 3 * 5 + 5 * 2 + 5 + 2 + 2
    theta = jnp.arange(1.0 * network.parameters)
    np.testing.assert_array_equal(network.join(network.split(theta)), theta)


def test_no_bias_in_the_output() -> None:
    """With all biases 0 the network is homogeneous: f(0) = 0 and f(2x) = 2f(x)."""
    network, theta, contexts = example("disjoint", (5, 4), "leaky")
    weights = network.split(theta)
    bare = network.join(weights._replace(biases=tuple(0.0 * b for b in weights.biases)))
    x = jnp.asarray(contexts[0])
    np.testing.assert_array_equal(network.scores(bare, 0.0 * x), np.zeros(3))
    np.testing.assert_allclose(network.scores(bare, 2.0 * x), 2.0 * network.scores(bare, x), 1e-5)


def test_layers_are_read_and_refused() -> None:
    assert parse_layers("100-50-25") == (100, 50, 25)
    with pytest.raises(FeelgoodError, match="make no network"):
        Network(spec=SPECS["disjoint"], layers=())


# ---- many inputs ----------------------------------------------------------------------------


def test_what_is_wide() -> None:
    """Many inputs, and little besides: narrow ones and contexts per arm keep their form."""
    wide = Network(spec=Spec(arms=3, dim=300), layers=(8, 5))
    assert wide.wide
    assert not Network(spec=Spec(arms=3, dim=networks.MANY_INPUTS - 1), layers=(8, 5)).wide
    assert not Network(spec=Spec(arms=3, dim=300, shared=True), layers=(8, 5)).wide
    assert not Network(spec=Spec(arms=3, dim=300), layers=(8, 500, 5)).wide
    assert wide.room % (networks.ROWS * wide.columns) == 0
    assert 0 <= wide.room - wide.parameters < networks.ROWS * wide.columns
    theta = jnp.arange(1.0 * wide.parameters)
    np.testing.assert_array_equal(wide.join(wide.split(theta)), theta)
    np.testing.assert_array_equal(wide.join(wide.split(wide.widened(theta))), theta)


@pytest.mark.slow
@pytest.mark.parametrize("widths", ["5", "6-4", "4-3-5"])
def test_a_wide_network_is_the_narrow_one(widths: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores, gradients, factors; of vectors with zeros behind and without."""
    network = Network(spec=Spec(arms=3, dim=300), layers=parse_layers(widths))
    rng = np.random.default_rng(5)
    theta = 3.0 * network.init(jax.random.key(5))
    contexts = jnp.asarray(rng.normal(size=(9, 300)), jnp.float32)
    slopes = jnp.asarray(rng.normal(size=(9, 3)), jnp.float32)
    picked, second = jnp.arange(9) % 3, jax.nn.one_hot(1, 3)

    def everything(theta: jax.Array) -> list[jax.Array]:
        rows, weights = jax.vmap(network.row)(contexts), network.split(theta)
        scores, tape = network.forward(weights, rows)
        played, short = network.forward(weights, rows, picked)
        found, factors = network.factors(theta, contexts[0])
        gradients = [
            network.backward(weights, tape, slopes),
            network.backward(weights, short, slopes[:, :1]),
            network.squared_gradient(factors, second),
        ]
        cut = [gradient[: network.parameters] for gradient in gradients]
        return [scores, played, found, network.squared_norms(factors, jnp.abs(theta)), *cut]

    assert network.wide
    wide, padded = (jax.jit(everything)(v) for v in (theta, network.widened(theta)))
    weights, rows = network.split(theta), jax.vmap(network.row)(contexts)
    whole = network.backward(weights, network.forward(weights, rows)[1], slopes)
    np.testing.assert_array_equal(whole[network.parameters :], 0.0)
    monkeypatch.setattr(networks, "MANY_INPUTS", 10**6)
    assert not network.wide
    for old, *new in zip(everything(theta), wide, padded, strict=True):
        for got in new:
            np.testing.assert_allclose(got, old, rtol=1e-5, atol=1e-5 * np.abs(old).max())


def test_steps_of_a_wide_network_copy_nothing() -> None:
    """Of all that is as large as W₁, only the gradient is written."""
    network = Network(spec=Spec(arms=3, dim=300), layers=(8, 5))
    rows, theta = jnp.zeros((9, network.width)), jnp.zeros(network.room)

    def gradient(theta: jax.Array) -> jax.Array:
        weights = network.split(theta)
        return network.backward(weights, network.forward(weights, rows)[1], jnp.ones((9, 3)))

    used = jax.jit(gradient).lower(theta).as_text().split("\n")
    large = Counter(
        name
        for line in used
        for name, size in re.findall(r"stablehlo\.(\w+).*-> tensor<([\dx]+)xf32>$", line)
        if math.prod(map(int, size.split("x"))) >= 300 * network.columns
    )
    del large["reshape"]  # of what lies in order, which costs nothing
    assert large == {"dot_general": 1, "dynamic_update_slice": 1}
