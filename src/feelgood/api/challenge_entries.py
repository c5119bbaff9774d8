"""A challenge as a file that anybody can check: what was run, on which problem, with what.

The file is Parquet, one row per seed. Its metadata hold a SHA-256 of the rows, one of the agent's
source, one of the shipped results that it was compared with, a fingerprint of each problem, the
cost and the versions. Nothing in the file is ever executed: who wants to run the agent again has
its source from elsewhere, and the hash says whether it is the same.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.api.challenges import Baseline, Challenge, baselines_of, beside
from feelgood.api.running import ProgressOption, run_each
from feelgood.core import atomic
from feelgood.core.arguments import parse_path
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.policy import AGENTS
from feelgood.engine import schema
from feelgood.engine.results import AgentResult, absent, in_fields

_KEY = b"feelgood.challenge"
_FORMAT = 1
#: The fingerprint of a problem: the regrets of `uniform` on its first seeds, after so many rounds.
_FINGERPRINT_ROUNDS, _FINGERPRINT_SEEDS = 32, 2
#: Other processors round differently, and a rounding may change an arm: a seed run again agrees if
#: its regret is within this share. Fingerprints change no arm.
_SAME_REGRET, _SAME_FINGERPRINT = 0.02, 1e-3
_COLUMNS = ("testbed", "testbed_settings", "rounds", "agent", "settings", "seed", "final_regret")


@dataclasses.dataclass(frozen=True)
class EntryCheck:
    """One thing that was looked at; `passed` is None where it could not be."""

    what: str
    passed: bool | None
    said: str


@dataclasses.dataclass(frozen=True)
class ChallengeEntry:
    """What an entry's file holds."""

    results: tuple[AgentResult, ...]
    facts: Mapping[str, Any]
    digest: str

    @property
    def agent(self) -> str:
        """The challenger's name."""
        return self.results[0].agent

    @property
    def outcomes(self) -> list[Challenge]:
        """The challenger beside the shipped results of this package, one per problem."""
        return [beside(r, _same_problem(r)) for r in self.results if _same_problem(r)]


@dataclasses.dataclass(frozen=True)
class CheckedEntry:
    """An entry, and what became of every check."""

    entry: ChallengeEntry
    checks: tuple[EntryCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found to be wrong."""
        return all(check.passed is not False for check in self.checks)


def save_entry(outcomes: Sequence[Challenge], file: str | Path) -> Path:
    """Write what `feelgood.challenge` returned as an entry that others can check.

    **Example:**

    >>> import feelgood, tempfile
    >>> outcomes = feelgood.challenge("uniform", "wheel-0.99", seeds=2)
    >>> file = feelgood.save_entry(outcomes, f"{tempfile.mkdtemp()}/entry.parquet")
    >>> feelgood.check_entry(file).passed
    True
    """
    from feelgood.core.arrow import pa, pq
    from feelgood.studies.execute import provenance

    place = parse_path(file)
    if not outcomes:
        raise FeelgoodError("there is no outcome to save: pass what feelgood.challenge returned.")
    results = [outcome.result for outcome in outcomes]
    rows = [row for result in results for row in _rows(result)]
    agent, testbed = results[0].agent, results[0].testbed
    facts = {
        "format": _FORMAT,
        "rows": digest_of_rows(rows),
        "agent_source": AGENTS.digest(agent) if agent in AGENTS else None,
        "shipped": digest_of_baselines(baselines_of(testbed)),
        "fingerprints": [problem_fingerprint(r) for r in results],
        "seconds": [{"compile": r.compile_s, "run": r.run_s} for r in results],
        "made_with": provenance(),
    }
    table = pa.Table.from_pylist(rows).replace_schema_metadata({_KEY: json.dumps(facts).encode()})
    content = io.BytesIO()
    pq.write_table(table, content)
    atomic.write(place, lambda out: out.write(content.getvalue()))
    return place


def _rows(result: AgentResult) -> Iterable[dict[str, Any]]:
    for i, seed in enumerate(result.seeds):
        diverged = int(result.diverged_at[i])
        yield {
            "testbed": result.testbed,
            "testbed_settings": json.dumps(dict(result.testbed_settings), sort_keys=True),
            "rounds": int(result.rounds),
            "agent": result.agent,
            "settings": json.dumps(dict(result.settings), sort_keys=True),
            "seed": int(seed),
            "final_regret": None if diverged >= 0 else float(result.final_regret[i]),
            "diverged_at": diverged,
        }


def read_entry(file: str | Path) -> ChallengeEntry:
    """What an entry's file holds, as it stands there."""
    from feelgood.core.parquet import read_parquet

    place = parse_path(file)
    try:
        content = place.read_bytes()
        table = read_parquet(content)
        facts = json.loads((table.schema.metadata or {})[_KEY])
        if facts["format"] != _FORMAT:
            raise FeelgoodError(
                f"{place} is an entry of format {shown(facts['format'])}, and this package knows "
                f"format {_FORMAT}: install the newest feelgood."
            )
        rows = table.to_pylist()
        results = tuple(_results(rows, facts))
    except FeelgoodError:
        raise
    except OSError as error:
        raise FeelgoodError(
            f"cannot read {place} ({error.strerror or error}): give the file of an entry."
        ) from None
    except Exception as error:  # of a damaged or foreign file anything may be wrong
        raise FeelgoodError(
            f"{place} is no entry of a challenge ({type(error).__name__}): make one with "
            "'feelgood challenge mine.py --save entry.parquet'."
        ) from None
    return ChallengeEntry(results, facts, digest_of_rows(rows))


def _results(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[AgentResult]:
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = json.dumps([row[name] for name in _COLUMNS[:5]])
        problems.setdefault(key, []).append(row)
    agents = {row["agent"] for row in rows}
    if len(agents) != 1 or len(problems) != len(facts["seconds"]):
        raise ValueError("one agent, and one cost per problem")
    out = []
    for own, seconds in zip(problems.values(), facts["seconds"], strict=True):
        first, count = own[0], len(own)
        numbers = {q.name: absent(q, count, 0) for q in schema.QUANTITIES}
        regrets = [np.nan if r["final_regret"] is None else r["final_regret"] for r in own]
        numbers["final_regret"] = np.array(regrets, np.float64)
        numbers["diverged_at"] = np.array([r["diverged_at"] for r in own], np.int64)
        out.append(
            AgentResult(
                agent=str(first["agent"]),
                testbed=str(first["testbed"]),
                settings=json.loads(first["settings"]),
                testbed_settings=json.loads(first["testbed_settings"]),
                rounds=int(first["rounds"]),
                seeds=tuple(int(r["seed"]) for r in own),
                curve_rounds=np.zeros(0, np.int64),
                compile_s=float(seconds["compile"]),
                run_s=float(seconds["run"]),
                provenance=dict(facts["made_with"]),
                **in_fields(numbers),
            )
        )
    return out


def check_entry(
    file: str | Path, *, seeds: int = 2, progress: ProgressOption | None = None
) -> CheckedEntry:
    """Check an entry: its hashes, problems and seeds, and some of the seeds by running them.

    **Arguments:**

    - `file`: what `save_entry` or `feelgood challenge … --save` wrote.
    - `seeds`: how many seeds are run again, from the first; 0: none.
    - `progress`: as for `feelgood.run`.

    The agent is run again if it is registered here under its name, from the same source.

    **Example:**

    >>> import feelgood, tempfile
    >>> outcomes = feelgood.challenge("uniform", "wheel-0.99", seeds=2)
    >>> file = feelgood.save_entry(outcomes, f"{tempfile.mkdtemp()}/entry.parquet")
    >>> [check.what for check in feelgood.check_entry(file, seeds=0).checks]
    ['rows', 'problem', 'seeds', 'testbed', 'shipped results', 'agent']
    """
    entry = read_entry(file)
    intact = entry.digest == entry.facts["rows"]
    checks = [
        EntryCheck("rows", intact, "have the hash that was written" if intact else "were changed"),
        _check_problems(entry),
        _check_seeds(entry),
    ]
    if checks[1].passed:
        checks += [_check_testbeds(entry), _check_shipped(entry)]
        checks.append(_check_agent(entry, seeds, progress))
    return CheckedEntry(entry, tuple(checks))


def _same_problem(result: AgentResult) -> tuple[Baseline, ...]:
    """The baselines of the same testbed with the same settings and rounds."""
    return tuple(
        b
        for b in baselines_of(result.testbed)
        if b.rounds == result.rounds and b.testbed_settings == dict(result.testbed_settings)
    )


def _check_problems(entry: ChallengeEntry) -> EntryCheck:
    testbed = entry.results[0].testbed
    wanted = {_problem(b.testbed_settings, b.rounds) for b in baselines_of(testbed)}
    found = {_problem(r.testbed_settings, r.rounds) for r in entry.results}
    if {r.testbed for r in entry.results} != {testbed} or found != wanted:
        return EntryCheck("problem", False, f"is not {testbed} as the shipped results have it")
    return EntryCheck(
        "problem", True, f"is {testbed} with the settings and rounds of the shipped runs"
    )


def _problem(settings: Mapping[str, Any], rounds: int) -> str:
    return json.dumps([dict(settings), rounds], sort_keys=True)


def _check_seeds(entry: ChallengeEntry) -> EntryCheck:
    for result in entry.results:
        own = _same_problem(result)
        shipped = sorted(set().union(*(b.seeds for b in own)))
        if list(result.seeds) != shipped[: len(result.seeds)] or len(result.seeds) < 2:
            return EntryCheck("seeds", False, "are not the first of the shipped results, each once")
    counts = ", ".join(str(len(r.seeds)) for r in entry.results)
    return EntryCheck("seeds", True, f"are the first {counts} of the shipped results, each once")


def problem_fingerprint(result: AgentResult) -> list[float]:
    """The regrets of `uniform` after a few rounds: they change with the testbed and its numbers."""
    (short,) = run_each(
        result.testbed,
        ["uniform"],
        rounds=_FINGERPRINT_ROUNDS,
        seeds=list(result.seeds[:_FINGERPRINT_SEEDS]),
        settings={"testbed": dict(result.testbed_settings)},
        progress=False,
    )
    return [float(v) for v in short.final_regret]


def _check_testbeds(entry: ChallengeEntry) -> EntryCheck:
    here = [problem_fingerprint(result) for result in entry.results]
    there = entry.facts["fingerprints"]
    same = np.shape(here) == np.shape(there) and np.allclose(here, there, rtol=_SAME_FINGERPRINT)
    said = "plays as it did for the entry" if same else "is another version: its numbers differ"
    return EntryCheck("testbed", bool(same), said)


def _check_shipped(entry: ChallengeEntry) -> EntryCheck:
    own = digest_of_baselines(baselines_of(entry.results[0].testbed))
    if own == entry.facts["shipped"]:
        return EntryCheck("shipped results", True, "are those that the entry was compared with")
    return EntryCheck(
        "shipped results", None, "were others then; below it stands beside those of today"
    )


def _check_agent(entry: ChallengeEntry, seeds: int, progress: ProgressOption | None) -> EntryCheck:
    source = entry.facts["agent_source"]
    known = AGENTS.digest(entry.agent) if entry.agent in AGENTS else None
    if entry.agent not in AGENTS:
        return EntryCheck(
            "agent", None, f"was not run again: load its source, SHA-256 {source}, with --plugin"
        )
    if known != source:
        return EntryCheck(
            "agent", False, f"has another source here: {known}, and {source} in the entry"
        )
    if not seeds:
        return EntryCheck("agent", None, "was not run again, as asked")
    for result in entry.results:
        few = list(result.seeds[:seeds])
        (again,) = run_each(
            result.testbed,
            [entry.agent],
            rounds=result.rounds,
            seeds=few,
            settings={"testbed": dict(result.testbed_settings), entry.agent: dict(result.settings)},
            progress=progress,
        )
        mine, theirs = again.final_regret, result.final_regret[: len(few)]
        near = np.abs(mine - theirs) <= _SAME_REGRET * np.maximum(np.abs(theirs), 1.0)
        if not np.all(near | (np.isnan(mine) & np.isnan(theirs))):
            place = int(np.argmin(near))
            return EntryCheck(
                "agent",
                False,
                f"has a regret of {mine[place]:,.1f} on seed {few[place]} when it is run again, "
                f"and {theirs[place]:,.1f} in the entry",
            )
    return EntryCheck("agent", True, f"has the same regrets when {len(few)} seeds are run again")


def digest_of_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of an entry's rows, whatever file they stand in."""
    plain = [[row[name] for name in (*_COLUMNS, "diverged_at")] for row in rows]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def digest_of_baselines(own: Sequence[Baseline]) -> str:
    """SHA-256 of shipped results."""
    plain = [
        [b.agent, b.settings, b.testbed_settings, b.rounds, b.seeds, b.final_regret.tolist()]
        for b in own
    ]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
