"""Texts changed on purpose: perturbations in levels, harmless changes, and attacks on the judge."""
