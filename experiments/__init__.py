"""Commands and studies."""
