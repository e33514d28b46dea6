"""judgesmith: turn a handful of human scores into a language-model judge, and say honestly how far to trust it."""

import lazy_loader

__version__ = "0.1.0"

# Public names stand in __init__.pyi and are imported on first use: DSPy alone takes seconds.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]
