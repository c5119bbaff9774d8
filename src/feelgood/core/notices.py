"""Sentences for the user that are no errors."""

import sys


def print_notice(sentence: str) -> None:
    """Tell the user something that is no error."""
    print(f"feelgood: {sentence}", file=sys.stderr, flush=True)
