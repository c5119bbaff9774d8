"""Sentences for the user that are no errors."""

import functools
import sys


def print_notice(sentence: str) -> None:
    """Tell the user something that is no error."""
    print(f"feelgood: {sentence}", file=sys.stderr, flush=True)


@functools.cache
def print_notice_once(sentence: str) -> None:
    """The same for what is found out while a function is traced, which happens again and again."""
    print_notice(sentence)
