"""The trap: a good arm that the prior calls unlikely."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from feelgood.core.knowledge import FiniteClass
from feelgood.core.spec import Spec
from feelgood.testbeds.naming import register_numbered
from feelgood.testbeds.worlds import FixedArms, told_number, world_setting


@register_numbered("trap", "mass", ("trap-0.01", "trap-0.0001"))
class Trap(FixedArms):
    """Arm 0 pays 0; arm 1 is good with a small prior mass, and else as bad.

    Arm 0 is known to pay 0. Arm 1 pays +`gap` if the optimist is right, who has the prior mass
    `mass`, and −`loss` if the pessimist is. By default both are Δ = min(1, 1/√(mass · horizon)),
    and the noise is N(0, 1). The regret of plain Thompson sampling in the optimist's world then
    grows as √(horizon/mass). Linear agents see the features 0 and 1.
    """

    mass: float = told_number(0.01, "prior mass of the optimist", high=0.999999)
    world: str = world_setting(
        "bad: the optimist is right; mirror: the pessimist; prior: drawn by their masses"
    )
    gap: float | None = told_number(
        "auto",
        "what arm 1 pays in the optimist's world; auto: min(1, 1/√(mass · horizon))",
        open_word="auto",
    )
    loss: float | None = told_number(
        "auto", "what arm 1 loses in the pessimist's world; auto: the gap", open_word="auto"
    )

    @property
    def pays(self) -> tuple[float, float]:
        """What arm 1 pays in the optimist's and in the pessimist's world."""
        usual = min(1.0, (self.mass * self.horizon) ** -0.5)
        gap = usual if self.gap is None else self.gap
        return gap, -(gap if self.loss is None else self.loss)

    @property
    def spec(self) -> Spec:
        means = tuple((0.0, paid) for paid in self.pays)
        known = FiniteClass(means, (self.mass, 1.0 - self.mass), self.noise)
        return Spec(arms=2, dim=1, shared=True, known=known)

    def shown(self) -> Float[Array, "1 2"]:
        return jnp.array([[0.0, 1.0]])

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, " 1"]:
        good, bad = self.pays
        if self.world == "prior":
            paid = jnp.where(jax.random.uniform(key) < self.mass, good, bad)
        else:
            paid = jnp.asarray(good if self.world == "bad" else bad)
        return paid.astype(jnp.float32)[None]
