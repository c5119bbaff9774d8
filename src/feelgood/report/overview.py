"""What the page says first: what was run, who may be the best, what went wrong."""

from collections.abc import Sequence
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.posterior import AgentPosterior, Analysis
from feelgood.report.published_comparisons import (
    PublishedComparison,
    about_networks,
    counts,
)
from feelgood.report.ranking import common_seeds, values_at
from feelgood.report.series import Series, by_mean, one_curve
from feelgood.stats.ranks import rank


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def lede(results: Sequence[AgentResult], problems: int, analyses: Sequence[Analysis]) -> str:
    """How much the page is about."""
    parts = []
    if results:
        parts += [
            _plural(len({r.agent for r in results}), "agent"),
            _plural(problems, "testbed"),
            _plural(len(results), "setting"),
            _plural(sum(len(r.seeds) for r in results), "chain"),
        ]
    if analyses:
        count = sum(len({a.agent for a in analysis.agents}) for analysis in analyses)
        parts.append("posteriors of " + _plural(count, "agent"))
    return ", ".join(parts)


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} – {high:,}"


def _facts(results: Sequence[AgentResult], testbeds: int) -> list[tuple[str, str]]:
    diverged = sum(int((r.diverged_at >= 0).sum()) for r in results)
    return [
        ("agents", f"{len({r.agent for r in results})}"),
        ("testbeds", f"{testbeds}"),
        ("seeds", _range([len(r.seeds) for r in results])),
        ("rounds", _range([r.rounds for r in results])),
        ("chains", f"{sum(len(r.seeds) for r in results):,}"),
        ("diverged chains", f"{diverged:,}"),
    ]


def _analysis_facts(analyses: Sequence[Analysis]) -> list[tuple[str, str]]:
    draws = sum(a.draws.shape[0] * a.draws.shape[1] for one in analyses for a in one.agents)
    return [
        ("agents", f"{len({a.agent for one in analyses for a in one.agents})}"),
        ("rounds", _range([one.rounds for one in analyses])),
        ("draws", f"{draws:,}"),
    ]


def overview(
    groups: Sequence[Sequence[Series]],
    comparisons: Sequence[PublishedComparison],
    analyses: Sequence[Analysis],
) -> dict[str, Any]:
    """Facts, warnings and verdicts."""
    series = [s for group in groups for s in group]
    results = [s.result for s in series]
    done = [c for c in comparisons if c.ours is not None]
    facts = _facts(results, len(groups)) if results else _analysis_facts(analyses)
    verdicts = [(group[0].problem, _verdict(group)) for group in groups]
    if done:
        verdicts.append(
            ("the paper", f"{counts(done)} (published numbers beside ours).{about_networks(done)}")
        )
    verdicts += [
        (f"draws of {a.agent}", f"{a.verdict.sentence} ({_law(a)}, seed {a.seed})")
        for one in analyses
        for a in one.agents
    ]
    warnings = [
        f"{s.label} on {s.problem}: {s.result.status}" for s in series if s.result.status != "ok"
    ]
    warnings += [
        f"{' = '.join(same)} on {group[0].problem}: their regret is the same in every round of "
        "every seed, so that their curves lie on each other."
        for group in groups
        for same in one_curve(group)
    ]
    most = 12
    if len(warnings) > most:
        warnings = [*warnings[:most], f"and {len(warnings) - most} more: see the tables."]
    return {
        "about": "Who has the lowest regret, and how sure that is: paired tests over common seeds, "
        "corrected for the number of agents."
        if results
        else "Whether the agents' draws are what they should be, within Monte Carlo error.",
        "facts": facts,
        "warnings": warnings,
        "verdicts": verdicts,
    }


def _law(a: AgentPosterior) -> str:
    return "against its own target" if "target" in a.comparisons else "against the posterior"


def _verdict(group: Sequence[Series]) -> str:
    """The ranking of one problem in a sentence."""
    best = min(group, key=by_mean)
    if len(group) == 1:
        return f"only {best.label} was run."
    try:
        seeds = common_seeds([s.result for s in group])
        ranking = rank({s.label: values_at(s.result, seeds) for s in group})
    except FeelgoodError as error:
        return f"no ranking: {error}"
    if ranking.winner is not None:
        return ranking.verdict
    left = [s.name for s in ranking.standings if s.may_be_best]
    # Labels hold commas.
    shown = "; ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
    return (
        f"no winner: {shown or 'none of them'} may be the best "
        f"(level {ranking.level:g}, {ranking.seeds} seeds)."
    )
