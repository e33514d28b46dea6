"""Meta-evaluation: every judge, aspect, level and coefficient, with intervals, tests and the human ceiling."""
