"""ε-greedy with a network."""

from jaxtyping import Array, Float, Int

from feelgood.agents.epsgreedy import DECAYS, explore
from feelgood.agents.neural import TrainedPolicy, TrainedState, play_greedily
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics.keys import AnyKey


@AGENTS.register("neural-eps-greedy", family="Networks")
class NeuralEpsGreedy(TrainedPolicy):
    """The best arm of a network, and with probability ε a uniform one."""

    epsilon: Number = setting(
        0.1, "probability ε of a uniform arm", low=0.0, high=1.0, tune=(1e-3, 0.5)
    )
    decay: str = setting("none", "how ε falls: constant, or ε/√t", choices=DECAYS)

    def choose(
        self, key: AnyKey, state: TrainedState, context: Float[Array, "..."]
    ) -> Int[Array, ""]:
        greedy = play_greedily(self.network(state.spec), state.theta, context)
        count = state.replay.filled
        return explore(key, greedy, state.spec.arms, self.epsilon, self.decay, count)
