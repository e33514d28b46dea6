"""Measurements of results, run from a checkout."""
