"""Labelled outputs: what a row is, how a file becomes rows, and how rows are split without a leak."""

if __name__ == "datasets":
    # The repository's root is on sys.path, so Hugging Face's package was meant: import that, without the root.
    import sys
    from pathlib import Path

    before = sys.path[:]
    root = Path(__file__).resolve().parents[1]
    sys.path[:] = [place for place in before if Path(place).resolve() != root]
    del sys.modules["datasets"]
    try:
        __import__("datasets")
    finally:
        sys.path[:] = before
