"""Queues of `judgesmith sync` that are reached over HTTP, each a file: what people said there, and verdicts back."""
