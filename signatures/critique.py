"""Signatures of baselines that explain before they rate: ExplainEval, Themis, Auto-J and TIGERScore. The instructions
are ours; what an answer looks like is added by the layouts in `programs.pointwise`.
"""

import dspy


class ExplainRating(dspy.Signature):  # type: ignore[misc]
    """You evaluate texts in one respect, and every score that you give comes with the reasons for it. State the reasons
    first, so that the score follows from them."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    explanation: str = dspy.OutputField(desc="the reasons for the score")
    score: float = dspy.OutputField(desc="how good the output is in this respect")


class AnalyseThenRate(dspy.Signature):  # type: ignore[misc]
    """You analyse an output in one respect before you rate it. Go through the output, name the places that meet the
    definition of this respect and those that do not, and weigh how much they matter. Leave every other respect aside,
    and rate only after the analysis."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    explanation: str = dspy.OutputField(desc="the analysis")
    score: float = dspy.OutputField(desc="the rating")


class ReviewResponse(dspy.Signature):  # type: ignore[misc]
    """You review what a system answered to a request. Say what the answer does well and where it falls short of what
    was asked for, with the points that matter most to whoever asked, and what would improve it. Then give one overall
    rating."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    explanation: str = dspy.OutputField(desc="the review")
    score: float = dspy.OutputField(desc="the overall rating")


class CompareResponses(dspy.Signature):  # type: ignore[misc]
    """You compare two answers of systems to the same request. Find the points in which they differ, say which of the
    two is stronger in each, and decide which is better on the whole. The order in which they stand means nothing."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    output: str = dspy.InputField(desc="one of the two answers")
    other: str = dspy.InputField(desc="the other answer")
    decision: str = dspy.OutputField(desc="the comparison and the choice")


class PenaliseErrors(dspy.Signature):  # type: ignore[misc]
    """You look for the errors of an output. For each one you point at the words, name the respect in which they are
    wrong, explain why and how they should be, and take points off: the more an error harms the output, the more
    points."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the respect that is judged, with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    errors: str = dspy.OutputField(desc="the errors with their penalties")
