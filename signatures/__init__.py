"""Inputs and outputs of a single call to a language model. No file here calls a model."""

if not __name__.startswith("judgesmith."):
    raise ImportError("this is judgesmith.signatures; import that")
