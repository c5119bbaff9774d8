"""What XLA is told before JAX starts. Nothing here needs JAX."""

import os

#: Loops that touch at most so many bytes per pass are compiled whole.
SMALL_LOOP_BYTES = 1_000_000


def compile_small_loops_whole() -> None:
    """Ask XLA to compile small loops on CPU into one function each. Called at import.

    Otherwise it runs a loop's kernels one by one from outside, which for the small kernels of a
    round takes longer than the kernels themselves. XLA takes this from `XLA_FLAGS` alone and reads
    that once, before the first program; what a user has set there stays.
    """
    option = "xla_backend_extra_options"
    given = os.environ.get("XLA_FLAGS", "")
    if option not in given:
        flag = f"--{option}=xla_cpu_small_while_loop_byte_threshold={SMALL_LOOP_BYTES}"
        os.environ["XLA_FLAGS"] = f"{given} {flag}".strip()
