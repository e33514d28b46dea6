"""Labelled outputs: what a row is, how a file becomes rows, and how rows are split without a leak."""

if __name__ == "datasets":
    # The repository root is on sys.path (`python -c`, `python -m pytest`), so somebody's `import datasets` found this
    # folder instead of Hugging Face's package. Step aside: whoever asked meant the real one.
    import sys
    from importlib.machinery import ModuleSpec, PathFinder
    from importlib.util import module_from_spec
    from pathlib import Path

    def _find_the_real_one() -> ModuleSpec | None:
        """The spec of `datasets` with this folder's parent left out of the search; None if there is no other."""
        here = Path(__file__).resolve()
        root = here.parent.parent
        others = [
            entry for entry in sys.path if Path(entry).resolve() != root
        ]  # "" resolves to the current folder
        for finder in sys.meta_path:
            # Only PathFinder reads sys.path; the other finders are those of frozen modules and editable installs.
            spec = finder.find_spec(
                "datasets", others if finder is PathFinder else None
            )
            # A namespace spec (no loader) is any plain folder that happens to be called datasets.
            if (
                spec is not None
                and spec.loader is not None
                and Path(spec.origin or "").resolve() != here
            ):
                return spec
        return None

    _spec = _find_the_real_one()
    if _spec is None or _spec.loader is None:
        raise ModuleNotFoundError("No module named 'datasets'", name="datasets")
    _real = module_from_spec(_spec)
    sys.modules["datasets"] = (
        _real  # before it runs: its own modules import `datasets` again
    )
    _spec.loader.exec_module(_real)
else:
    from judgesmith.datasets.loading import count_rows, iter_rows, read_labels
    from judgesmith.datasets.records import Labels
    from judgesmith.datasets.row import Row
    from judgesmith.datasets.splits import (
        Split,
        assert_disjoint,
        group_folds,
        holdout_split,
    )

    __all__ = [
        "Labels",
        "Row",
        "Split",
        "assert_disjoint",
        "count_rows",
        "group_folds",
        "holdout_split",
        "iter_rows",
        "read_labels",
    ]
