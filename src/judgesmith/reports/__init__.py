"""Self-contained HTML pages: scored rows, meta-evaluation, discernment."""
