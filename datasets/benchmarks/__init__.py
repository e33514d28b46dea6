"""Benchmark sets with human ratings from the literature, and how their original files are read."""
