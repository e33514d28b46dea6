"""Notice that a judge has changed: at once if its answers repeat, with noise after 100 to 800 rows.

Measured in experiments/results/watching.md. Sentinel rows are scored again and again.
"""
