"""Find injections: attacks like those it was trained on, and 22 of 95 in unseen words, for no model call.

What that does to verdicts is measured in experiments/results/attacks.md: none rises. Scoring reaches it only by the
protocol `Screen`, which `programs.prompting.suspicion` defines. `rules` has the signs, `wording` the small model of
words, and `screen` looks at many rows at once.
"""
