"""The signature of a pairwise comparison (direct scoring with synthetic comparisons, §2.2). The instructions are ours.

Which of the two outputs comes first and which words answer is no part of it:
`programs.comparing.comparison` lays that out.
"""

import dspy


class CompareOutputs(dspy.Signature):  # type: ignore[misc]
    """You compare two outputs that were made from the same material, as a careful human rater would. Only the named
    aspect counts: leave everything else about the two outputs aside, their length and their order too."""

    task: str = dspy.InputField(desc="what the systems were asked to do")
    aspect: str = dspy.InputField(desc="the one respect in which the outputs are compared")
    source: str = dspy.InputField(desc="what the outputs were made from")
    context: str = dspy.InputField(desc="background that the outputs may rest on")
    other: str = dspy.InputField(desc="the output of known quality")
    output: str = dspy.InputField(desc="the output to be judged")
    comparison: str = dspy.OutputField(desc="how the second output compares with the first")
