"""A small model that was trained to judge: its prompt, its low-rank weights, and the engines that run them."""
