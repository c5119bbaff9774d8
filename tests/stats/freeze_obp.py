"""Makes `obp_numbers.json`: what Open Bandit Pipeline says of the samples that it ships.

`obp` 0.5.7 does not install beside our packages: it asks for Python below 3.10, pandas below 2 and
PyTorch. Its estimators need no PyTorch, so empty modules stand in for it. In an environment apart:

    pip install 'numpy<2' 'pandas<2' 'scipy<1.12' 'scikit-learn<1.4' pyyaml tqdm matplotlib seaborn
    pip install --no-deps --ignore-requires-python obp==0.5.7
    python tests/stats/freeze_obp.py

Of the 10,000 rows of each log (campaign "men") only item, position, click and propensity are kept:
all that the estimators read. Rows are in obp's order. Their source: Saito et al., "Open Bandit
Dataset and Pipeline", 2020; the package has the Apache License 2.0.
"""

import base64
import json
import sys
import types
import zlib
from pathlib import Path

import numpy as np


class Stub(types.ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stand_in_for_torch() -> None:
    names = ["torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils"]
    for name in [*names, "torch.utils.data"]:
        sys.modules[name] = Stub(name)
        parent, _, leaf = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], leaf, sys.modules[name])


def packed(array: np.ndarray) -> str:
    return base64.b85encode(zlib.compress(array.tobytes(), 9)).decode()


def rates(feedback: dict) -> np.ndarray:
    """q̂ by item and position: clicks per view, drawn a little towards one in two hundred."""
    clicks, views = np.zeros((34, 3)), np.zeros((34, 3))
    np.add.at(clicks, (feedback["action"], feedback["position"]), feedback["reward"])
    np.add.at(views, (feedback["action"], feedback["position"]), 1)
    return (clicks + 0.5) / (views + 100)


def judged(feedback: dict, policy: np.ndarray, model: np.ndarray) -> dict[str, float]:
    """obp's estimates of a policy `[items, positions]`."""
    from obp import ope

    rounds = feedback["n_rounds"]
    policies = np.tile(policy[None], (rounds, 1, 1))
    models = np.tile(model[None], (rounds, 1, 1))
    kinds = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dm": ope.DirectMethod(),
        "dr": ope.DoublyRobust(),
    }
    if (policy.max(axis=0) == 1).all():
        kinds["replay"] = ope.ReplayMethod()
    return {
        name: float(
            kind.estimate_policy_value(
                reward=feedback["reward"],
                action=feedback["action"],
                pscore=feedback["pscore"],
                position=feedback["position"],
                action_dist=policies,
                estimated_rewards_by_reg_model=models,
            )
        )
        for name, kind in kinds.items()
    }


def frozen(behaviour: str) -> dict:
    from obp.dataset import OpenBanditDataset
    from obp.policy import BernoulliTS

    log = OpenBanditDataset(behavior_policy=behaviour, campaign="men")
    feedback = log.obtain_batch_bandit_feedback()
    model = rates(feedback)
    thompson = BernoulliTS(
        n_actions=34, len_list=3, is_zozotown_prior=True, campaign="men", random_state=0
    )
    one_arm = np.zeros((34, 3))
    one_arm[model.argmax(axis=0), np.arange(3)] = 1.0
    policies = {
        "uniform": np.full((34, 3), 1 / 34),
        "bts": thompson.compute_batch_action_dist(n_rounds=1, n_sim=10_000)[0],
        "best item": one_arm,
    }
    codes = feedback["action"] * 6 + feedback["position"] * 2 + feedback["reward"]
    pscore = feedback["pscore"]
    constant = len(np.unique(pscore)) == 1
    return {
        "codes": packed(codes.astype(np.uint8)),
        "pscore": float(pscore[0]) if constant else packed(pscore.astype(np.float64)),
        "policies": {name: policy.tolist() for name, policy in policies.items()},
        "estimates": {name: judged(feedback, p, model) for name, p in policies.items()},
    }


if __name__ == "__main__":
    stand_in_for_torch()
    import obp

    content = {"obp": obp.__version__, "logs": {b: frozen(b) for b in ("random", "bts")}}
    Path(__file__).with_name("obp_numbers.json").write_text(json.dumps(content) + "\n")
