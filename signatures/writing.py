"""Signatures by which a model writes: references to compare with, and changed texts."""

import dspy


class WriteReference(dspy.Signature):  # type: ignore[misc]
    """You write outputs of a wanted quality, which others will be measured against.

    Hit the wanted quality in the named aspect, whether it is good or bad, and make the output one that a system could
    really have written.
    """

    task: str = dspy.InputField(desc="what the systems were asked to do")
    aspect: str = dspy.InputField(desc="the one respect in which quality is wanted")
    source: str = dspy.InputField(desc="what the output is made from")
    context: str = dspy.InputField(desc="background that the output may rest on")
    output: str = dspy.OutputField(desc="the output alone")


class ReplaceEntities(dspy.Signature):  # type: ignore[misc]
    """The source names people, places, organisations, dates, numbers or technical terms.

    Write it again with as many of them as the amount says replaced by invented ones of the same kind: a person by an
    invented person, a number by another number. Choose those on which the meaning depends most. Leave every other word
    as it is.
    """

    amount: str = dspy.InputField()
    source: str = dspy.InputField()
    changed: str = dspy.OutputField(desc="the source with the replacements")


class BreakGrammar(dspy.Signature):  # type: ignore[misc]
    """Write the source again with as many grammatical errors in it as the amount says, such as a verb that does not
    agree with its subject, a wrong tense, a wrong pronoun, a wrong preposition or a sentence without its verb. Keep
    what it says, all names and all numbers; spell every word correctly; leave the rest as it is.
    """

    amount: str = dspy.InputField()
    source: str = dspy.InputField()
    changed: str = dspy.OutputField(desc="the source with the errors")


class Rephrase(dspy.Signature):  # type: ignore[misc]
    """The source is one sentence.

    Say it again in other words and another order. The new sentence means exactly the same, is about as long, and keeps
    names and numbers.
    """

    source: str = dspy.InputField()
    changed: str = dspy.OutputField(desc="one sentence that means the same")
