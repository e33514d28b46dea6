"""Methods that judge one aspect of quality, which the aspect library or the user defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from judgesmith.errors import OptionError
from judgesmith.parts import option, read_options
from judgesmith.programs.aspects import (
    OVERALL,
    Aspect,
    Material,
    Task,
    aspects,
    known_aspect,
)
from judgesmith.programs.method import Method, Words
from judgesmith.signatures.values import Criterion


class OneAspect(Method):
    """Base of the methods that judge one aspect.

    It is an `Aspect`, its name in the aspect library (`summarization/coherence`), or any name together with `criteria`
    (one Criterion that defines it). Raises OptionError for an unknown name or several criteria.
    """

    #: Whether the name of the labels' score has to do where the library does not know it: labels say the rest.
    takes_any_name: ClassVar[bool] = False
    #: Whether its aspect may be made of several criteria.
    takes_several: ClassVar[bool] = False

    class Options(Method.Options):
        aspect: str = option(
            "overall",
            "The aspect that is judged: a name in the aspect library, or of your criterion.",
        )
        material: Literal["auto", Material] = option(
            "auto",
            "What prompts show beside the output: all; no source (context); neither source nor context (output); auto "
            "takes what the library's aspect needs, and all for one of your own.",
            added=True,
            before="all",
        )

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        **options: Any,
    ) -> None:
        if isinstance(aspect, Aspect) or not criteria:
            known_one, its_task = known_aspect(aspect)
            aspect = known_one.name
            criteria = (Criterion(known_one.name, known_one.definition),)
            options |= {
                name: value
                for name, value in self.aspect_options(known_one, its_task).items()
                if options.get(name, "auto") in ("", "auto")
            }
            task = task or self.described(its_task)
        if options.get("material", "auto") == "auto":
            options["material"] = "all"
        if len(criteria) != 1 and not self.takes_several:
            raise OptionError(
                f"one aspect is judged at a time; got {len(criteria)} criteria"
            )
        super().__init__(task=task, criteria=criteria, aspect=aspect, **options)

    @classmethod
    def aspect_options(cls, aspect: Aspect, task: Task | None) -> dict[str, str]:
        """Options that the library says, where they are not given."""
        return {"material": aspect.material}

    @classmethod
    def described(cls, task: Task | None) -> str:
        """Return a task of the library for a prompt."""
        return task.description if task else ""

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return what its prompts leave out of a row."""
        hides = {"output": ("source", "context"), "context": ("source",)}
        return hides.get(self.options.material, ())

    @property
    def brief(self) -> bool:
        """Return True: answers of a word or a digit, so that embedded models take such rows one at a time."""
        return True  # answers of a word or a digit: embedded models take such rows one at a time

    @classmethod
    def in_words(cls, options: Mapping[str, Any], words: Words) -> Self:
        """Build the method for one aspect, of the library or in the user's own words.

        Raises:
            OptionError: For several criteria, or an aspect named in two ways.
        """
        read_options(cls.Options, options, f"--method {cls.kind}")
        own = {name: value for name, value in options.items() if name != "aspect"}
        if words.criteria:
            if words.library_aspect:
                raise OptionError(
                    "--criteria says the aspect in your words, --as takes it from the library; give one"
                )
            wanted = (options.get("aspect") or words.labels_aspect or "").casefold()
            called = [c for c in words.criteria if c.name.casefold() == wanted]
            criteria = list(words.criteria) if len(words.criteria) == 1 else called
            if len(criteria) != 1:
                raise OptionError(
                    f"one aspect is judged at a time; --criteria has {len(words.criteria)}, and none is called "
                    f"{wanted!r}: leave one of them, or name one so"
                )
            return cls(
                options.get("aspect") or criteria[0].name,
                criteria=criteria,
                task=words.task,
                **own,
            )
        named = "overall" if words.labels_aspect in OVERALL else words.labels_aspect
        name = words.library_aspect or options.get("aspect") or named
        if name is None:
            raise OptionError(
                "which aspect is judged? Say it in a sentence (`judgesmith new`), or give --as or --criteria"
            )
        try:
            aspect = aspects().find(name)
        except OptionError as error:
            if cls.takes_any_name and not (
                words.library_aspect or options.get("aspect")
            ):
                return cls.in_words(
                    options, replace(words, criteria=(Criterion(name[:80], ""),))
                )
            raise OptionError(
                f"what does {name!r} mean? {error}. Give --as TASK/ASPECT, or say it yourself with --criteria"
            ) from None
        return cls(aspect, task=words.task, **own)
