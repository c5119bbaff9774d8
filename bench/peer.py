"""Plays one agent of the released package `ctx-bandits-mcmc` once and prints its time and regret.

Runs in the bench's own environment (`make bench` makes it), on one thread:

    bench/.venv/bin/python bench/peer.py --agent lmcts --dim 20 --rounds 1000 --seed 0

The agents, the environments and the play loop are the released ones, unchanged. Only the
tracking service, to which the loop logs every round, is switched off
(`wandb.init(mode="disabled")`).
"""

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
import types
from typing import Any

import torch

#: Before the name of an agent that plays the logistic environment instead of the linear one.
LOGISTIC = "logistic-"
ARMS, LOGISTIC_ARMS = 5, 50

# Our agent name: class, and its module in the released package.
AGENTS = {
    "linucb": ("LinUCB", "baseline"),
    "lints": ("LinTS", "baseline"),
    "lmcts": ("LMCTS", "MCMC"),
    "malats": ("MALATS", "MCMC"),
    "plmcts": ("PLMCTS", "MCMC"),
    "hmcts": ("HMCTS", "MCMC"),
    "phmcts": ("PHMCTS", "MCMC"),
    "svrglmcts": ("SVRGLMCTS", "MCMC"),
    "fglmcts": ("FGLMCTS", "MCMC"),
    "sfglmcts": ("SFGLMCTS", "MCMC"),
    "pfglmcts": ("PFGLMCTS", "MCMC"),
    "fgmalats": ("FGMALATS", "MCMC"),
    "fghmcts": ("FGHMCTS", "MCMC"),
}


def released(module: str) -> Any:
    """A module of the released package, whose top-level name is `src`.

    Its `__init__` and its loop import everything, also the readers of the real datasets with what
    those need. An empty package of that name with the same search path, and an empty module in
    the readers' place, leave out what the linear agents do not use.
    """
    if "src" not in sys.modules:
        spec = importlib.util.find_spec("src")
        if spec is None or spec.submodule_search_locations is None:
            raise SystemExit("The released package is not installed here: run `make bench`.")
        package = types.ModuleType("src")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["src"] = package
        readers: Any = types.ModuleType("src.dataset")
        readers.Dataset = None
        sys.modules["src.dataset"] = readers
    return importlib.import_module(f"src.{module}")


def phi(context: torch.Tensor, arms: int) -> torch.Tensor:
    """Features of all arms, [arms, d]: the context in the block of each arm, zeros elsewhere."""
    return torch.block_diag(*(context for _ in range(arms)))


def phi_arm(context: torch.Tensor, arm: int | torch.Tensor, arms: int) -> torch.Tensor:
    """Features of one arm, [d]."""
    return phi(context, arms)[arm]


def all_features(context: torch.Tensor, arms: int) -> torch.Tensor:
    """Features of all arms in the logistic environment: the contexts themselves, [arms, d]."""
    del arms
    return context


def features_of_arm(context: torch.Tensor, arm: int | torch.Tensor, arms: int) -> torch.Tensor:
    """Features of one arm there, [d]."""
    del arms
    return context[arm]


def settings(agent: str, dim: int, rounds: int) -> dict[str, Any]:
    """What the released classes read: the settings of the paper's experiments."""
    info = {
        "d": dim,
        "T": rounds,
        "nb_arms": ARMS,
        "context_size": dim // ARMS,
        "phi": phi,
        "phi_a": phi_arm,
        "std_reward": 0.5,
        "std_prior": 0.01,  # used as the coefficient ρ in ρ‖θ‖²
        "eta": 1.0,
        "step_size": 0.1,  # Langevin agents divide it by the round
        "K": 25,
        "K_not_updated": 25,  # never used: every round brings an observation
        "alpha": 1.0,
        "lambda_reg": 1.0,
        "beta_inv": 1e-2 if agent in {"plmcts", "pfglmcts"} else 1e-3,  # times d ln T
        "accept_reject_step": 20,
        "L_leap": 10,
        "batch_size": 64,
        "m_inner": 10,
    }
    if "fg" in agent:
        info |= {"lambda": 0.5, "b": 1000.0, "smooth_s": 10.0}
    if agent.startswith(LOGISTIC):
        info |= {"nb_arms": LOGISTIC_ARMS, "context_size": dim, "eta": 10.0, "step_size": 0.001}
        info |= {"phi": all_features, "phi_a": features_of_arm}
    return info


def play(agent: str, dim: int, rounds: int, seed: int) -> dict[str, Any]:
    """One run: CPU and wall-clock seconds for the rounds, and the final cumulative regret."""
    # Not at the top: the package's loop imports it, our type checker's environment has none.
    wandb = importlib.import_module("wandb")
    torch.manual_seed(seed)
    name, module = AGENTS[agent.removeprefix(LOGISTIC)]
    info = settings(agent, dim, rounds)
    task = "logistic" if agent.startswith(LOGISTIC) else "linear"
    info |= {"task_type": task, "agent": getattr(released(module), name)}
    with tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere:
        wandb.init(mode="disabled", dir=scratch)
        game = released("game").GameToy(info | {"out_dir": scratch})
        wall, cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(nowhere):
            regret = game.run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "agent": agent,
        "rounds": rounds,
        "seed": seed,
        "seconds": cpu,  # one thread: the wall-clock time of an undisturbed core
        "wall_seconds": wall,
        "final_regret": float(regret[-1]),
        "torch": torch.__version__,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = sorted([*AGENTS, *(LOGISTIC + name for name in AGENTS)])
    parser.add_argument("--agent", required=True, choices=names)
    parser.add_argument("--dim", type=int, default=20, help=f"a multiple of {ARMS}")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.dim % ARMS or args.rounds < 1:
        parser.error(f"--dim must be a multiple of {ARMS} and --rounds at least 1.")
    torch.set_num_threads(1)
    print(json.dumps(play(args.agent, args.dim, args.rounds, args.seed)))


if __name__ == "__main__":
    main()
