"""Prompts and answers: how a row is laid out for a model, and how what it wrote is read."""
