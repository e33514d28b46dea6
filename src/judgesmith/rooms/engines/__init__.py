"""Judges on engines that people already run. No engine is imported before one is asked for."""
