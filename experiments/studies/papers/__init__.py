"""Run the papers' tables on your model; none of those that need a model was run here in full.

Measured in experiments/results/papers.md. The published rows, which stand beside yours, are in `published/`.
"""
