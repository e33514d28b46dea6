"""Signatures of OpeNLGauge: an annotator marks the errors of one kind, a supervisor merges what several found.

The instructions are ours; rules, steps and the form of answers depend on options and stand in
`programs.openlgauge.annotation`.
"""

import dspy


class AnnotateErrors(dspy.Signature):  # type: ignore[misc]
    """You check texts that a system wrote for errors of one kind. You point at the words, say what is wrong with them
    and how bad it is, and then say how good the output is in this one respect."""

    task: str = dspy.InputField(desc="what the system was asked to do, and what its input and output are")
    aspect: str = dspy.InputField(desc="the one respect in which the output is judged")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    annotation: str = dspy.OutputField(desc="the errors, then an overall label")


class MergeAnnotations(dspy.Signature):  # type: ignore[misc]
    """Several annotators looked for errors in the same output. You make one list out of theirs, in which every problem
    stands once."""

    output: str = dspy.InputField(desc="the text that was annotated")
    annotations: str = dspy.InputField(desc="the errors that each annotator reported")
    merged: str = dspy.OutputField(desc="one list of errors")
