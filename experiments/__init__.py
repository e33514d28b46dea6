"""Commands and studies."""

if not __name__.startswith("judgesmith."):
    raise ImportError("this is judgesmith.experiments; import that")
