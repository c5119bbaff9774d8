"""Standard normals as PyTorch draws them on a CPU, from the seed on.

`torch.manual_seed(s)` seeds a Mersenne Twister. `torch.randn` of 16 numbers or more takes one word
of it per number, of which the 24 lowest bits are a uniform u in [0, 1). Each 16 uniforms make 16
normals by the Box–Muller transform: numbers i and i + 8, for i < 8, are √(−2 ln(1 − uᵢ)) times the
cosine and the sine of 2πuᵢ₊₈. Where the count is no multiple of 16, the last 16 are drawn anew.
PyTorch's vector functions round otherwise in the last digit.
"""

import numpy as np
from jaxtyping import Float32

#: Fewer numbers are drawn in another way, one by one.
FEWEST = 16


class TorchNormals:
    """A generator with this seed."""

    def __init__(self, seed: int) -> None:
        self._words = np.random.RandomState(seed)

    def randn(self, count: int) -> Float32[np.ndarray, " count"]:
        """`torch.randn(count)`."""
        assert count >= FEWEST
        whole = count - count % FEWEST
        uniforms = self._uniforms(count)
        out = np.empty(count, np.float32)
        out[:whole] = _box_muller(uniforms[:whole])
        if whole < count:
            out[count - FEWEST :] = _box_muller(self._uniforms(FEWEST))
        return out

    def _uniforms(self, count: int) -> Float32[np.ndarray, " count"]:
        words = self._words.randint(0, 2**32, size=count, dtype=np.uint32)
        return (words & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)


def _box_muller(uniforms: Float32[np.ndarray, " count"]) -> Float32[np.ndarray, " count"]:
    first, second = np.moveaxis(uniforms.reshape(-1, 2, FEWEST // 2), 1, 0)
    radius = np.sqrt(np.float32(-2.0) * np.log(np.float32(1.0) - first))
    angle = np.float32(2.0 * np.pi) * second
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
