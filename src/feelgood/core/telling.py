"""Sentences for the user that are no errors."""

import sys


def tell_user(sentence: str) -> None:
    """Write one sentence to the standard error."""
    print(f"feelgood: {sentence}", file=sys.stderr, flush=True)
