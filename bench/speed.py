"""Speed beside the released package: one seed of theirs against many seeds of ours, on one core.

    python bench/speed.py                        # all rows
    python bench/speed.py --agents lints,lmcts   # some
    make bench BENCH_ARGS="--agents lints,lmcts"

What the columns mean is in bench/README.md.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEER_PYTHON = HERE / ".venv" / "bin" / "python"
TESTBED, LOGISTIC = "linear-20", "logistic-20"
DIM = 20
PROBES = (1_000, 2_000)  # rounds of the short peer runs from which long ones are extrapolated
REPEAT_BUDGET = 60.0  # seconds; a peer run is not repeated once its runs took longer


@dataclass(frozen=True)
class Row:
    """One line of the table: an agent of ours with its settings, and the peer's counterpart."""

    label: str
    agent: str
    settings: tuple[str, ...]  # NAME=VALUE
    peer: str
    testbed: str = TESTBED


#: The released agents know the squared loss alone, also on logistic rewards.
_BERNOULLI, _SQUARED = ("likelihood=bernoulli",), ("likelihood=squared",)
ROWS = (
    Row("linucb", "linucb", (), "linucb"),
    Row("lints", "lints", (), "lints"),
    Row("lmcts", "lmcts", (), "lmcts"),
    Row("malats", "malats", (), "malats"),
    Row("plmcts", "plmcts", (), "plmcts"),
    Row("hmcts", "hmcts", (), "hmcts"),
    Row("phmcts", "phmcts", (), "phmcts"),
    Row("svrglmcts", "svrglmcts", (), "svrglmcts"),
    Row("fglmcts", "fglmcts", ("lam=0.5",), "fglmcts"),
    Row("fglmcts, svrg bonus", "fglmcts", ("lam=0.5", "bonus_gradient=svrg"), "fglmcts"),
    Row("sfglmcts", "sfglmcts", ("lam=0.5",), "sfglmcts"),
    Row("pfglmcts", "pfglmcts", ("lam=0.5",), "pfglmcts"),
    Row("fgmalats", "fgmalats", ("lam=0.5",), "fgmalats"),
    Row("fghmcts", "fghmcts", ("lam=0.5",), "fghmcts"),
    Row("lmcts squared on logistic-20", "lmcts", _SQUARED, "logistic-lmcts", LOGISTIC),
    Row("lmcts on logistic-20", "lmcts", _BERNOULLI, "logistic-lmcts", LOGISTIC),
    Row("malats on logistic-20", "malats", _BERNOULLI, "logistic-malats", LOGISTIC),
)


@dataclass(frozen=True)
class PeerRun:
    """One seed of the released package, timed once or several times."""

    rounds: int
    seed: int
    seconds_each: tuple[float, ...]  # CPU time of its single thread, one entry per repetition
    final_regret: float
    reused: bool = False

    @property
    def seconds(self) -> float:
        """The shortest time: what disturbs a run only makes it longer."""
        return min(self.seconds_each)


@dataclass(frozen=True)
class PeerTime:
    """What one seed of the peer takes for the full number of rounds."""

    seconds: float
    extrapolated: bool
    exponent: float | None  # of the fitted power law, where extrapolated
    longest: PeerRun

    @property
    def mark(self) -> str:
        """Signs for the table."""
        return ("~" if self.extrapolated else "") + ("*" if self.longest.reused else "")


def extrapolate(short: PeerRun, long: PeerRun, rounds: int) -> tuple[float, float]:
    """Seconds for `rounds` and the exponent p of c·T^p through two runs; p is at least 1."""
    ratio = math.log(long.seconds / short.seconds) / math.log(long.rounds / short.rounds)
    exponent = max(1.0, ratio)
    return long.seconds * (rounds / long.rounds) ** exponent, exponent


class Peer:
    """The released package: runs it, and remembers what was run."""

    def __init__(
        self,
        python: Path,
        seed: int,
        repeats: int,
        reuse: dict[str, list[PeerRun]],
        torch: str | None,
    ) -> None:
        self.python = python
        self.seed = seed
        self.repeats = repeats
        self.runs: dict[str, list[PeerRun]] = {}
        self.torch = torch
        self._reuse = reuse

    def run(self, agent: str, rounds: int) -> PeerRun:
        """A run of this length: made before, reused on request, or made now."""
        for known in (self.runs, self._reuse):
            for run in known.get(agent, []):
                if run.rounds == rounds and run.seed == self.seed:
                    return self._keep(agent, run)
        options = ["--agent", agent, "--dim", DIM, "--rounds", rounds, "--seed", self.seed]
        seconds: list[float] = []
        while len(seconds) < self.repeats and sum(seconds) < REPEAT_BUDGET:
            printed = json.loads(call([self.python, HERE / "peer.py", *options]))
            seconds.append(printed["seconds"])
        self.torch = printed["torch"]
        return self._keep(
            agent, PeerRun(rounds, self.seed, tuple(seconds), printed["final_regret"])
        )

    def _keep(self, agent: str, run: PeerRun) -> PeerRun:
        runs = self.runs.setdefault(agent, [])
        if run not in runs:
            runs.append(run)
        return run

    def _reusable(self, agent: str, rounds: int) -> bool:
        return any(r.rounds == rounds and r.seed == self.seed for r in self._reuse.get(agent, []))

    def time(self, agent: str, rounds: int, limit: float) -> PeerTime:
        """Measured where short enough (or reused), else extrapolated from two short runs."""
        if rounds > max(PROBES) and not self._reusable(agent, rounds):
            short, long = (self.run(agent, probe) for probe in PROBES)
            seconds, exponent = extrapolate(short, long, rounds)
            if seconds > limit:
                return PeerTime(seconds, True, exponent, long)
        run = self.run(agent, rounds)
        return PeerTime(run.seconds, False, None, run)


def call(command: Iterable[object], **variables: str) -> str:
    """Standard output of a command; a failure shows what the command wrote."""
    words = [str(word) for word in command]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}{done.stderr}".strip())
    return done.stdout


def ours(row: Row, rounds: int, seeds: int, preset: str, repeats: int) -> dict[str, Any]:
    """Our result for one row: seconds to compile and to run, and one final regret per seed."""
    command = [sys.executable, HERE / "ours.py", row.testbed, row.agent]
    options = ["--rounds", rounds, "--seeds", seeds, "--preset", preset, "--repeats", repeats]
    for setting in row.settings:
        options += ["--set", setting]
    # Without JAX's cache on disk the compile time is that of a first run.
    found = json.loads(call([*command, *options], JAX_ENABLE_COMPILATION_CACHE="false"))
    return {
        "final_regret": found["final_regret"],
        "compile_s": found["compile_s"],
        "seconds_each": found["seconds_each"],
        "run_s": min(found["seconds_each"]),
    }


def line(row: Row, peer: PeerTime, our: dict[str, Any], seeds: int) -> dict[str, Any]:
    """Everything the table and the JSON file show for one row."""
    regrets = our["final_regret"]
    theirs = seeds * peer.seconds
    return {
        "label": row.label,
        "agent": row.agent,
        "testbed": row.testbed,
        "settings": list(row.settings),
        "peer_agent": row.peer,
        "peer_seconds_one_seed": peer.seconds,
        "peer_extrapolated": peer.extrapolated,
        "peer_exponent": peer.exponent,
        "peer_reused": peer.longest.reused,
        "peer_regret": peer.longest.final_regret,
        "peer_regret_rounds": peer.longest.rounds,
        "peer_seconds_all_seeds": theirs,
        "our_run_s": our["run_s"],
        "our_run_s_each": our["seconds_each"],
        "our_compile_s": our["compile_s"],
        "ratio_run": theirs / our["run_s"],
        "ratio_with_compile": theirs / (our["run_s"] + our["compile_s"]),
        "our_regret_mean": statistics.fmean(regrets),
        "our_regret_std": statistics.stdev(regrets) if len(regrets) > 1 else 0.0,
        "mark": peer.mark,
    }


def cells(entry: dict[str, Any], rounds: int) -> list[str]:
    """One line of the table as text."""
    peer_regret = f"{entry['peer_regret']:.0f}"
    if entry["peer_regret_rounds"] != rounds:
        peer_regret += f" (T={entry['peer_regret_rounds']:,})"
    return [
        entry["label"],
        f"{entry['peer_seconds_one_seed']:,.1f}{entry['mark']}",
        f"{entry['peer_seconds_all_seeds']:,.0f}{entry['mark']}",
        f"{entry['our_run_s']:,.2f}",
        f"{entry['our_compile_s']:,.1f}",
        f"{entry['ratio_run']:,.0f}",
        f"{entry['ratio_with_compile']:,.0f}",
        f"{entry['our_regret_mean']:.0f} ± {entry['our_regret_std']:.0f}",
        peer_regret,
    ]


def table(entries: Sequence[dict[str, Any]], rounds: int, seeds: int) -> str:
    """The entries as a Markdown table."""
    head = [
        "agent",
        "peer s, 1 seed",
        f"peer s, {seeds} seeds",
        f"our run s, {seeds} seeds",
        "our compile s",
        "ratio, run",
        "ratio, with compile",
        "our regret",
        "peer regret, 1 seed",
    ]
    rows = [head, *(cells(entry, rounds) for entry in entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    lines.append("")
    lines.append("~ extrapolated from shorter runs   * reused from an earlier run")
    return "\n".join(lines)


def cpu_model() -> str:
    """The processor's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for entry in info.read_text().splitlines():
            if entry.startswith("model name"):
                return entry.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def pin() -> int | None:
    """Keeps this process and its children on one core; None where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def read_runs(path: Path) -> tuple[dict[str, list[PeerRun]], str | None]:
    """Peer runs of an earlier results file, marked as reused, and its torch version."""
    earlier = json.loads(path.read_text())
    runs = {
        agent: [PeerRun(**run | {"reused": True}) for run in runs]
        for agent, runs in earlier["peer_runs"].items()
    }
    if earlier["machine"]["cpu"] != cpu_model():
        print("Note: the reused peer timings come from another processor.", file=sys.stderr)
    return runs, earlier["machine"]["torch"]


def choose(names: str | None) -> list[Row]:
    """The rows whose label, agent or peer is named; all without names."""
    if names is None:
        return list(ROWS)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [n for n in wanted if not any(n in (r.label, r.agent) for r in ROWS)]
    if unknown:
        known = ", ".join(dict.fromkeys(r.agent for r in ROWS))
        raise SystemExit(f"Not in the bench: {', '.join(unknown)}. There are: {known}.")
    return [r for r in ROWS if r.label in wanted or r.agent in wanted]


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--agents", help="some rows only, by agent name, comma-separated")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10, help="how many of ours run together")
    parser.add_argument(
        "--repeats", type=int, default=3, help="timings of each run; the shortest counts"
    )
    parser.add_argument("--preset", default="paper", help="of our agents; '' for none")
    parser.add_argument(
        "--peer-cache",
        type=Path,
        metavar="FILE",
        help="reuse the peer's timings of this earlier results file (marked in the output)",
    )
    parser.add_argument(
        "--peer-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="a peer run expected to take longer is extrapolated (default 60)",
    )
    parser.add_argument("--peer-seed", type=int, default=0)
    parser.add_argument(
        "--peer-python",
        type=Path,
        default=PEER_PYTHON,
        metavar="FILE",
        help="of the environment with the released package",
    )
    parser.add_argument("--out", type=Path, default=HERE / "results" / "speed.json")
    args = parser.parse_args()
    if min(args.rounds, args.seeds, args.repeats) < 1:
        parser.error("--rounds, --seeds and --repeats must be at least 1.")
    return args


def write(
    args: argparse.Namespace,
    core: int | None,
    peer: Peer,
    entries: list[dict[str, Any]],
    failed: dict[str, str],
) -> None:
    """What has been measured so far."""
    report = {
        "testbed": TESTBED,
        "rounds": args.rounds,
        "seeds": args.seeds,
        "preset": args.preset,
        "repeats": args.repeats,
        "machine": {
            "cpu": cpu_model(),
            "pinned": core is not None,
            "python": platform.python_version(),
            "jax": version("jax"),
            "torch": peer.torch,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        },
        "rows": entries,
        "failed": failed,
        "peer_runs": {name: [asdict(r) for r in runs] for name, runs in peer.runs.items()},
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=2) + "\n")


def main() -> None:
    """Measures row by row; a row that fails is named and left out."""
    args = parse()
    rows = choose(args.agents)
    reuse, torch = read_runs(args.peer_cache) if args.peer_cache else ({}, None)
    if not args.peer_python.exists() and not reuse:
        raise SystemExit("The peer's environment is missing: run `make bench`.")
    core = pin()
    peer = Peer(args.peer_python.absolute(), args.peer_seed, args.repeats, reuse, torch)
    entries: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    for row in rows:
        print(f"{row.label} ...", file=sys.stderr, flush=True)
        try:
            our = ours(row, args.rounds, args.seeds, args.preset, args.repeats)
            theirs = peer.time(row.peer, args.rounds, args.peer_limit)
            entries.append(line(row, theirs, our, args.seeds))
        except RuntimeError as error:
            failed[row.label] = str(error)
            print(f"failed: {error}", file=sys.stderr)
        write(args, core, peer, entries, failed)
    print(table(entries, args.rounds, args.seeds))
    if failed:
        raise SystemExit(f"Rows left out: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
