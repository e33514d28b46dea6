"""Compiling of judges: the agreement objective, the leak-free search, and the report."""
