"""The board of the challenge: every entry of `challenge/` beside the shipped results."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from feelgood.api.challenge_entries import read_entry
from feelgood.api.challenges import Beside, Challenge

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# The board

Made from the files in `challenge/` by `make docs`. Every entry ran on the seeds of the shipped
results; [the challenge](challenge.md) says how to make one and how to check it. *Difference* is the
entry's regret minus the other's on the same seeds: below 0, the entry is better. The intervals of
one table hold together at 95 %. Costs are microseconds per round and seed; they compare only on the
same device.
"""


def board_page() -> str:
    """The page, with one table per entry and problem."""
    parts = [HEAD]
    entries = [(file, read_entry(file)) for file in sorted((ROOT / "challenge").glob("*.parquet"))]
    costs = _shipped_costs({r.testbed for _, entry in entries for r in entry.results})
    for file, entry in entries:
        for outcome in entry.outcomes:
            parts += _section(file.name, outcome, entry.facts["made_with"]["device"], costs)
    if not entries:
        parts.append("There is no entry yet.\n")
    return "\n".join(parts)


def _section(file: str, outcome: Challenge, device: str, costs: dict[str, str]) -> list[str]:
    result = outcome.result
    lines = [
        f"## {result.agent} on {result.testbed}",
        "",
        f"`challenge/{file}`: {result.rounds:,} rounds, {len(result.seeds)} seeds, mean regret "
        f"{result.regret.mean:,.1f} ± {result.regret.std:,.1f}. It costs {outcome.cost:,.1f} µs on "
        f"{device}.",
        "",
        outcome.sentence,
        "",
        "| agent | settings | regret | difference | interval | entry is | its cost, µs |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*lines, *(_row(row, costs) for row in outcome.beside), ""]


def _row(row: Beside, costs: dict[str, str]) -> str:
    own, d = row.baseline, row.difference
    settings = "both" if "," in own.preset else own.preset
    cost = costs.get(_key(own.testbed, own.agent, own.settings), "")
    return (
        f"| `{own.agent}` | {settings} | {row.regret:,.1f} | {d.mean:+,.1f} "
        f"| {d.low:+,.1f} to {d.high:+,.1f} | {row.verdict} | {cost} |"
    )


def _key(testbed: str, agent: str, settings: dict[str, Any]) -> str:
    return json.dumps([testbed, agent, settings], sort_keys=True)


def _shipped_costs(testbeds: set[str]) -> dict[str, str]:
    """Microseconds per round and seed of the shipped runs, and the device where it is no CPU."""
    columns = ["testbed", "agent", "settings", "rounds", "run_s", "device"]
    sums: dict[str, list[Any]] = {}
    for testbed in sorted(testbeds):
        for row in pq.read_table(
            ROOT / "results" / f"{testbed}.parquet", columns=columns
        ).to_pylist():
            if row["run_s"] is not None:
                key = _key(row["testbed"], row["agent"], json.loads(row["settings"]))
                own = sums.setdefault(key, [0.0, 0, row["device"]])
                own[0] += row["run_s"]
                own[1] += row["rounds"]
    return {
        key: f"{1e6 * seconds / rounds:,.1f}" + ("" if "cpu" in str(device) else f" ({device})")
        for key, (seconds, rounds, device) in sums.items()
    }
