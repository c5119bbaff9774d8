"""Results that nobody ran: quick to make, with the shapes and the gaps of real ones."""

import dataclasses
import functools
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult, PosteriorAlong
from feelgood.engine.tally import curve_grid
from feelgood.posterior import MEASURES, Analysis, analyse
from feelgood.studies.planning import plan_cells

CLOSED_FORM = ("lints", "linucb", "epsgreedy")
PAPERS_AGENTS = (
    *("lmcts", "plmcts", "fglmcts", "pfglmcts", "sfglmcts", "psfglmcts", "svrglmcts", "malats"),
    *("fgmalats", "sfgmalats", "hmcts", "phmcts", "fghmcts", "pfghmcts", "sfghmcts", "psfghmcts"),
    *CLOSED_FORM,
)
#: Rounds at which posteriors are measured along a run.
MEASURED = np.array([100, 200, 400])


def made_up(
    agent: str,
    testbed: str = "linear-20",
    *,
    level: float = 100.0,
    seeds: int = 6,
    rounds: int = 1_000,
    settings: Mapping[str, Any] | None = None,
    testbed_settings: Mapping[str, Any] | None = None,
    diverged: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> AgentResult:
    """Logarithmic regret around `level`; the first `diverged` chains end half way."""
    rng = np.random.default_rng(zlib.crc32(f"{agent} {testbed}".encode()))
    grid = curve_grid(rounds)
    final = level * np.exp(0.25 * rng.standard_normal(seeds))
    curve = final[:, None] * np.log1p(grid / 30) / np.log1p(rounds / 30)
    diverged_at = np.full(seeds, -1)
    diverged_at[:diverged] = rounds // 2
    curve[:diverged, len(grid) // 2 :] = np.nan
    size = (seeds, len(grid))
    health = {}
    if agent not in CLOSED_FORM:
        health = {
            "step": np.tile(0.5 / np.sqrt(grid), (seeds, 1)),
            "gradients": np.full(size, 25.0),
        }
        if "mala" in agent or "hmc" in agent:
            health["acceptance"] = np.clip(0.8 + 0.1 * rng.standard_normal(size), 0, 1)
            health["divergences"] = np.zeros(size)
    return AgentResult(
        agent=agent,
        testbed=testbed,
        settings={"eta": 1.0} if settings is None else settings,
        testbed_settings={"arms": 5} if testbed_settings is None else testbed_settings,
        rounds=rounds,
        seeds=tuple(range(seeds)),
        final_regret=curve[:, -1],
        simple_regret=curve[:, -1] / 20,
        best_arm_rate=np.full(seeds, 0.9),
        arm_counts=np.full((seeds, 5), rounds // 5),
        curve_rounds=grid,
        curve=curve,
        health=health,
        ess=80 + 20 * rng.standard_normal(seeds) if health else np.full(seeds, np.nan),
        diverged_at=diverged_at,
        compile_s=1.2,
        run_s=3.4,
        provenance=provenance or {},
    )


def main_table(seeds: int, rounds: int = 10_000) -> list[AgentResult]:
    """19 agents on 4 testbeds."""
    return [
        made_up(agent, testbed, level=scale * (40 + 9 * i), seeds=seeds, rounds=rounds)
        for testbed, scale in (("linear-20", 1), ("linear-40", 2), ("logistic-20", 5), ("wheel", 9))
        for i, agent in enumerate(PAPERS_AGENTS)
    ]


def swept() -> list[AgentResult]:
    """λ × β of one agent, λ of two others, one without a sweep."""
    lams, betas = (0.0, 0.1, 0.5), (1.0, 1000.0)
    return [
        *(
            made_up("fglmcts", level=100 * (1 + lam), settings={"lam": lam, "beta": beta})
            for lam in lams
            for beta in betas
        ),
        *(
            made_up(agent, level=80 * (1 + lam), settings={"lam": lam, "beta": 1.0})
            for agent in ("pfglmcts", "fghmcts")
            for lam in lams
        ),
        made_up("lints"),
    ]


@functools.cache
def small_analysis() -> Analysis:
    """Two agents' posteriors, the second at another temperature; run once for all tests."""
    return analyse(
        ["lints", "lmcts"],
        testbed="linear-20",
        rounds=60,
        draws=80,
        chains=10,
        steps=5,
        settings={"lmcts": {"beta": 0.5}},
    )


def with_posterior(result: AgentResult, wrong: float) -> AgentResult:
    """Draws whose variance ratio is off by `wrong`, and that choose wrong arms as often."""
    size = (len(result.seeds), len(MEASURED))
    value = {name: np.full(size, 0.1) for name in MEASURES}
    expected = {name: np.full(size, 0.1) for name in MEASURES}
    value["trace"], expected["trace"] = np.full(size, 1.0 + wrong), np.ones(size)
    value["choice"] = np.full(size, np.hypot(wrong, 0.1))
    error = {name: np.full(size, 0.02) for name in MEASURES}
    error["rhat"] = np.full(size, np.nan)
    along = PosteriorAlong(rounds=MEASURED, value=value, expected=expected, error=error)
    return dataclasses.replace(result, posterior=along)


def measured(agents: int) -> list[AgentResult]:
    """The more wrong, the more regret; the regret of `made_up` varies by a quarter."""
    names = ("lints", "lmcts", "malats", "hmcts", "plmcts", "ulmcts", "phmcts")
    return [
        with_posterior(made_up(name, level=20.0 * 3**i, seeds=5), wrong=0.1 * i)
        for i, name in enumerate(names[:agents])
    ]


#: A name that would do harm as markup.
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028<!--"


def few() -> list[AgentResult]:
    """Three agents on one testbed, one of them on another too; two chains diverged."""
    return [
        made_up("malats", diverged=2),
        made_up("lmcts", level=60.0),
        made_up("lints", level=50.0),
        made_up("malats", "linear-40"),
    ]


def as_published(agent: str, rounds: int, **more: Any) -> AgentResult:
    """A made-up result with exactly the settings of the paper's preset."""
    more = {"preset": "paper", **more}
    (cell,) = plan_cells("linear-20", agent, rounds=rounds, seeds=5, **more)
    made = made_up(agent, rounds=rounds, seeds=5, settings=cell.settings)
    return dataclasses.replace(made, testbed_settings=cell.testbed_settings)


def data_of(text: str) -> dict[str, Any]:
    """What a page was made from."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert isinstance(data, dict)
    return data
