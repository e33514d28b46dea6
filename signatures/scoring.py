"""Scoring signatures of Active-Critic (§4.2): several criteria in one call (McS-E), and the overall score (OS-E).

The instructions are ours. How an answer is laid out (with or without explanations, on which digits) is not part of a
signature: `programs.prompting.layouts` adds it.
"""

import dspy


class ScoreCriteria(dspy.Signature):  # type: ignore[misc]
    """You rate texts as a careful human rater would. Take each criterion by itself: look for evidence in the output,
    and give the score that follows from it. Use the whole range of the scale."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the criteria with their definitions")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    criteria_scores: str = dspy.OutputField(desc="for each criterion an explanation and a score")


class ScoreOverall(dspy.Signature):  # type: ignore[misc]
    """You rate texts as a careful human rater would: weigh what is good and what is wrong in the output, and use the
    whole range of the scale."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the criteria with their definitions")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    criteria_scores: str = dspy.InputField(desc="scores that the output got on single criteria")
    explanation: str = dspy.OutputField(desc="what decides the score and what should change")
    score: float = dspy.OutputField(desc="overall quality")
