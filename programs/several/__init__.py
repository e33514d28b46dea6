"""Several aspects of one output, judged together."""
