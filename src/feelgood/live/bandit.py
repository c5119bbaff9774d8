"""The bandit that a service asks."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Likelihood, Spec
from feelgood.live.decisions import EXPIRED, REWARDED, Decision, Ledger
from feelgood.live.live_player import LivePlayer
from feelgood.live.requests import (
    ArmTable,
    Contexts,
    Label,
    parse_arms,
    parse_reward,
    parse_weight,
)
from feelgood.live.streams_of import first_streams, forked

MOST_MEMBERS, MOST_SEED = 4096, 2**32 - 1


class Bandit:
    """An agent that decides one request at a time, and learns from rewards whenever they come.

    `agent` is any registered one, with `settings` as in `feelgood.run`. `arms` are names, or a
    number. `features` is the length of a context that all arms share; each arm then has parameters
    of its own. `arm_features` is the length of the features that each arm shows; a context then has
    one row per arm. `rewards` are "squared" (any number) or "bernoulli" (0 to 1).

    With the same seed, contexts and rewards it plays the arms that the simulated agent plays.

    `members` is the number of chains. With several, a uniformly chosen one acts, and the
    probability of an arm is the share of chains that choose it. `forget` is the share of the past
    that each reward leaves: 1 keeps everything, 0.999 about the last thousand rewards. The prior is
    never forgotten. `pending` is how many decisions may wait for a reward; then the oldest expire.

    All methods may be called by several threads. An error changes nothing.
    """

    def __init__(
        self,
        agent: str,
        arms: Sequence[Label] | int,
        features: int | None = None,
        *,
        arm_features: int | None = None,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        members: int = 1,
        rewards: str = "squared",
        forget: float = 1.0,
        pending: int = 100_000,
    ) -> None:
        _start_jax_for_requests()
        entry = AGENTS[agent]
        labels = parse_arms(arms)
        dim = _dimension(features, arm_features)
        likelihood = _likelihood(rewards)
        self._settings = entry.resolve(settings)
        self._agent = agent
        self._policy = entry.build(settings)
        self._arms = ArmTable(labels)
        members = _whole("members", members, 1, MOST_MEMBERS)
        seed = _whole("seed", seed, 0, MOST_SEED)
        keep = _share(forget)
        spec = Spec(len(labels), dim, shared=arm_features is not None, rewards=likelihood)
        if keep < 1.0 and not self._policy.hints(spec).sums:
            raise FeelgoodError(
                f"forget = {shown(forget)} is not possible with {agent}, which keeps more than "
                "sums of its rewards: leave forget out."
            )
        self._ledger = Ledger(_whole("pending", pending, 1, 10**9))
        self._open(LivePlayer(self._policy, spec, first_streams(seed, members), keep=keep), spec)
        self._player.warm_up()

    def _open(self, player: LivePlayer, spec: Spec) -> None:
        self._player, self._spec, self._learns = player, spec, True
        self._contexts = Contexts(spec, self._arms)
        self._lock = threading.RLock()
        self._ahead: threading.Thread | None = None

    # ---- decide -------------------------------------------------------------------------

    @property
    def arms(self) -> tuple[Label, ...]:
        """The names of the arms that there are."""
        return self._arms.active

    @property
    def version(self) -> int:
        """How many rewards have been learned."""
        return self._player.version

    def act(self, x: Any, mask: Any = None) -> Any:
        """Decide: a `Decision` for one context, a list of them for several.

        `mask` says which arms may be played: truth values, or names.
        """
        with self._lock:
            if self._contexts.is_batch(x):
                rows = [self._contexts.one(row) for row in x]
                allowed, labels = self._allowed(mask)
                return [self._act(row, allowed, labels) for row in rows]
            context = self._contexts.one(x)
            allowed, labels = self._allowed(mask)
            return self._act(context, allowed, labels)

    def _allowed(self, mask: Any) -> tuple[np.ndarray | None, tuple[Label, ...]]:
        allowed, labels = self._arms.mask(mask)
        if allowed is not None and not self._player.masks:
            raise FeelgoodError(
                f"{self._agent} cannot choose among some of its arms: its choose takes no mask."
            )
        return allowed, labels

    def _act(
        self, context: np.ndarray, allowed: np.ndarray | None, labels: tuple[Label, ...]
    ) -> Decision:
        player = self._player
        player.prepare()
        arms = player.arms(context, allowed)
        slot = int(arms if player.chains == 1 else arms[player.noise(player.round)[2]])
        law = self._law(context, allowed, arms)
        own = self._ledger.open(context, slot)
        decision = Decision(own, self._arms.labels[slot], labels, player.version, law)
        player.play()
        if len(self._ledger.waiting) > self._ledger.most:
            self._ledger.close(self._ledger.overdue(), EXPIRED)
        return decision

    def _law(self, context: np.ndarray, allowed: np.ndarray | None, arms: Any) -> Any:
        """How to find the probabilities of a decision, from the state as it is now."""
        if self._player.chains > 1:
            size, chains = self._spec.arms, len(arms)
            return lambda: self._offered(np.bincount(arms, minlength=size) / chains, allowed)
        later = self._player.law_later(context, allowed)
        return later and (lambda: self._offered(later(), allowed))

    def _offered(self, law: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        return law if allowed is None else law[allowed]

    def pmf(self, x: Any, mask: Any = None) -> np.ndarray | None:
        """The probability of every arm that may be played; None where the agent has none.

        Nothing changes. A batch of contexts has one row each.
        """
        with self._lock:
            if self._contexts.is_batch(x):
                rows = [self.pmf(row, mask) for row in x]
                return None if any(row is None for row in rows) else np.stack(rows)  # type: ignore[arg-type]
            context = self._contexts.one(x)
            allowed, _ = self._allowed(mask)
            law = self._player.law(context, allowed)
            return None if law is None else self._offered(law, allowed)

    # ---- learn --------------------------------------------------------------------------

    def update(self, id: Any, reward: Any, weight: Any = 1.0) -> None:
        """Learn the reward of a decision, or of several: sequences of ids, rewards and weights.

        Where weights are possible, a reward of weight w counts as one whose noise has the variance
        divided by w.
        """
        with self._lock:
            if not _several(id):
                pending = self._ledger.find(id)
                number = parse_reward(reward, self._spec)
                counted = parse_weight(weight, self._player.hints.sums, self._agent)
                self._require_learning()
                self._learn(pending.context, pending.slot, number, counted, True)
                self._ledger.close((int(id),), REWARDED)
                return
            ids = list(id)
            found = [self._ledger.find(own) for own in ids]
            for i, own in enumerate(ids):
                if own in ids[:i]:
                    raise FeelgoodError(f"decision {own} is there twice: give it one reward.")
            rows = [(pending.context, pending.slot) for pending in found]
            self._learn_all(rows, reward, weight)
            self._ledger.close((int(own) for own in ids), REWARDED)

    def learn(self, context: Any, arm: Any, reward: Any, weight: Any = None) -> None:
        """Learn from a context, an arm and its reward that were no decision here, such as a log's.

        One of each, or a batch.
        """
        with self._lock:
            if not self._contexts.is_batch(context):
                rows, reward = [(self._contexts.one(context), self._arms.slot(arm))], [reward]
                weight = None if weight is None else [weight]
            else:
                _same_length("arms", arm, len(context))
                slots = [self._arms.slot(label) for label in arm]
                rows = [(self._contexts.one(x), s) for x, s in zip(context, slots, strict=True)]
            self._learn_all(rows, reward, weight)

    def _learn_all(self, rows: list[tuple[np.ndarray, int]], rewards: Any, weights: Any) -> None:
        """All of them, or none where one is wrong."""
        _same_length("rewards", rewards, len(rows))
        numbers = [parse_reward(reward, self._spec) for reward in rewards]
        if weights is None or np.ndim(weights) == 0:
            weights = [weights] * len(rows)
        _same_length("weights", weights, len(rows))
        sums = self._player.hints.sums
        counted = [parse_weight(weight, sums, self._agent) for weight in weights]
        self._require_learning()
        for i, (context, slot) in enumerate(rows):
            self._learn(context, slot, numbers[i], counted[i], i + 1 == len(rows))

    def _require_learning(self) -> None:
        if not self._learns:
            raise FeelgoodError("a snapshot does not learn: give the reward to the bandit itself.")

    def _learn(
        self, context: np.ndarray, slot: int, reward: float, weight: float, draws: bool
    ) -> None:
        if weight != 1.0:
            root = np.float32(weight**0.5)
            context, reward = root * context, float(root * reward)
        player = self._player
        player.learn(context, slot, reward, draws=draws)
        if player.grows and 2 * player.version > player.room and self._ahead is None:
            self._compile_ahead()

    def _compile_ahead(self) -> None:
        """Compile for twice the room, beside the requests."""
        player = self._player

        def make() -> None:
            player.make_ahead()
            self._ahead = None

        if not player.is_made_ahead():
            self._ahead = threading.Thread(target=make, name="feelgood-compile", daemon=True)
            self._ahead.start()

    def expire(self, id: Any = None, *, older_than: float | None = None) -> int:
        """Give up decisions that will have no reward, by id or by age in seconds; how many."""
        with self._lock:
            if (id is None) == (older_than is None):
                raise FeelgoodError("expire takes either ids or older_than: give one of them.")
            if older_than is not None:
                ids = self._ledger.older_than(_seconds(older_than))
            else:
                ids = list(id) if _several(id) else [id]
                for own in ids:
                    self._ledger.find(own)
            self._ledger.close(dict.fromkeys(ids), EXPIRED)
            return len(set(ids))

    # ---- copies -------------------------------------------------------------------------

    def snapshot(self) -> "Bandit":
        """A copy that decides by the same law, with random numbers of its own, and never learns."""
        with self._lock:
            copy = object.__new__(type(self))
            copy._settings, copy._agent, copy._policy = self._settings, self._agent, self._policy
            copy._arms = ArmTable(self._arms.labels, self._arms.removed)
            copy._ledger = Ledger(self._ledger.most, self._ledger.next)
            copy._open(self._player.copy(forked(self._player.streams)), self._spec)
            copy._learns = False
            return copy

    def __repr__(self) -> str:
        return f"<Bandit {self._agent}, {len(self.arms)} arms, {self.version} rewards>"


def _start_jax_for_requests() -> None:
    """Let programs run in the caller's thread: otherwise each call waits for another thread.

    JAX reads this once, before its first program, so it may be too late.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def _several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _same_length(what: str, values: Any, length: int) -> None:
    given = len(values) if _several(values) and hasattr(values, "__len__") else 1
    if not _several(values) or given != length:
        raise FeelgoodError(f"{what}: {given} given for {length} rows; use one per row.")


def _whole(name: str, value: Any, low: int, high: int) -> int:
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not good or not low <= value <= high:
        raise FeelgoodError(
            f"{name} = {shown(value)} is not allowed: use a whole number from {low} to {high}."
        )
    return int(value)


def _dimension(features: Any, arm_features: Any) -> int:
    if (features is None) == (arm_features is None):
        raise FeelgoodError("give either features or arm_features: how many numbers a context has.")
    if features is None:
        return _whole("arm_features", arm_features, 1, 1_000_000)
    return _whole("features", features, 1, 1_000_000)


def _likelihood(value: Any) -> Likelihood:
    if value == "squared":
        return "squared"
    if value == "bernoulli":
        return "bernoulli"
    raise FeelgoodError(f"rewards = {shown(value)} is not allowed: use 'squared' or 'bernoulli'.")


def _share(value: Any) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not 0.0 < float(value) <= 1.0:
        raise FeelgoodError(
            f"forget = {shown(value)} is not allowed: use a share above 0 and at most 1."
        )
    return float(value)


def _seconds(value: Any) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not float(value) >= 0.0:
        raise FeelgoodError(f"older_than = {shown(value)} is not allowed: use seconds, at least 0.")
    return float(value)
