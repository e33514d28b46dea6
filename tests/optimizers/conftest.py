"""Fixtures of the optimizers' tests."""

from loopback import fake, labels_of, own_cache, server

__all__ = ["fake", "labels_of", "own_cache", "server"]
