"""Evaluators as DSPy modules, and the language models they call."""

import os

# LiteLLM looks prices up on the network when it is imported, which costs five seconds where there is none.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
