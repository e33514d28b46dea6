"""Forty-eight rated summaries and four unrated ones, for demonstrations and tests; CARD.md describes them."""
