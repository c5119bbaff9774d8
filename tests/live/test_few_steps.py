"""What makes a live call quick changes nothing: words in place, plain calls, rare work left out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feelgood
from feelgood.targets.scales import due

RNG = np.random.default_rng(3)
X, R = RNG.normal(size=(60, 2)), RNG.normal(size=60)


def made(agent: str = "lints", **more: Any) -> feelgood.Bandit:
    return feelgood.Bandit(agent, ["a", "b", "c"], 2, seed=6, **more)


def same(one: feelgood.Bandit, other: feelgood.Bandit) -> bool:
    a, b = one._state.saved(), other._state.saved()
    leaves = [name for name in a.arrays if name != "waiting/times"]
    return a.manifest == b.manifest and all(
        np.array_equal(a.arrays[name], b.arrays[name]) for name in leaves
    )


@pytest.mark.parametrize(
    "agent",
    ["lints", pytest.param("squarecb", marks=pytest.mark.slow)],
)
def test_a_decision_keeps_the_law_of_its_own_moment(agent: str) -> None:
    """However much is learned before somebody asks for the probability."""
    bandit, twin, expected, kept = made(agent), made(agent), [], []
    for x, r in zip(X, R, strict=True):
        expected.append(twin.pmf(x))
        kept.append(bandit.act(x))
        for one in (bandit, twin):
            own = kept[-1].id if one is bandit else twin.act(x).id
            one.update(own, r)
            if len(kept) % 7 == 0:
                one.act(X[:2])  # draws in between
    for decision, law in zip(kept, expected, strict=True):
        assert law is not None and np.array_equal(decision.pmf, law)
    assert not np.array_equal(expected[0], expected[-1])


def test_arrays_lists_and_other_numbers_are_the_same() -> None:
    plain, others = made(), made()
    for i, (x, r) in enumerate(zip(X.astype(np.float32), R, strict=True)):
        one = plain.act(x.astype(np.float64))
        two = others.act([x.tolist(), tuple(x.tolist()), x][i % 3])
        assert (one.id, one.arm, one.version) == (two.id, two.arm, two.version)
        plain.update(one.id, float(r))
        others.update(*((np.int64(two.id), np.float64(r), 1), ([two.id], [r]))[i % 2])
    assert same(plain, others)


def test_rare_work_is_done_when_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise and prior are estimated anew after 1, …, 8, 10, 12, 14, 16, 20, … rewards."""
    sparing, full = made(), made()
    programs = sparing._state.player.programs
    assert programs.learn_fully is not None
    done, learn = [], programs.learn_fully

    def counted(*arguments: Any) -> Any:
        done.append(sparing.version + 1)
        return learn(*arguments)

    monkeypatch.setattr(programs, "learn_fully", counted)
    alone = full._state.player.programs
    monkeypatch.setattr(alone, "learn", alone.learn_fully)
    for x, r in zip(X, R, strict=True):
        one, two = sparing.act(x), full.act(x)
        assert one.arm == two.arm
        sparing.update(one.id, r)
        full.update(two.id, r)
    assert done == [n for n in range(1, 61) if due(jnp.asarray(n))] and len(done) == 19
    a, b = (bandit._state.saved().arrays for bandit in (sparing, full))
    for name in (name for name in a if name.startswith("state/")):
        np.testing.assert_allclose(a[name], b[name], rtol=2e-5, atol=1e-6)


def test_a_program_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where it had changed the words before it failed."""
    bandit, twin = made(), made()
    for x, r in zip(X[:10], R, strict=False):
        assert bandit.act(x).arm == twin.act(x).arm
        bandit.update(bandit.waiting[0], r)
        twin.update(twin.waiting[0], r)
    programs = bandit._state.player.programs
    calls = {"learn": lambda: bandit.learn(X[0], "a", 1.0), "draw": lambda: bandit.act(X[:3])}
    for name, call in calls.items():
        real = getattr(programs, name)

        def failing(*arguments: Any, real: Any = real) -> Any:
            real(*arguments)
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(programs, name, failing)
            with pytest.raises(MemoryError):
                call()
    assert same(bandit, twin)
    assert [d.arm for d in bandit.act(X)] == [d.arm for d in twin.act(X)]


def test_a_snapshot_has_memory_of_its_own() -> None:
    bandit, twin = made(), made()
    copy = bandit.snapshot()
    before = copy._state.saved().arrays
    for x, r in zip(X, R, strict=True):
        one, two = bandit.act(x), twin.act(x)
        copy.act(-x)
        bandit.update(one.id, r)
        twin.update(two.id, r)
    assert same(bandit, twin)
    after = copy._state.saved().arrays
    changed = {n for n in before if n.startswith("state/")}
    drawn = {n for n in changed if not np.array_equal(before[n], after[n])}
    assert len(drawn) == 1  # its own draws of θ, and nothing that was learned


def test_no_request_compiles_anything() -> None:
    """All was compiled when the bandit was made, but for rare calls such as `save`."""
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    bandit = made()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for i in range(70):  # more rounds than there are random numbers drawn ahead
            decision = bandit.act(X[i % 60])
            bandit.update(decision.id, R[i % 60])
        several = bandit.act(X[:3], mask=["a", "c"])
        bandit.update([d.id for d in several], R[:3], 2.0)
        bandit.learn(X[:2], ["a", "b"], R[:2])
        assert bandit.pmf(X[0]) is not None and several[0].probability is not None
        bandit.remove_arm("b")
        bandit.expire(bandit.act(X[0]).id)
        assert not compiled
        jax.jit(lambda x: x + 1.25)(R)
        assert compiled  # it is heard
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
