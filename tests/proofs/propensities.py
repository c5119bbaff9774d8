"""Comparisons of the arms that agents play with the probabilities that they say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from proofs.levels import Check, close, generator_for, key_for
from rounds import decide
from scipy import stats
from taught import SPECS, contexts, taught

from feelgood import Policy, Spec
from feelgood.core.score_law import ScoreLaw
from feelgood.stats.choice_probabilities import choice_probabilities
from feelgood.stats.counts_of_law import p_of_counts
from feelgood.stats.independent_scores import independent_choices

#: Small networks, wide enough that no arm's features are all 0: no scale is learned from these.
#: None learns in the round that is looked at, unless a test says so.
SMALL = {"layers": "20", "batch": 4, "updates": 2, "update_every": 1_000}
#: Least expected count of a class of Pearson's test.
LEAST = 25.0


def chi_square_is(label: str, counts: np.ndarray, law: np.ndarray) -> Check:
    """Pearson's χ² of counts; rare arms are one class."""
    expected = law * counts.sum()
    order = np.argsort(expected)
    ends = np.flatnonzero(np.cumsum(expected[order]) >= LEAST)
    rare = order[: ends[0] + 1]
    rest = order[ends[0] + 1 :]
    seen = np.append(counts[rest], counts[rare].sum())
    want = np.append(expected[rest], expected[rare].sum())
    if len(seen) == 1:
        return close(label, seen, want, 0.5)
    return Check(
        label, p_value=float(stats.chi2.sf(np.sum((seen - want) ** 2 / want), len(seen) - 1))
    )


def law_of_counts(label: str, counts: np.ndarray, law: np.ndarray) -> list[Check]:
    """Exact binomial tests of every count, and Pearson's χ² of all."""
    return [
        Check(f"{label}, counts", p_value=p_of_counts(counts, law)),
        chi_square_is(f"{label}, χ²", counts, law),
    ]


def played(
    policy: Policy, spec: Spec, state: Any, shown: Any, count: int, label: str
) -> tuple[np.ndarray, ScoreLaw]:
    """Arms of `count` rounds from one state in each context, and the law of each decision."""
    scores = policy.hints(spec).scores
    assert scores is not None

    @jax.jit
    def rounds(keys: Any, shown: Any) -> Any:
        def one(key: Any, context: Any) -> Any:
            arm, drawn = decide(policy, spec, key, state, context)
            return arm, scores(drawn, context)

        return jax.vmap(jax.vmap(one, (0, None)))(keys, shown)

    keys = jax.random.split(key_for(label), (len(shown), count))
    return jax.tree.map(np.asarray, rounds(keys, jnp.asarray(shown)))


def same_law(laws: ScoreLaw) -> bool:
    return all(np.all(leaf == leaf[:1]) for leaf in jax.tree.leaves(laws))


def one_of(laws: ScoreLaw, i: int) -> ScoreLaw:
    return jax.tree.map(lambda leaf: leaf[i], laws)


def uniform_places(arms: np.ndarray, laws: ScoreLaw, label: str) -> np.ndarray:
    """Where each arm is in its own law's distribution function: uniform, if the laws are right."""
    if laws.freedom is None and laws.root is None:
        pmf = independent_choices(*(np.float64(leaf) for leaf in (laws.mean, laws.deviation)))
    else:
        arms = arms[: max(50, len(arms) // 100)]
        pmf = np.stack([choice_probabilities(one_of(laws, i)).pmf for i in range(len(arms))])
    below = np.cumsum(pmf, axis=1) - pmf
    rows, u = np.arange(len(arms)), generator_for(label).random(len(arms))
    return below[rows, arms] + u * pmf[rows, arms]


def propensity_checks(
    name: str, problem: str, decisions: int, rounds: int = 12, **settings: Any
) -> list[Check]:
    """Of rounds from one state in three contexts; each has a third of the decisions."""
    spec, shown = SPECS[problem], contexts(SPECS[problem], 3, seed=5)
    if "neural" in name:
        settings = SMALL | settings
    told = taught(name, spec, rounds, **settings)
    label, checks = f"propensities, {name}, {problem}, {settings}", []
    every = played(told.policy, spec, told.state, shown, decisions // 3, label)
    for number in range(len(shown)):
        where = f"{label}, {number}"
        arms, laws = jax.tree.map(lambda leaf, i=number: leaf[i], every)
        if same_law(laws):
            pmf = choice_probabilities(one_of(laws, 0)).pmf
            checks += law_of_counts(where, np.bincount(arms, minlength=spec.arms), pmf)
            continue
        bins = np.floor(8.0 * uniform_places(arms, laws, where)).astype(int)
        checks += law_of_counts(where, np.bincount(bins, minlength=8), np.full(8, 1 / 8))
    return checks
