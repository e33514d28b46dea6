"""Task-inference signatures of Active-Critic (§4.1): observe, describe, name criteria, and merge what was found."""

import dspy


class ObserveBatch(dspy.Signature):  # type: ignore[misc]
    """Each example has a source text, the output that a system made from it, and the score that people gave the output.

    Find out what is going on: what kind of text the sources and the outputs are, what the system was asked to do with
    the source, where such texts are used, and what outputs with high scores have that outputs with low scores lack.
    Write down what holds for most examples. Do not repeat earlier observations; if they already cover everything,
    answer with the single word COMPLETE.
    """

    earlier_observations: str = dspy.InputField()
    examples: str = dspy.InputField()
    observations: str = dspy.OutputField(
        desc="new observations as short sentences, or COMPLETE"
    )


class DescribeTask(dspy.Signature):  # type: ignore[misc]
    """These observations were made on examples of a text-writing task whose outputs people scored.

    Name the task (such as summarization, simplification, translation, dialogue, story writing, question answering or
    describing data), say what the scores measure, and how an output should relate to its source. Improve on the earlier
    description where there is one.
    """

    observations: str = dspy.InputField()
    earlier_description: str = dspy.InputField()
    description: str = dspy.OutputField(desc="one to three sentences")


class ProposeCriteria(dspy.Signature):  # type: ignore[misc]
    """People score the outputs of this task.

    List about ten qualities of an output that should raise or lower its score, the most decisive one first. Each has a
    short name and a definition of one sentence that says what a good output does.
    """

    description: str = dspy.InputField()
    observations: str = dspy.InputField()
    comments: str = dspy.InputField(
        desc="numbered reasons that people gave for their scores"
    )
    criteria: str = dspy.OutputField(desc="criteria, each with a name and a definition")


class MergeDescriptions(dspy.Signature):  # type: ignore[misc]
    """Several people described the same text-writing task and what its scores measure.

    Write a single description that keeps what most of them agree on and leaves out what only one of them says.
    """

    descriptions: str = dspy.InputField()
    description: str = dspy.OutputField(desc="one to three sentences")


class MergeCriteria(dspy.Signature):  # type: ignore[misc]
    """Several lists of criteria were drawn up for the same task.

    Merge them into one list of four to ten: join those that mean the same, drop what cannot be seen in a text, put the
    most decisive one first.
    """

    description: str = dspy.InputField()
    criteria_lists: str = dspy.InputField()
    criteria: str = dspy.OutputField(
        desc="four to ten criteria, each with a name and a definition"
    )
