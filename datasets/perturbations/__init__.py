"""Texts changed on purpose: damage in levels, harmless changes, and attacks on the judge."""
