"""The agent of a live bandit, and its rounds.

A round is that of the engine: round t draws and chooses with the numbers of `round_key(stream, t)`.
The draw of the next round is made in the call that learns a reward. A draw that was not played is
dropped when another reward comes first, so every draw that is played knows all rewards before it.

What one decision and one reward need is written out here, where it could be many small functions:
their calls would take as long as the rest.
"""

import math
from typing import Any

import jax
import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.live.calls import REQUEST_HEAD
from feelgood.live.player_state import PlayerState

_DIVERGED = (
    "the agent's numbers are no longer finite: load an earlier file, or choose settings with "
    "smaller steps."
)


class LivePlayer(PlayerState):
    """An agent that plays live. Not for several threads at once."""

    def _row(self) -> int:
        """Where the normals of the next round are in the block of many rounds."""
        row = self.round - self._noise_first
        if not 0 <= row < self._rounds_ahead:
            self._noise, members = self._noise_program(self.streams, np.int32(self.round))
            self._members, self._noise_first, row = np.asarray(members), self.round, 0
        return row

    def _acting(self) -> int:
        """Which chain acts in the next round."""
        return int(self._members[self._row()])

    def _run(
        self,
        program: Any,
        context: np.ndarray | None,
        arm: int = 0,
        reward: float = 0.0,
        draws: bool = True,
    ) -> None:
        """Move the state by a program; when this returns, nothing reads the request any more.

        On a CPU it changes the words where they are; a copy is kept of what they were.
        """
        round, mail = self.round, self._mail
        row = round - self._noise_first
        if not 0 <= row < self._rounds_ahead:
            row = self._row()
        REQUEST_HEAD.pack_into(mail.head, 0, arm, round, row, self.played, draws, 1, reward)
        if context is not None:
            mail.context[...] = context
        if self._lost:
            raise FeelgoodError("a program failed and its state is lost: load the bandit again.")
        before = self._copied
        if before is None:
            before = self.copied()
        request = mail.array if mail.array is not None else mail.copy()
        program = getattr(program, "_call", None) or program  # spares a call in Python
        try:
            if self.large:
                large = self._current_large()
                words, *self.large = program(self.words, request, self._noise, *large)
            else:
                (words,) = program(self.words, request, self._noise)
            if self._waits:
                words.block_until_ready()
        except BaseException:
            self._put(before)
            self._lost = any(leaf.is_deleted() for leaf in self.large)
            raise
        self.words = words
        self._copied = None
        if words.unsafe_buffer_pointer() != self._place:
            self._look()
        elif self._large_theta is not None:
            self._read_theta()

    def prepare(self) -> None:
        """Have the draw of the next round ready."""
        if not self._changed:
            self._row()
            self.ready = True
        if not self.ready:
            self._run(self.programs.draw, None)
            self.ready, self.played = True, False

    def decide(self, context: np.ndarray, allowed: np.ndarray | None) -> tuple[int, Any]:
        """Play a round: the arm, and what its law can be computed by, where there is one."""
        if not self.ready:
            self.prepare()
        if self._few and allowed is None:
            # As `arms` has it, with numbers of Python: for a few arms that takes half the time.
            scores = context.dot(self._parameters).tolist()
            if not math.isfinite(sum(scores)):
                raise FeelgoodError(_DIVERGED)
            arm = arms = scores.index(max(scores))
        else:
            arms = self.arms(context, allowed)
            arm = int(arms if self.chains == 1 else arms[self._acting()])
        law = None
        if self.has_law:
            words, large = self._copied, self.large
            if words is None:
                words = self.copied()
            if large and self.chains == 1:
                large = self._large_copied()
            law = self.law_of, (self.programs, words, large, context, allowed, arms)
        self.round += 1
        self.ready = False
        self.played = self._moves
        return arm, law

    def arms(self, context: np.ndarray, allowed: np.ndarray | None) -> Any:
        """The arm that each chain plays in the next round, with the draw that is ready."""
        if not self.linear:
            request = self._mail.asking(context, self.round, self._row(), allowed)
            choose = self.programs.choose
            assert choose is not None
            arms = np.asarray(choose(self.words, request, self._noise, *self.large))
            if not (arms < self._arm_count).all() or (arms < 0).any():
                raise FeelgoodError(_DIVERGED)
            return arms
        scores = (context.T if self.shared else context).dot(self._parameters)
        scores = scores.reshape(self._scores_shape)
        if not np.isfinite(scores).all():
            raise FeelgoodError(_DIVERGED)
        if allowed is not None:
            shape = (-1,) + (1,) * (scores.ndim - 1)
            scores = np.where(allowed.reshape(shape), scores, -np.inf)
        return scores.argmax(0)

    def learn(self, context: np.ndarray, arm: int, reward: float, draws: bool = True) -> None:
        """One observed reward; with the draw of the next round."""
        if self.grows and self.version >= self.room:
            self.grow()
        before = self._copied
        if before is None:
            before = self.copied()
        self._run(self.programs.learn, context, arm, reward, draws)
        if self._undone[-1]:
            self._put(before)
            self._run(self.programs.learn_fully, context, arm, reward, draws)
        self.version += 1
        self.ready = draws
        self.played = False

    def mark(self, rounds: int) -> tuple[Any, ...]:
        """Where the player is, with a draw ready, to go back to after so many rounds.

        One round changes nothing but its number. More of them draw, so that it takes a copy.
        """
        self.prepare()
        now = self.round, self.ready, self.played
        return (*now, *((None, None) if rounds == 1 else (self.copied(), self._large_copied())))

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """To where the player was."""
        self.round, self.ready, self.played, words, large = mark
        if words is not None:
            self.large = large
            self._put(words)

    def play(self) -> None:
        """The draw that was ready has been played: the next round begins."""
        self.prepare()
        self.round += 1
        self.ready, self.played = False, self._moves

    def law(self, context: np.ndarray, allowed: np.ndarray | None) -> np.ndarray | None:
        """The probability of each arm that may be played next, where there is a rule for it."""
        if not self.has_law:
            return None
        self.prepare()
        arms = self.arms(context, allowed) if self.chains > 1 else None
        return self.law_of((self.programs, self.copied(), self.large, context, allowed, arms))

    def law_of(self, moment: tuple[Any, ...]) -> np.ndarray:
        """The probabilities of each arm at that moment, which may be long ago."""
        programs, words, large, context, allowed, arms = moment
        if self.chains == 1:
            return programs.law(words, large, context, allowed)
        shares = np.bincount(arms, minlength=self._arm_count) / self.chains
        return shares if allowed is None else shares[allowed]

    def warm_up(self) -> None:
        """Call every program once, and have the first draw ready."""
        self.prepare()
        context = np.zeros(self.game.spec.context_shape, np.float32)
        self.arms(context, None)
        self.law(context, None)
        request = self._mail.asking(context, 0, self._row(), None)
        for learn in (self.programs.learn, self.programs.learn_fully):
            if learn is not None:
                own = jax.numpy.array(self.words), request, self._noise, *self._large_copied()
                jax.block_until_ready(learn(*own))
        self._put(self.copied())  # as rare work and errors do
