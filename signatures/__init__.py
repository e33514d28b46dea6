"""What one call of a language model takes and gives. No file here calls a model."""
