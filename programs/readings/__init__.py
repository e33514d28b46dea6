"""Readings: what a model knows of a row, as numbers, without generating a word."""
