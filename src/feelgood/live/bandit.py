"""The bandit that a service asks."""

import itertools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.policy import AGENTS, require_playable
from feelgood.core.spec import Spec
from feelgood.live import bandit_arguments as arguments
from feelgood.live.bandit_files import read_bandit, write_bandit
from feelgood.live.callers_thread import run_in_callers_thread
from feelgood.live.decisions import Decision, Ledger
from feelgood.live.journal import STATE, Journal, Record, read_records
from feelgood.live.live_player import LivePlayer
from feelgood.live.live_state import LiveState, restored
from feelgood.live.recording import Recorder
from feelgood.live.requests import ArmTable, Label, parse_arms, parse_reward, parse_weight
from feelgood.live.streams_of import first_streams

if TYPE_CHECKING:
    from feelgood.logs.event_log import EventLog

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

    `journal` is a folder in which every decision and reward is on disk before the call returns.
    `Bandit.load` of that folder goes on after a kill with all of them. With `fsync="batched"` the
    system may keep the latest tenth of a second in memory: a kill of the process still loses
    nothing, but a power failure may. `log` is a file to which decisions, their probabilities and
    rewards are added for `feelgood evaluate` and `feelgood report`, or an `EventLog`.

    All methods may be called by several threads. An error changes nothing.

    **Example:**

    >>> import feelgood, tempfile
    >>> bandit = feelgood.Bandit("lints", arms=["red", "green"], features=2)
    >>> first, second = bandit.act([[1.0, 0.5], [1.0, -0.5]])
    >>> bandit.update(first.id, 1.0)
    >>> bandit.learn([1.0, 0.0], "red", 0.5)  # of a log: it was no decision here
    >>> bandit.version, bandit.waiting == (second.id,), bandit.expire(second.id)
    (2, True, 1)
    >>> bandit.add_arm("blue"), bandit.remove_arm("red"), bandit.arms
    (None, None, ('green', 'blue'))
    >>> bandit.save(path := tempfile.mkdtemp() + "/bandit.fg"), bandit.close()
    (None, None)
    >>> feelgood.Bandit.load(path).snapshot().pmf([1.0, 0.0]).shape
    (2,)
    """

    def __init__(
        self,
        agent: str | Any,
        arms: Sequence[Label] | int | Any,
        features: int | Any = None,
        *,
        arm_features: int | Any = None,
        seed: int | Any = 0,
        settings: Mapping[str, Any] | Any = None,
        members: int | Any = 1,
        rewards: str | Any = "squared",
        forget: float | Any = 1.0,
        pending: int | Any = 100_000,
        journal: str | Path | None = None,
        fsync: str | Any = "always",
        log: "EventLog | str | Path | None" = None,
    ) -> None:
        run_in_callers_thread()
        entry = AGENTS[agent]
        labels, dim = parse_arms(arms), arguments.dimension(features, arm_features)
        spec = Spec(len(labels), dim, arm_features is not None, arguments.likelihood(rewards))
        policy, resolved = entry.build(settings), entry.resolve(settings)
        require_playable(policy, spec, agent, "in a live bandit")
        seed = arguments.whole("seed", seed, 0, MOST_SEED)
        streams = first_streams(seed, arguments.whole("members", members, 1, MOST_MEMBERS))
        ledger = Ledger(arguments.whole("pending", pending, 1, 10**9))
        keep = arguments.share(forget)
        if keep < 1.0 and not policy.hints(spec).sums:
            raise FeelgoodError(
                f"forget = {shown(forget)} is not possible with {agent}, which keeps more than "
                "sums of its rewards: leave forget out."
            )
        folder = None if journal is None else Path(journal)
        if folder is not None and (folder / STATE).exists():
            raise FeelgoodError(f"there is a journal in {folder} already: use Bandit.load.")
        own = None if folder is None else Journal(folder, fsync)
        with Recorder.opened(own, log) as recorder:
            player = LivePlayer(policy, spec, streams, keep=keep)
            player.warm_up()
            state = LiveState(agent, resolved, spec, ArmTable(labels), ledger, player)
            if recorder is not None:
                recorder.begin(state)
        self._open(state, recorder)

    def _open(self, state: LiveState, recorder: Recorder | None, learns: bool = True) -> None:
        self._state, self._recorder, self._learns = state, recorder, learns
        self._lock, self._closed = threading.RLock(), False
        #: Whether most calls need no more than the state.
        self._plain = learns and recorder is None

    # ---- decide -------------------------------------------------------------------------

    @property
    def arms(self) -> tuple[Label, ...]:
        """The names of the arms that there are."""
        return self._state.arms.active

    @property
    def version(self) -> int:
        """How many rewards have been learned."""
        return self._state.player.version

    @property
    def waiting(self) -> tuple[int, ...]:
        """The ids of decisions that wait for a reward, the oldest first."""
        with self._lock:
            return tuple(self._state.ledger.waiting)

    def act(self, x: Any, mask: Any = None) -> Any:
        """Decide: a `Decision` for one context, a list of them for several.

        `mask` says which arms may be played: truth values, or names.
        """
        with self._lock:
            state = self._state
            if mask is None and self._plain:
                decision = state.decide_plainly(x)
                if decision is not None:
                    if len(state.ledger.waiting) > state.ledger.most:
                        self._expire(state.ledger.overdue())
                    return decision
            contexts = state.contexts
            several = contexts.is_batch(x)
            rows = [contexts.one(row) for row in x] if several else [contexts.one(x)]
            allowed, labels = self._allowed(mask)
            self._require_open()
            made = self._decide(state, rows, allowed, labels)
            return made if several else made[0]

    def _allowed(self, mask: Any) -> tuple[np.ndarray | None, tuple[Label, ...]]:
        allowed, labels = self._state.arms.mask(mask)
        if allowed is not None and not self._state.player.masks:
            raise FeelgoodError(
                f"{self._state.agent} cannot choose among some of its arms: its choose takes no "
                "mask."
            )
        return allowed, labels

    def _decide(
        self,
        state: LiveState,
        rows: Sequence[np.ndarray],
        allowed: np.ndarray | None,
        labels: tuple[Label, ...],
    ) -> list[Decision]:
        """All of them, written down, or none."""
        mark, first = state.player.mark(len(rows)), state.ledger.next
        try:
            made = [state.decide(context, allowed, labels) for context in rows]
            if self._recorder is not None:
                self._recorder.decided(state, made)
        except BaseException:
            state.player.go_back(mark)
            state.ledger.withdraw(first)
            raise
        if len(state.ledger.waiting) > state.ledger.most:
            self._expire(state.ledger.overdue())
        return made

    def pmf(self, x: Any, mask: Any = None) -> np.ndarray | None:
        """The probability of every arm that may be played; None where the agent has none.

        Nothing changes. A batch of contexts has one row each.
        """
        with self._lock:
            contexts = self._state.contexts
            if contexts.is_batch(x):
                rows = [self.pmf(row, mask) for row in x]
                return None if any(row is None for row in rows) else np.array(rows)
            context = contexts.one(x)
            allowed, _ = self._allowed(mask)
            return self._state.player.law(context, allowed)

    # ---- learn --------------------------------------------------------------------------

    def update(self, id: Any, reward: Any, weight: Any = 1.0) -> None:
        """Learn the reward of a decision, or of several: sequences of ids, rewards and weights.

        Where weights are possible, a reward of weight w counts as one whose noise has the variance
        divided by w.
        """
        with self._lock:
            state, recorder = self._state, self._recorder
            whole = type(weight) is float and weight == 1.0
            if whole and self._plain and state.reward_plainly(id, reward):
                return
            if arguments.several(id):
                self._update_all(list(id), reward, weight)
            else:
                state.ledger.find(id)
                number = parse_reward(reward, state.bernoulli)
                counted = parse_weight(weight, state.player.sums, state.agent)
                self._require_learning()
                if recorder is not None:
                    recorder.rewarded([(int(id), number, counted)])
                state.rewarded(int(id), number, counted)
            if recorder is not None:
                recorder.compact_if_long(state)

    def _update_all(self, ids: list[Any], rewards: Any, weights: Any) -> None:
        seen = set()
        for own in ids:
            self._state.ledger.find(own)
            if own in seen:
                raise FeelgoodError(f"decision {own} is there twice: give it one reward.")
            seen.add(own)
        pairs = arguments.pairs(self._state, len(ids), rewards, weights)
        self._require_learning()
        paid = [(int(own), *pair) for own, pair in zip(ids, pairs, strict=True)]
        if self._recorder is not None:
            self._recorder.rewarded(paid)
        for i, one in enumerate(paid):
            self._state.rewarded(*one, draws=i + 1 == len(paid))

    def learn(self, context: Any, arm: Any, reward: Any, weight: Any = None) -> None:
        """Learn from a context, an arm and its reward that were no decision here, such as a log's.

        One of each, or a batch.
        """
        with self._lock:
            state = self._state
            if not state.contexts.is_batch(context):
                context, arm, reward = [context], [arm], [reward]
                weight = None if weight is None else [weight]
            arguments.same_length("arms", arm, len(context))
            slots = [state.arms.slot(label) for label in arm]
            rows = [state.contexts.one(x) for x in context]
            pairs = arguments.pairs(state, len(rows), reward, weight)
            self._require_learning()
            if self._recorder is not None:
                told = zip(slots, pairs, rows, strict=True)
                self._recorder.observed([(slot, *pair, x) for slot, pair, x in told])
            for i, (x, slot) in enumerate(zip(rows, slots, strict=True)):
                state.observed(x, slot, *pairs[i], draws=i + 1 == len(rows))
            if self._recorder is not None:
                self._recorder.compact_if_long(state)

    def _require_open(self) -> None:
        if self._closed:
            raise FeelgoodError("the bandit was closed: load its journal again.")

    def _require_learning(self) -> None:
        self._require_open()
        if not self._learns:
            raise FeelgoodError("a snapshot does not learn: give the reward to the bandit itself.")

    def expire(self, id: Any = None, *, older_than: float | Any = None) -> int:
        """Give up decisions that will have no reward, by id or by age in seconds; how many."""
        with self._lock:
            if (id is None) == (older_than is None):
                raise FeelgoodError("expire takes either ids or older_than: give one of them.")
            if older_than is not None:
                ids = self._state.ledger.older_than(arguments.seconds(older_than))
            else:
                ids = list(dict.fromkeys(id)) if arguments.several(id) else [id]
                for own in ids:
                    self._state.ledger.find(own)
            self._expire([int(own) for own in ids])
            return len(ids)

    def _expire(self, ids: list[int]) -> None:
        self._require_open()
        if self._recorder is not None:
            self._recorder.expired(ids)
        self._state.expired(ids)

    # ---- arms ---------------------------------------------------------------------------

    def add_arm(self, arm: Label | Any) -> None:
        """One more arm, of which nothing is known but the prior.

        Programs are compiled for it, so it takes seconds; calls meanwhile wait.
        """
        with self._lock:
            self._require_open()
            arm = self._state.arms.require_new(arm)
            self._state.add_arm(arm)
            if self._recorder is not None:
                try:
                    self._recorder.compact(self._state)
                except BaseException:
                    self.close()  # its records would not fit the state on disk, which is whole
                    raise

    def remove_arm(self, arm: Label | Any) -> None:
        """The arm is played no more; its decisions may still be rewarded, and it keeps its slot."""
        with self._lock:
            self._require_open()
            self._state.arms.require_spare(arm)
            if not self._state.player.masks:
                raise FeelgoodError(
                    f"{self._state.agent} cannot do without an arm: its choose takes no mask."
                )
            if self._recorder is not None:
                self._recorder.removed(arm)
            self._state.remove_arm(arm)

    # ---- copies and files ---------------------------------------------------------------

    def snapshot(self) -> "Bandit":
        """A copy that decides by the same law, with random numbers of its own, and never learns."""
        with self._lock:
            copy = object.__new__(type(self))
            copy._open(self._state.copy(), None, learns=False)
            return copy

    def save(self, path: str | Path) -> None:
        """Write everything into one file, which is at every instant the old one or the new one."""
        with self._lock:
            saved = self._state.saved()
        write_bandit(Path(path), saved)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        exact: bool = False,
        fsync: str | Any = "always",
        log: "EventLog | str | Path | None" = None,
    ) -> "Bandit":
        """The bandit of a file that `save` wrote, or of a journal's folder, which goes on.

        Its random numbers are new ones: copies that explore alike would learn less. With `exact`
        it plays what the saved one would have played.
        """
        run_in_callers_thread()
        place, journal = Path(path), None
        if place.is_dir():
            if not (place / STATE).exists():
                raise FeelgoodError(f"{place} is no journal: it has no {STATE}.")
            journal = Journal(place, fsync)
        with Recorder.opened(journal, log) as recorder:
            saved = read_bandit(place if journal is None else place / STATE)
            # The journal was written with the old random numbers: its draws are repeated by them.
            state = restored(saved, place, exact or journal is not None)
            events: list[Record] = []
            if journal is not None:
                events = list(read_records(place / saved.manifest["records"]))
                for event, after in itertools.pairwise([*events, None]):
                    assert event is not None
                    state.repeat(event, draws=after is None or after.kind not in "RL")
                if not exact:
                    state.fork()
            state.player.prepare()
            if recorder is not None:
                recorder.begin(state, events)
        bandit = object.__new__(cls)
        bandit._open(state, recorder)
        return bandit

    def close(self) -> None:
        """Everything on disk, and journal and log free for another process."""
        with self._lock:
            if self._recorder is not None:
                self._recorder.close()
                self._recorder, self._closed = None, True

    def __enter__(self) -> "Bandit":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Bandit {self._state.agent}, {len(self.arms)} arms, {self.version} rewards>"
