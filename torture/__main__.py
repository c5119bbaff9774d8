"""`python -m torture`: all attacks, or some, within a given time; exit code 1 if one succeeded."""

import argparse
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torture import calls, damage, disks, inputs, kills, ray_parts
from torture.arena import Attack, Reference, Skipped, Wrong, preload

#: What each kind of attack offers: a list of attacks, the most telling first where `short`.
KINDS: dict[str, Callable[[Reference, bool], Sequence[Attack]]] = {
    "kills": kills.attacks,
    "calls": calls.attacks,
    "disks": disks.attacks,
    "damage": damage.attacks,
    "inputs": inputs.attacks,
    "ray": ray_parts.attacks,
}
#: Kinds of which all are to be done in this part of the time: these are cheap.
PACE = {"inputs": 0.4}
#: The most that one attack may take.
LIMIT = 900.0


@dataclasses.dataclass
class Score:
    """How one kind of attack went."""

    planned: int
    attacks: int = 0
    survived: int = 0
    blows: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    skipped: dict[str, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        skipped = "".join(f"; {n} skipped: {why}" for why, n in self.skipped.items())
        left = self.planned - self.attacks - sum(self.skipped.values())
        late = f"; {left} not begun in time" if left else ""
        return (
            f"{self.attacks} attacks with {self.blows} blows, {self.survived} survived, "
            f"{len(self.wrong)} went wrong{skipped}{late}"
        )


def _fight(attack: Attack, number: int, seed: int, answer: Path) -> None:
    """One attack in a process of its own; never returns."""
    code: dict[str, Any] = {}
    try:
        folder = answer.with_suffix(".d")
        folder.mkdir()
        luck = random.Random(f"{seed} {attack.kind} {number}")
        try:
            code = {"blows": attack.go(folder, luck)}
        except Skipped as skipped:
            code = {"skipped": str(skipped)}
        except Wrong as wrong:
            code = {"wrong": str(wrong)}
        except BaseException:
            code = {"wrong": f"the attack itself failed: {traceback.format_exc()}"}
        shutil.rmtree(folder, ignore_errors=True)
        answer.write_text(json.dumps(code))
    finally:
        os._exit(0)


def _interleaved(chosen: dict[str, list[tuple[int, Attack]]]) -> list[tuple[int, Attack]]:
    """Attacks of all kinds in turn, so that each has its share when the time is up."""
    places = [
        ((i + 0.5) / len(attacks) * PACE.get(kind, 1.0), kind, pair)
        for kind, attacks in chosen.items()
        for i, pair in enumerate(attacks)
    ]
    return [pair for _, _, pair in sorted(places, key=lambda place: place[:2])]


def _run(
    queue: list[tuple[int, Attack]],
    scores: dict[str, Score],
    scratch: Path,
    seed: int,
    jobs: int,
    until: float,
) -> None:
    """Up to `jobs` attacks at once, until the queue or the time is over."""
    running: dict[int, tuple[int, Attack, Path, float]] = {}
    queue = queue[::-1]
    while queue or running:
        while queue and len(running) < jobs and time.monotonic() < until:
            number, attack = queue.pop()
            answer = scratch / f"{attack.kind}-{number}"
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                _fight(attack, number, seed, answer)
            running[pid] = (number, attack, answer, time.monotonic())
        if not running:
            return
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.005)
            for late, (_, _, _, began) in running.items():
                if time.monotonic() - began > LIMIT:
                    os.kill(late, signal.SIGKILL)
            continue
        if pid not in running:
            continue
        number, attack, answer, _ = running.pop(pid)
        told = {"wrong": "the attack did not end in time, or its own process died"}
        if answer.exists():
            told = json.loads(answer.read_text())
            answer.unlink()
        _enter(scores[attack.kind], number, attack, told)


def _enter(score: Score, number: int, attack: Attack, told: dict[str, Any]) -> None:
    if "skipped" in told:
        score.skipped[told["skipped"]] = score.skipped.get(told["skipped"], 0) + 1
        return
    score.attacks += 1
    if "blows" in told:
        score.survived += 1
        score.blows += told["blows"]
    else:
        score.wrong.append(f"{attack.kind}:{number} ({attack.name}): {told['wrong']}")
        print(f"WRONG {score.wrong[-1]}", flush=True)


def main() -> int:
    """Attack, and say what was survived."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--minutes", type=float, default=20.0, help="start no attack later")
    parser.add_argument("--short", action="store_true", help="the form that 'make test' runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the numbers of attacks, such as 3,17")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="attacks at once")
    parser.add_argument("--scratch", type=Path, help="keeps the undisturbed studies for next time")
    parser.add_argument("--list", action="store_true", help="name the attacks and do nothing")
    given = parser.parse_args()
    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        parser.error(f"unknown kind: {', '.join(sorted(unknown))}")
    began = time.monotonic()
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
    base = given.scratch or Path(tempfile.mkdtemp(prefix="feelgood-torture-"))
    own = base / f"run-{os.getpid()}"
    own.mkdir(parents=True)
    os.environ.setdefault("FEELGOOD_CACHE", str(base / "cache"))
    os.environ["TORTURE_SCRATCH"] = str(own)
    os.environ["TORTURE_DATA"] = os.environ.get("FEELGOOD_DATA", "")
    os.environ.update(COLUMNS="200", NO_COLOR="1", FEELGOOD_DATA=str(own / "no-data"))
    try:
        preload()
        reference = Reference(base / "reference")
        chosen = {}
        for kind in given.kinds or KINDS:
            attacks = list(enumerate(KINDS[kind](reference, given.short)))
            if given.only:
                wanted = {int(number) for number in given.only.split(",")}
                attacks = [pair for pair in attacks if pair[0] in wanted]
            # In any order, so that those for which there is no time are a fair sample.
            random.Random(given.seed).shuffle(attacks)
            chosen[kind] = attacks
        if given.list:
            for attacks in chosen.values():
                for number, attack in sorted(attacks, key=lambda pair: pair[0]):
                    print(f"{attack.kind}:{number} {attack.name}")
            return 0
        scores = {kind: Score(len(attacks)) for kind, attacks in chosen.items()}
        until = began + 60 * given.minutes
        _run(_interleaved(chosen), scores, own, given.seed, given.jobs, until)
    finally:
        shutil.rmtree(own if given.scratch else base, ignore_errors=True)
    for kind, score in scores.items():
        print(f"{kind}: {score}")
    print(
        f"{time.monotonic() - began:.0f} s; repeat one with: python -m torture KIND --only NUMBER"
    )
    return int(any(score.wrong for score in scores.values()))


if __name__ == "__main__":
    sys.exit(main())
