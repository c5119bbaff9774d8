"""All that a live bandit is: its arms, its agent's state, its waiting decisions.

Every change is one of a few events, so that a journal can repeat them. Callers hold a lock, and
have checked what they give.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import feelgood
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.spec import Spec
from feelgood.engine.compiling import in_own_precision
from feelgood.live.arm_growth import with_a_column_more, with_one_more_arm
from feelgood.live.bandit_files import SavedBandit
from feelgood.live.decisions import (
    EXPIRED,
    REWARDED,
    Decision,
    Ledger,
    Pending,
    make_pending,
)
from feelgood.live.journal import Record
from feelgood.live.live_player import LivePlayer
from feelgood.live.requests import DOUBLE, LARGEST_NUMBER, ArmTable, Contexts, Label
from feelgood.live.streams_of import forked
from feelgood.numerics.keys import start_key

#: How many ended decisions a file remembers, to say what became of them.
_ENDED_SAVED = 10_000
#: Bits of an id that count; those above say which copy of a bandit it is of.
_ID_BITS = 40


class LiveState:
    """One bandit's state; not for several threads at once."""

    def __init__(
        self,
        agent: str,
        settings: dict[str, Any],
        spec: Spec,
        arms: ArmTable,
        ledger: Ledger,
        player: LivePlayer,
    ) -> None:
        self.agent, self.settings, self.spec = agent, settings, spec
        self.arms, self.ledger, self.player = arms, ledger, player
        self.bernoulli = spec.rewards == "bernoulli"
        self._renew_contexts()
        self._ahead: threading.Thread | None = None

    def _renew_contexts(self) -> None:
        """After a change of the arms."""
        self.contexts = Contexts(self.spec, self.arms)
        some = self.spec.shared or self.arms.present is not None
        #: The shape of a context that needs nothing but a conversion; None: every one does.
        self._plain = None if some else self.contexts.shape

    def seen(self, context: np.ndarray, labels: Sequence[Label]) -> np.ndarray:
        """What these arms showed: the context, or a row per arm."""
        if not self.spec.shared:
            return context
        return context.T[[self.arms.slot_of[label] for label in labels]]

    # ---- what is asked for most, in few steps ---------------------------------------------

    def decide_plainly(self, x: Any) -> Decision | None:
        """The decision for one array of doubles, where all arms may be played; None: another case.

        It is what `decide` does for a checked context.
        """
        if type(x) is not np.ndarray or x.dtype is not DOUBLE or x.shape != self._plain:
            return None
        if not x.dot(x) < LARGEST_NUMBER:
            return None
        return self.decide(x.astype(np.float32), None, self.arms.active)

    def reward_plainly(self, own: Any, reward: Any) -> bool:
        """Learn the reward of a waiting decision, a float; False: another case, nothing was done.

        It is what `rewarded` does for a checked reward.
        """
        if type(own) is not int or type(reward) is not float or self.bernoulli:
            return False
        pending = self.ledger.waiting.get(own)
        if pending is None or not -LARGEST_NUMBER <= reward <= LARGEST_NUMBER:
            return False
        if self.player.grows:
            return False
        self.player.learn(pending[0], pending[1], reward)
        self.ledger.close(own, REWARDED)
        return True

    # ---- events -------------------------------------------------------------------------

    def decide(
        self, context: np.ndarray, allowed: np.ndarray | None, labels: tuple[Label, ...]
    ) -> Decision:
        """A decision, which waits from now on."""
        player, ledger = self.player, self.ledger
        slot, law = player.decide(context, allowed)
        own = ledger.next
        ledger.waiting[own] = make_pending(Pending, (context, slot, time.time()))
        ledger.next = own + 1
        return Decision(own, self.arms.labels[slot], labels, player.version, law)

    def rewarded(self, own: int, reward: float, weight: float, draws: bool = True) -> None:
        """The reward of a waiting decision."""
        context, slot, _ = self.ledger.waiting[own]
        self.observed(context, slot, reward, weight, draws)
        self.ledger.close(own, REWARDED)

    def observed(
        self, context: np.ndarray, slot: int, reward: float, weight: float, draws: bool = True
    ) -> None:
        """A reward; of weight w it is a row times √w."""
        if weight != 1.0:
            root = np.float32(weight**0.5)
            context, reward = root * context, float(root * reward)
        player = self.player
        player.learn(context, slot, reward, draws)
        if player.grows and 2 * player.version > player.room and self._ahead is None:
            self._compile_ahead()

    def _compile_ahead(self) -> None:
        """Compile for twice the room, beside the requests."""
        player = self.player

        def make() -> None:
            try:
                player.make_ahead()
            finally:
                self._ahead = None

        if not player.is_made_ahead():
            # No daemon: the end of the program waits, as a compilation must not be cut off.
            self._ahead = threading.Thread(target=make, name="feelgood-compile")
            self._ahead.start()

    def expired(self, ids: Any) -> None:
        """Decisions that will have no reward."""
        for own in dict.fromkeys(ids):
            self.ledger.close(own, EXPIRED)

    def add_arm(self, label: Label) -> None:
        """One more arm; its programs are compiled."""
        player, policy = self.player, AGENTS[self.agent].build(self.settings)
        key = start_key(player.game.keys(jnp.asarray(player.streams)))
        carried = player.carried()
        state = with_one_more_arm(
            self.agent,
            player.policy,
            player.game.spec,
            player.hints,
            carried.state,
            key,
            player.room,
        )
        spec = Spec(self.spec.arms + 1, self.spec.dim, self.spec.shared, self.spec.rewards)
        grown = player_of(policy, spec, player.streams, float(player.keep), player.room, state)
        grown.round, grown.version = player.round, player.version
        if spec.shared:
            waiting = self.ledger.waiting
            for own, one in waiting.items():
                waiting[own] = one._replace(context=with_a_column_more(one.context))
        self.player, self.spec = grown, spec
        self.arms.add(label)
        self._renew_contexts()

    def remove_arm(self, label: Label) -> None:
        """An arm less: it is masked from now on."""
        self.arms.remove(label)
        self._renew_contexts()

    def repeat(self, event: Record, draws: bool) -> None:
        """The same again, from a journal; `draws`: a decision may follow."""
        kind, numbers, more = event
        if kind == "D":
            own, moment, slot = numbers
            context = more.reshape(self.spec.context_shape)
            self.player.play()
            self.ledger.waiting[own] = Pending(context, slot, moment)
            self.ledger.next = own + 1
        elif kind == "R":
            own, reward, weight = numbers
            self.rewarded(own, reward, weight, draws)
        elif kind == "L":
            slot, reward, weight = numbers
            self.observed(more.reshape(self.spec.context_shape), slot, reward, weight, draws)
        elif kind == "E":
            self.expired(numbers)
        else:
            self.remove_arm(more)

    # ---- copies and files ---------------------------------------------------------------

    def fork(self) -> None:
        """Random numbers and ids that no other copy has."""
        self.player = self.player.copy(forked(self.player.streams))
        tag = int.from_bytes(os.urandom(4), "little") >> 9
        count = self.ledger.next & ((1 << _ID_BITS) - 1)
        self.ledger.next = ((tag or 1) << _ID_BITS) + count

    def copy(self) -> "LiveState":
        """The same with streams of its own, and no waiting decisions."""
        player = self.player.copy(forked(self.player.streams))
        arms = ArmTable(self.arms.labels, self.arms.removed)
        ledger = Ledger(self.ledger.most, self.ledger.next)
        return LiveState(self.agent, self.settings, self.spec, arms, ledger, player)

    def saved(self, **more: Any) -> SavedBandit:
        """What a file holds of it."""
        player, ledger, spec = self.player, self.ledger, self.spec
        ended = list(ledger.ended.items())[-_ENDED_SAVED:]
        manifest = {
            "feelgood": feelgood.__version__,
            "agent": self.agent,
            "digest": AGENTS.digest(self.agent),
            "settings": self.settings,
            "arms": self.arms.labels,
            "removed": sorted(self.arms.removed),
            "dim": spec.dim,
            "shared": spec.shared,
            "rewards": spec.rewards,
            "forget": float(player.keep),
            "pending": ledger.most,
            "next": ledger.next,
            "round": player.round,
            "version": player.version,
            "room": player.room,
            **more,
        }
        shape = (len(ledger.waiting), *spec.context_shape)
        contexts = [one.context for one in ledger.waiting.values()]
        arrays = {
            "streams": player.streams,
            "waiting/ids": np.array(list(ledger.waiting), np.int64),
            "waiting/slots": np.array([one.slot for one in ledger.waiting.values()], np.int32),
            "waiting/times": np.array([one.time for one in ledger.waiting.values()], np.float64),
            "waiting/contexts": np.array(contexts, np.float32).reshape(shape),
            "ended/ids": np.array([own for own, _ in ended], np.int64),
            "ended/rewarded": np.array([how == REWARDED for _, how in ended], bool),
        }
        for i, leaf in enumerate(jax.tree.leaves(player.carried().state)):
            arrays[f"state/{i}"] = _as_numpy(leaf)
        return SavedBandit(json.loads(json.dumps(manifest)), arrays)


def player_of(
    policy: Policy, spec: Spec, streams: np.ndarray, keep: float, room: int, state: Any
) -> LivePlayer:
    """A player that goes on with a state, ready for requests."""
    player = LivePlayer(policy, spec, streams, keep=keep, room=room, state=state)
    player.warm_up()
    return player


def restored(saved: SavedBandit, path: Any, exact: bool) -> LiveState:
    """The bandit that a file holds; with random numbers of its own unless `exact`."""
    said, arrays = saved
    entry = AGENTS[said["agent"]]
    spec = Spec(len(said["arms"]), said["dim"], said["shared"], said["rewards"])
    streams = arrays["streams"]
    count = sum(name.startswith("state/") for name in arrays)
    leaves = [arrays[f"state/{i}"] for i in range(count)]
    try:
        policy = entry.build(said["settings"])
        player = player_of(policy, spec, streams, said["forget"], said["room"], leaves)
    except (AssertionError, TypeError, ValueError) as error:
        if isinstance(error, FeelgoodError):
            raise
        raise FeelgoodError(
            f"{path} holds a state that {said['agent']} does not have here: use the version of "
            "feelgood or the plug-in that wrote it."
        ) from error
    player.round, player.version = said["round"], said["version"]
    player.ready = False
    ledger = Ledger(said["pending"], said["next"])
    waiting = (arrays[f"waiting/{name}"] for name in ("ids", "contexts", "slots", "times"))
    for own, context, slot, moment in zip(*waiting, strict=True):
        ledger.waiting[int(own)] = Pending(context, int(slot), float(moment))
    for own, rewarded in zip(arrays["ended/ids"], arrays["ended/rewarded"], strict=True):
        ledger.ended[int(own)] = REWARDED if rewarded else EXPIRED
    arms = ArmTable(said["arms"], said["removed"])
    state = LiveState(said["agent"], said["settings"], spec, arms, ledger, player)
    if not exact:
        state.fork()
    return state


@in_own_precision
def _as_numpy(leaf: Any) -> np.ndarray:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.array(leaf)  # a copy: the leaf itself will change
