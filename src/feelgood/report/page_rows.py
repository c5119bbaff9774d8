"""Rows of the page's tables."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.core.numbers import rounded, setting_text
from feelgood.report.aggregates import regret_interval
from feelgood.report.chain_costs import chain_cost
from feelgood.report.published_comparisons import PublishedComparison, in_percent
from feelgood.report.series import Series
from feelgood.stats.summary import Summary


def _finite(value: float | None) -> float | None:
    return None if value is None else rounded(value, 6)


def result_row(series: Series) -> dict[str, Any]:
    r = series.result
    regret, estimate, cost = r.regret, regret_interval(r), chain_cost(r)
    return {
        "label": series.label,
        "mean": _finite(regret.mean),
        "std": _finite(regret.std),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "median": _finite(regret.median),
        "simple": _finite(r.simple.mean),
        "best_arm": _finite(Summary.of(r.best_arm_rate).mean),
        "chains": len(r.seeds),
        "diverged": int((r.diverged_at >= 0).sum()),
        "gradients": _finite(cost.gradients),
        "seconds": _finite(cost.seconds),
        "run": [
            ("agent", r.agent),
            ("testbed", r.testbed),
            ("rounds", f"{r.rounds:,}"),
            ("seeds", _seed_ranges(r.seeds)),
            ("status", r.status),
            ("compile seconds", f"{r.compile_s:.2f}"),
            ("run seconds", f"{r.run_s:.2f}"),
        ],
        "settings": _pairs(r.settings),
        "testbed_settings": _pairs(r.testbed_settings),
        "provenance": _pairs(r.provenance),
    }


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    out = []
    for key, value in values.items():
        text = json.dumps(value) if isinstance(value, list | dict) else setting_text(value)
        out.append((str(key), text if len(text) <= 400 else text[:399] + "…"))
    return out


def _seed_ranges(seeds: Sequence[int]) -> str:
    """`0–99`, or the pieces where there are gaps."""
    pieces: list[list[int]] = []
    for seed in sorted(seeds):
        if pieces and seed == pieces[-1][1] + 1:
            pieces[-1][1] = seed
        else:
            pieces.append([seed, seed])
    shown = [f"{a}" if a == b else f"{a}–{b}" for a, b in pieces]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def published_row(label: str, c: PublishedComparison) -> dict[str, Any]:
    assert c.ours is not None, "only comparisons with a result of ours are shown"
    theirs = c.row.published
    tested = c.test is not None and c.rounds == c.row.rounds
    return {
        "table": theirs.table,
        "label": label,
        "ours": _finite(c.ours.mean),
        "ours_std": _finite(c.ours.std),
        "ours_seeds": c.ours.count,
        "published": theirs.mean,
        "published_std": _finite(theirs.std),
        "published_seeds": theirs.seeds,
        "difference": _finite(c.ours.mean - theirs.mean),
        "interval": c.interval if tested else "–",
        "smallest": _finite(c.smallest) if tested else None,
        "seen_from": in_percent(c.smallest, theirs.mean) if tested else "–",
        "p": _finite(c.test.p) if tested and c.test and math.isfinite(c.test.p) else None,
        "verdict": c.verdict.value,
        "reason": "; ".join(filter(None, [c.reason, c.row.tuned and f"network: {c.row.tuned}"])),
    }
