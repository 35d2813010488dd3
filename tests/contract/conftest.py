"""The fixtures of the store's contract suite, for each of its modules."""

from store_suite import fresh, given, store

__all__ = ["fresh", "given", "store"]
