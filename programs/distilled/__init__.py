"""A small model of one's own as a judge: its prompt, its low-rank weights, and the engines that run them."""
