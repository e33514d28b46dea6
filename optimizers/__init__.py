"""Compiling of judges: the agreement objective, the leak-free search, and the report."""

if not __name__.startswith("judgesmith."):
    raise ImportError("this is judgesmith.optimizers; import that")
