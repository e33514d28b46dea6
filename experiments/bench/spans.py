"""Do perturbations teach a small classifier where people's errors are? Runs the scripts of `spans_trial`, as they ran.

    JUDGESMITH_DATA=… SPANS_OUT=FOLDER python experiments/bench/spans.py [STAGE …]

Stages, all of them by default: make (perturbed texts and drawn outputs), read (the model reads them), results. Needs
torch, transformers and scikit-learn. `train` was read in two parts (25 minutes from its beginning, 18 from its end) on a
busy machine: how far each came depends on the time it had, and their texts are those that were read.
"""

import os
import runpy
import sys
from pathlib import Path

STAGES = {
    "make": [["make"]],
    "read": [["read", name] for name in ("train", "mqm_ted_zhen", "mqm_ted_ende")],
    "results": [["final"], ["extra"], ["extra2"], ["oracle"]],
    "tables": [["export", "235", "ende-zhen"]],
}

if __name__ == "__main__":
    here = Path(__file__).parent / "spans_trial"
    os.chdir(here)
    sys.path.insert(0, str(here))
    for stage in sys.argv[1:] or STAGES:
        for name, *arguments in STAGES[stage]:
            sys.argv[1:] = arguments
            runpy.run_path(f"{name}.py", run_name="__main__")
