"""Shared parts of the commands: settings, models, limits, journals, consoles and estimates."""
