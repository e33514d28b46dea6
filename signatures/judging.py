"""Signatures of judgements: scores, error annotations and comparisons.

The instructions are ours. How an answer is laid out (with or without explanations, on which digits) is no part of a
signature: the layouts in `programs` add it.
"""

import dspy


class ScoreInOneAspect(dspy.Signature):  # type: ignore[misc]
    """You rate texts as a careful human rater would."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    aspect: str = dspy.InputField(desc="its name")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")


class ScoreByCriteria(dspy.Signature):  # type: ignore[misc]
    """You rate texts as a careful human rater would."""

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the criteria with their definitions")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")


class ScoreCriteria(ScoreByCriteria):
    """You rate texts as a careful human rater would.

    Take each criterion by itself: look for evidence in the output, and give the score that follows from it. Use the
    whole range of the scale.
    """

    criteria_scores: str = dspy.OutputField(
        desc="for each criterion an explanation and a score"
    )


class ScoreOverall(ScoreByCriteria):
    """You rate texts as a careful human rater would: weigh what is good and what is wrong in the output, and use the
    whole range of the scale.
    """

    criteria_scores: str = dspy.InputField(
        desc="scores that the output got on single criteria"
    )
    explanation: str = dspy.OutputField(
        desc="what decides the score and what should change"
    )
    score: float = dspy.OutputField(desc="overall quality")


class RateInWords(ScoreByCriteria):
    """You rate texts as a careful human rater would, in words, and use all of them: the best and the worst, too."""

    rating: str = dspy.OutputField(desc="one of the words")


class AnswerQuestions(ScoreByCriteria):
    """You check texts as a careful human rater would: you answer each question by itself, and strictly."""

    answers: str = dspy.OutputField(desc="yes or no to each question")


class CompareWithReference(ScoreByCriteria):
    """You compare texts with a reference as a careful human rater would.

    Other words or another length are no fault; what counts is how well the output does what is asked, beside the
    reference.
    """

    rating: str = dspy.OutputField(desc="how the output compares with the reference")


class ExplainScore(ScoreByCriteria):
    """You explain to the writer of a text why it got its score: what is good in the output, and what is wrong in it,
    beside its source, in plain words. The score is given; give no other one.
    """

    aspect: str = dspy.InputField(desc="the one respect that was scored")
    score: str = dspy.InputField(desc="what the output got, and on which scale")
    explanation: str = dspy.OutputField(desc="one or two short sentences")


class WriteSteps(dspy.Signature):  # type: ignore[misc]
    """You write down how a careful human rater goes about judging texts in one respect: what to look at first, what to
    compare, what to weigh. The steps must work for any output of the task, not for a single one.
    """

    task: str = dspy.InputField(desc="what is being evaluated")
    criteria: str = dspy.InputField(desc="the one respect with its definition")
    steps: str = dspy.OutputField(desc="three to six numbered steps, a sentence each")


class ScoreBySteps(ScoreInOneAspect):
    """You rate texts as a careful human rater would, step by step in your mind, and use the whole range of the
    scale.
    """

    score: float = dspy.OutputField(desc="how good the output is in this respect")


class AnnotateErrors(dspy.Signature):  # type: ignore[misc]
    """You check texts that a system wrote for errors of one kind.

    You point at the words, say what is wrong with them and how bad it is, and then say how good the output is in this
    one respect.
    """

    task: str = dspy.InputField(
        desc="what the system was asked to do, and what its input and output are"
    )
    aspect: str = dspy.InputField(desc="the one respect in which the output is judged")
    source: str = dspy.InputField(desc="what the output was made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    reference: str = dspy.InputField(desc="a good output for comparison")
    output: str = dspy.InputField(desc="the text to be judged")
    annotation: str = dspy.OutputField(desc="the errors, then an overall label")


class MergeAnnotations(dspy.Signature):  # type: ignore[misc]
    """Several annotators looked for errors in the same output.

    You make one list out of theirs, in which every problem stands once.
    """

    output: str = dspy.InputField(desc="the text that was annotated")
    annotations: str = dspy.InputField(desc="the errors that each annotator reported")
    merged: str = dspy.OutputField(desc="one list of errors")


class CompareOutputs(dspy.Signature):  # type: ignore[misc]
    """You compare two outputs that were made from the same material, as a careful human rater would.

    Only the named aspect counts: leave everything else about the two outputs aside, their length and their order too.
    """

    task: str = dspy.InputField(desc="what the systems were asked to do")
    aspect: str = dspy.InputField(
        desc="the one respect in which the outputs are compared"
    )
    source: str = dspy.InputField(desc="what the outputs were made from")
    context: str = dspy.InputField(desc="background that the outputs may rest on")
    other: str = dspy.InputField(desc="the output of known quality")
    output: str = dspy.InputField(desc="the output to be judged")
    comparison: str = dspy.OutputField(
        desc="how the second output compares with the first"
    )
