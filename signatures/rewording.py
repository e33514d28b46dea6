"""The signature by which a model says a judge's instructions again, for searches over wordings (ZEPO)."""

import dspy


class ParaphraseInstructions(dspy.Signature):  # type: ignore[misc]
    """The source holds the instructions of a rater who compares two outputs. Say them again in other words and another
    order, as another author would have written them. Every point stays, none is added, and nothing is said about how
    the answer is to be written."""

    source: str = dspy.InputField()
    paraphrase: str = dspy.OutputField(desc="the same instructions in other words")
