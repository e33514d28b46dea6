"""Task-inference signatures of Active-Critic (§4.1): observe, describe, name criteria, and merge what was found."""

import dspy


class ObserveBatch(dspy.Signature):  # type: ignore[misc]
    """You study examples from an unknown evaluation data set: texts that a system wrote, what they were made from, and
    the score that people gave. Find out what people reward and what they punish. Consider content, structure, the
    situation in which such texts are used, what is being evaluated, and what sets high scores apart from low ones.
    Write down new observations that hold for most examples, not remarks on single ones. Do not repeat earlier
    observations; if they already cover everything, answer with the single word COMPLETE."""

    earlier_observations: str = dspy.InputField()
    examples: str = dspy.InputField()
    observations: str = dspy.OutputField(desc="new observations as short sentences, or COMPLETE")


class DescribeTask(dspy.Signature):  # type: ignore[misc]
    """From observations on an evaluation data set, describe the task behind it in one to three plain sentences: which
    kind of text is judged, what the evaluation is about, and how the output relates to its source. Improve on the
    earlier description where there is one."""

    observations: str = dspy.InputField()
    earlier_description: str = dspy.InputField()
    description: str = dspy.OutputField(desc="one to three sentences")


class ProposeCriteria(dspy.Signature):  # type: ignore[misc]
    """List about ten criteria by which the overall quality of such outputs should be measured, the most decisive one
    first. Each has a short name and a definition of one sentence that a rater can apply."""

    description: str = dspy.InputField()
    observations: str = dspy.InputField()
    criteria: str = dspy.OutputField(desc="criteria, each with a name and a definition")


class MergeDescriptions(dspy.Signature):  # type: ignore[misc]
    """Several people described the same evaluation task. Write one description of one to three sentences that keeps
    what most of them agree on and leaves out what only one of them says."""

    descriptions: str = dspy.InputField()
    description: str = dspy.OutputField(desc="one to three sentences")


class MergeCriteria(dspy.Signature):  # type: ignore[misc]
    """Several lists of criteria were drawn up for the same evaluation task. Merge them into one list of four to ten:
    join those that mean the same, drop what cannot be seen in a text, put the most decisive one first."""

    description: str = dspy.InputField()
    criteria_lists: str = dspy.InputField()
    criteria: str = dspy.OutputField(desc="four to ten criteria, each with a name and a definition")
