"""Fits to scores that are already there: weights of criteria and annotators, heads over readings."""
