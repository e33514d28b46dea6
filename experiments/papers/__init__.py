"""The papers' experiments, run from a checkout."""
