"""Train a small model to judge: at 135M not worth it, at 0.5B no better than readings with 40 labels.

Measured in experiments/results/distillation.md. It has examples, losses, the loop with its checkpoints, and the whole
run.
"""
