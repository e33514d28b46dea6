"""Trajectories of agents: turns, calls of tools and their results, as one value and as text."""
