"""Meta-evaluation of scored files, saved judges and metrics: what is read, judged and shown."""
