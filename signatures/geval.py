"""Signatures of G-Eval (Liu et al. 2023): evaluation steps written once, then a score by them. The instructions are
ours; the steps are no field, since every row has the same: `programs.pointwise.geval` shows them before the
form of the answer.
"""

import dspy


class WriteSteps(dspy.Signature):  # type: ignore[misc]
    """You write down how a careful human rater goes about judging texts in one respect: what to look at first, what to
    compare, what to weigh. The steps must work for any output of the task, not for a single one."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    steps: str = dspy.OutputField(desc="three to six numbered steps, a sentence each")


class ScoreBySteps(dspy.Signature):  # type: ignore[misc]
    """You rate texts as a careful human rater would, step by step in your mind, and use the whole range of the
    scale."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    score: float = dspy.OutputField(desc="how good the output is in this respect")
