"""Entries of the challenge: written, read, checked, and caught when they are not right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feelgood
from feelgood import FeelgoodError
from feelgood.api import challenge_entries
from feelgood.api.challenge_entries import digest_of_rows, read_entry
from feelgood.api.challenges import Challenge, challenge

TESTBED = "wheel-0.99"
KEY = b"feelgood.challenge"


@pytest.fixture(scope="module")
def outcomes() -> list[Challenge]:
    return challenge("uniform", TESTBED, seeds=3)


@pytest.fixture(scope="module")
def entry(outcomes: list[Challenge], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return feelgood.save_entry(outcomes, tmp_path_factory.mktemp("entry") / "entry.parquet")


def states(file: Path, **options: Any) -> dict[str, bool | None]:
    return {c.what: c.passed for c in feelgood.check_entry(file, **options).checks}


def changed(
    entry: Path, target: Path, change: Callable[[list[dict[str, Any]]], object], hashed: bool = True
) -> Path:
    """A copy with other rows; `hashed`: by somebody who writes the hash again too."""
    table = pq.read_table(entry)
    facts, rows = json.loads(table.schema.metadata[KEY]), table.to_pylist()
    change(rows)
    if hashed:
        facts["rows"] = digest_of_rows(rows)
    fresh = pa.Table.from_pylist(rows).replace_schema_metadata({KEY: json.dumps(facts).encode()})
    pq.write_table(fresh, target)
    return target


def test_an_entry_comes_back_and_stands_where_it_stood(
    entry: Path, outcomes: list[Challenge]
) -> None:
    checked = feelgood.check_entry(entry)
    assert [c.passed for c in checked.checks] == [True] * 6
    (again,), (before,) = checked.entry.outcomes, outcomes
    assert again.sentence == before.sentence
    assert again.cost == pytest.approx(before.cost)
    assert [b.difference for b in again.beside] == [b.difference for b in before.beside]


def test_a_changed_number_is_seen_by_its_hash(entry: Path, tmp_path: Path) -> None:
    def better(rows: list[dict[str, Any]]) -> None:
        rows[0]["final_regret"] *= 0.5

    cheap = changed(entry, tmp_path / "cheap.parquet", better, hashed=False)
    assert states(cheap, seeds=0)["rows"] is False
    dear = changed(entry, tmp_path / "dear.parquet", better)
    seen = states(dear)
    assert seen["rows"] is True
    assert seen["agent"] is False, "run again, the seed has another regret"


def test_chosen_seeds_are_refused(entry: Path, tmp_path: Path) -> None:
    file = changed(entry, tmp_path / "a.parquet", lambda rows: rows.pop(0))
    assert states(file, seeds=0)["seeds"] is False
    file = changed(entry, tmp_path / "b.parquet", lambda rows: rows.append(rows[0]))
    assert states(file, seeds=0)["seeds"] is False


@pytest.mark.slow
def test_another_problem_is_refused(entry: Path, tmp_path: Path) -> None:
    def shorter(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["rounds"] = 100

    assert states(changed(entry, tmp_path / "a.parquet", shorter))["problem"] is False


@pytest.mark.slow
def test_another_version_of_the_testbed_is_seen(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = challenge_entries.problem_fingerprint
    monkeypatch.setattr(
        challenge_entries, "problem_fingerprint", lambda r: [1.01 * v for v in real(r)]
    )
    assert states(entry, seeds=0)["testbed"] is False


def test_an_agent_that_is_not_here_is_not_run(
    entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["agent"] = "somebodys"

    file = changed(entry, tmp_path / "a.parquet", renamed)
    monkeypatch.setattr(challenge_entries, "problem_fingerprint", lambda r: [0.0, 0.0])
    (agent,) = (c for c in feelgood.check_entry(file).checks if c.what == "agent")
    assert agent.passed is None
    assert "--plugin" in agent.said


@pytest.mark.slow
def test_another_source_of_the_agent_is_seen(entry: Path, tmp_path: Path) -> None:
    table = pq.read_table(entry)
    facts = json.loads(table.schema.metadata[KEY]) | {"agent_source": "0" * 64}
    file = tmp_path / "a.parquet"
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(facts).encode()}), file)
    assert states(file)["agent"] is False


def test_what_is_no_entry_gets_one_sentence(tmp_path: Path, entry: Path) -> None:
    with pytest.raises(FeelgoodError, match=r"cannot read .*nothing\.parquet"):
        read_entry(tmp_path / "nothing.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FeelgoodError, match="is no entry of a challenge"):
        read_entry(tmp_path / "other.parquet")
    (tmp_path / "half.parquet").write_bytes(entry.read_bytes()[:500])
    with pytest.raises(FeelgoodError, match="is no entry of a challenge"):
        read_entry(tmp_path / "half.parquet")
    with pytest.raises(FeelgoodError, match="no outcome to save"):
        feelgood.save_entry([], tmp_path / "a.parquet")


@pytest.mark.slow
def test_the_command_checks_and_says_what_is_wrong(
    command: commands.Command, entry: Path, tmp_path: Path
) -> None:
    done = command("challenge", "check", entry, "--seeds", 0)
    assert done.code == 0, done.err
    assert "right rows: have the hash that was written" in done.out
    assert "uniform is better than" in done.out
    bad = changed(entry, tmp_path / "a.parquet", lambda rows: rows.pop(0))
    done = command("challenge", "check", bad, "--seeds", 0)
    assert done.code == 1
    assert "WRONG seeds" in done.out
    assert command("challenge", "check").code == 2
    assert command("challenge", "lints", entry).code == 2


PLUGIN = """
from feelgood import AGENTS
from feelgood.agents.uniform import Uniform


@AGENTS.register("mine-by-chance")
class Mine(Uniform):
    \"\"\"Every arm alike.\"\"\"
"""


@pytest.mark.slow
def test_an_entry_of_ones_own_file_is_checked_with_that_file(tmp_path: Path) -> None:
    import subprocess
    import sys

    def run(*words: object) -> str:
        line = [sys.executable, "-m", "feelgood", "challenge", *map(str, words)]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    (tmp_path / "mine.py").write_text(PLUGIN)
    run("mine.py", "--testbed", TESTBED, "--seeds", 2, "--save", "entry.parquet")
    assert "open  agent: was not run again" in run("check", "entry.parquet")
    assert "right agent: has the same" in run("check", "entry.parquet", "--plugin", "mine.py")
    (tmp_path / "mine.py").write_text(PLUGIN + "# another line\n")
    assert "WRONG agent: has another source" in run("check", "entry.parquet", "--plugin", "mine.py")
