"""Inputs and outputs of a single call to a language model. No file here calls a model."""
