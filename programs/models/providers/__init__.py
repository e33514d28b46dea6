"""The providers of models, one file each."""
