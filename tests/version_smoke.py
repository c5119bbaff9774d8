"""What `test_versions.py` runs in an environment of its own; prints numbers as JSON.

It uses the standard library and the installed package alone.
"""

import json
import subprocess
import sys
from pathlib import Path

import feelgood

AGENTS = ["uniform", "linucb", "lints", "fgmalats", "neural-linear"]
STUDY = 'rounds = 40\nseeds = 2\nagents = ["uniform", "linucb"]\ntestbeds = ["linear-20"]\n'


def regrets() -> dict[str, float]:
    result = feelgood.run("linear-20", AGENTS, rounds=100, seeds=3, progress=False)
    assert "higher regret" in str(result.compare("linucb"))
    return {r.agent: r.regret.mean for r in result}


def live() -> list[str]:
    """A live bandit that is lost and comes back from its journal."""
    arms = []
    with feelgood.Bandit("lints", ["tea", "rum"], features=2, seed=0, journal="shop") as bandit:
        for i in range(20):
            decision = bandit.act([1.0, i % 2])
            arms.append(decision.arm)
            bandit.update(decision.id, float(decision.arm == "rum"))
        assert decision.probability is not None
    with feelgood.Bandit.load("shop", exact=True) as again:
        assert again.version == 20
    return arms


def study() -> float:
    """A study in two processes, read again."""
    Path("mine.toml").write_text(STUDY)
    command = [sys.executable, "-m", "feelgood", "study", "run", "mine.toml", "--workers", "2"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return float(feelgood.load("mine-results")["linucb"].regret.mean)


if __name__ == "__main__":
    print(json.dumps({"regrets": regrets(), "arms": live(), "study": study()}))
