"""Evaluators as DSPy modules, and the language models they call."""

if not __name__.startswith("judgesmith."):
    raise ImportError("this is judgesmith.programs; import that")

import os

# LiteLLM looks prices up on the network when it is imported, which costs five seconds where there is none.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
