"""What agents did: turns, calls of tools and their results, as one value and as the text that is shown of it."""
