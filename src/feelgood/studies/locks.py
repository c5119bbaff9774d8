"""Locks between processes that die with their holder."""

import errno
from pathlib import Path

import filelock

from feelgood.core.atomic import reporting
from feelgood.core.errors import FeelgoodError

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class Lock:
    """An exclusive lock on a file. The system releases it when the process ends, however."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A lock that outlives its holder would be worse than none: no such substitute.
        self._lock = filelock.FileLock(path, thread_local=False, fallback_to_soft=False)

    def take(self, *, wait: bool) -> bool:
        """Take the lock; without `wait`, False when somebody else has it."""
        with reporting(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=-1 if wait else 0)
            except filelock.Timeout:
                return False
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                raise FeelgoodError(
                    f"{self.path.parent} lies on a file system without locks "
                    f"({error.strerror or error}): choose a folder on another one."
                ) from error
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release(force=True)

    def __enter__(self) -> "Lock":
        self.take(wait=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
