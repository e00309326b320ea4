from contextlib import contextmanager

from django.core.cache import cache


@contextmanager
def lock(name, timeout=60):
    """Gives True to the one who got the lock."""
    got = cache.add(f"lock:{name}", "1", timeout)
    try:
        yield got
    finally:
        if got:
            cache.delete(f"lock:{name}")
