"""All that is compiled for a live bandit's states of one shape."""

import inspect
from typing import Any

import jax
import numpy as np

from feelgood.core.policy import Policy
from feelgood.engine import compiling
from feelgood.engine.compiling import compiled
from feelgood.live.calls import Form, Game
from feelgood.live.programs import (
    ChooseStep,
    DrawStep,
    LawStep,
    LearnStep,
    NoiseBlock,
    ScoresStep,
)
from feelgood.live.state_words import Packing
from feelgood.stats.choice_probabilities import choice_probabilities
from feelgood.stats.independent_scores import USUAL


class ProgramSet:
    """The programs for states of one shape."""

    def __init__(
        self,
        game: Game,
        packing: Packing,
        changed: tuple[int, ...],
        masks: bool,
        sparing: bool,
    ) -> None:
        self.packing, self._game, hints = packing, game, game.agent.hints
        # To do rare work again takes a copy of the state: where that is large, there is none.
        sparing = sparing and not packing.large
        words = jax.ShapeDtypeStruct((packing.offsets[-1],), np.uint32)
        large = [jax.ShapeDtypeStruct(packing.shapes[i], packing.dtypes[i]) for i in packing.large]
        request = jax.ShapeDtypeStruct((Form(game).starts[-1],), np.uint32)
        noise = jax.ShapeDtypeStruct((game.rounds_ahead, game.normals), np.float32)

        # On a CPU programs change a state where it is, and the host looks at it there.
        moving: tuple[int, ...] = ()
        if jax.default_backend() == "cpu":
            moving = (0, *range(3, 3 + len(large)))

        def made(step: Any, *given: Any, donate: tuple[int, ...] = ()) -> Any:
            arguments = (words, request, *given, *large)
            return compiled(step, *arguments, donate=donate, effort=compiling.BRIEFLY)[0]

        #: The usual program and the one for rare work; None: they are the same.
        self.learn = made(LearnStep(game, packing, changed, sparing), noise, donate=moving)
        self.learn_fully = None
        if sparing:
            self.learn_fully = made(LearnStep(game, packing, changed, False), noise, donate=moving)
        self.draw = made(DrawStep(game, packing, changed), noise, donate=moving)
        self.choose = None
        if not hints.linear:
            self.choose = made(ChooseStep(game, packing, changed, masks), noise)
        self._rule = self._scores = None
        if hints.pmf is not None and not game.spec.lanes:
            self._rule = made(LawStep(game, packing, changed, masks))
        elif hints.scores is not None and not game.spec.lanes:
            self._scores = made(ScoresStep(game, packing, changed))

    @property
    def has_law(self) -> bool:
        """Whether there is a rule for the probability of each arm."""
        return self._rule is not None or self._scores is not None

    def law(
        self, words: Any, large: Any, context: np.ndarray, allowed: np.ndarray | None
    ) -> np.ndarray:
        """The probability of each arm that may be played, of a state with a draw ready.

        It may be asked for at any later time and by any thread.
        """
        request = Form(self._game).request(context, allowed)
        offered = slice(None) if allowed is None else allowed
        if self._rule is not None:
            return np.asarray(self._rule(words, request, *large), np.float64)[offered]
        assert self._scores is not None
        told = jax.tree.map(np.asarray, self._scores(words, request, *large))
        return choice_probabilities(told, allowed, accuracy=USUAL).pmf[offered]


def noise_program(game: Game, streams: np.ndarray) -> Any:
    """What draws the random numbers of some rounds."""
    like = jax.ShapeDtypeStruct(streams.shape, np.uint32)
    return compiled(NoiseBlock(game), like, np.int32(0), effort=compiling.BRIEFLY)[0]


def takes_masks(agent: Policy) -> bool:
    """Whether an agent can choose among some of the arms only."""
    return "allowed" in inspect.signature(agent.choose).parameters
