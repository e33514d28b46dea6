"""Searches for the prompt that agrees best with human ratings; each is an optimizer under one contract."""
