"""What the rivals cost beside their cousin: LinTS for closed forms, an MCMC agent for the others.

    python bench/rivals.py                        # all rows
    python bench/rivals.py --agents evill,vits    # some

Both sides of a row run in one process, on one core, taking turns. Every timing is the shortest of
some, of calls that compile nothing. What the columns mean is in bench/README.md.
"""

import argparse
import datetime
import json
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import speed

LIMIT = 3.0


@dataclass(frozen=True)
class Row:
    """A rival and the agent that it is measured by."""

    agent: str
    cousin: str
    testbed: str
    #: Rounds and seeds; None: those of the command line.
    size: tuple[int, int] | None = None


_CLOSED = ("greedy", "squarecb", "oful", "lints-inflated", "ensemble++")
ROWS = (
    *(Row(agent, "lints", speed.TESTBED) for agent in _CLOSED),
    *(Row(agent, "lmcts", speed.TESTBED) for agent in ("vits", "evill")),
    *(Row(agent, "lints", speed.LOGISTIC) for agent in ("lints-inflated", "ensemble++", "oful")),
    *(
        Row(agent, "lmcts", speed.LOGISTIC)
        for agent in ("greedy", "squarecb", "laplace-ts", "pg-ts", "vits", "evill")
    ),
    *(
        Row(agent, "neural-lmcts", "mushroom", (300, 1))
        for agent in ("neural-ensemble", "neural-bootstrap")
    ),
)


def timed(agent: str, testbed: str, rounds: int, seeds: int) -> float:
    """CPU seconds of one call that finds its program compiled."""
    import feelgood

    start = time.process_time()
    feelgood.run(testbed, [agent], rounds=rounds, seeds=seeds)
    return time.process_time() - start


def measure(row: Row, rounds: int, seeds: int, repeats: int) -> dict[str, Any]:
    """Seconds of both sides, which take turns."""
    rounds, seeds = row.size or (rounds, seeds)
    sides = {"agent": row.agent, "cousin": row.cousin}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(repeats + 1):
        for side, name in sides.items():
            took = timed(name, row.testbed, rounds, seeds)
            if turn:  # the first call compiles
                seconds[side].append(took)
    best = {side: min(each) for side, each in seconds.items()}
    return {
        "agent": row.agent,
        "cousin": row.cousin,
        "testbed": row.testbed,
        "rounds": rounds,
        "seeds": seeds,
        "agent_s": best["agent"],
        "cousin_s": best["cousin"],
        "ratio": best["agent"] / best["cousin"],
    }


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--agents", help="some rivals only, comma-separated")
    parser.add_argument("--rounds", type=int, default=3_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=speed.HERE / "results" / "rivals.json")
    args = parser.parse_args()
    core = speed.pin()
    wanted = None if args.agents is None else set(args.agents.split(","))
    entries = []
    for row in ROWS:
        if wanted is None or row.agent in wanted:
            entry = measure(row, args.rounds, args.seeds, args.repeats)
            entries.append(entry)
            print(
                f"{entry['testbed']:12} {entry['agent']:16} {entry['agent_s']:8.3f} s   "
                f"{entry['cousin']:12} {entry['cousin_s']:8.3f} s   {entry['ratio']:6.2f}"
                + ("" if entry["ratio"] <= LIMIT else f"   above {LIMIT:g}"),
                flush=True,
            )
    machine = {"cpu": speed.cpu_model(), "core": core, "python": platform.python_version()}
    told = {
        "date": datetime.date.today().isoformat(),
        "machine": machine | {"jax": version("jax")},
        "repeats": args.repeats,
        "rows": entries,
    }
    args.out.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
