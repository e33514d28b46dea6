"""Training a small model to judge: examples, losses, the loop with its checkpoints, and the whole run."""
