"""The signature by which a model does a task itself, so that its output can be judged."""

import dspy


class WriteOutput(dspy.Signature):  # type: ignore[misc]
    """Do what the task says with the source. Answer with the result and nothing else."""

    task: str = dspy.InputField(desc="what is to be done")
    source: str = dspy.InputField(desc="what to do it with")
    context: str = dspy.InputField(desc="background to rest on")
    output: str = dspy.OutputField(desc="the result")
