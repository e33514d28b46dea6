"""Rooms that stand apart: each brings commands or parts by entry points, and can be taken away."""
