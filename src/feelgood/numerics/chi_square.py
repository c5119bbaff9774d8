"""χ² variates for many chains at once, from standard normals."""

import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

#: Candidates per variate. With a degree of freedom one is refused with probability below 0.05 and
#: all with below 1e-5; with ten, all with below 1e-8.
CANDIDATES = 4
#: Standard normals that one variate takes.
NORMALS = 2 * CANDIDATES + 1


def chi_square(
    normals: Float[Array, "normals *lanes"], freedom: Float[Array, "*lanes"]
) -> Float[Array, "*lanes"]:
    """One χ² variate per chain, with at least 1 degree of freedom, from `NORMALS` normals.

    Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: with a = freedom/2,
    d = a − ⅓ and c = 1/√(9d), v = (1 + cz)³ is taken if v > 0 and ln u < z²/2 + d(1 − v + ln v);
    then dv is Gamma(a). For a below 1 a variate with a + 1 is multiplied by u^(1/a). A fixed number
    of candidates stands for the loop, and the first that is taken counts. u is Φ of a normal.
    """
    boost = freedom < 2.0
    d = 0.5 * freedom + boost - 1.0 / 3.0
    z = normals[:CANDIDATES]
    log_u = jnp.log(ndtr(normals[CANDIDATES:]))
    root = 1.0 + z / jnp.sqrt(9.0 * d)
    v = jnp.maximum(root, 1e-12) ** 3
    taken = (root > 0.0) & (log_u[1:] < 0.5 * z**2 + d * (1.0 - v + jnp.log(v)))
    chosen = v[-1]
    for i in reversed(range(CANDIDATES - 1)):
        chosen = jnp.where(taken[i], v[i], chosen)
    return 2.0 * d * chosen * jnp.where(boost, jnp.exp(2.0 * log_u[0] / freedom), 1.0)
