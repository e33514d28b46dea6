"""DSPy's own optimizers under the same contract, guided by a per-example surrogate of agreement."""
