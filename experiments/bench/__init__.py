"""Benchmarks of speed, memory and statistics, run from a checkout."""
