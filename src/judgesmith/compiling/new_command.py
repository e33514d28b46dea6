"""`judgesmith new`: a judge from one sentence, before there are labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import Aspect, Command, Jury, Preset, argument, flag

if TYPE_CHECKING:
    from judgesmith.compiling.run import Setup
    from judgesmith.running.settings import Catalogue


class New(Command, Aspect, Preset, Jury):
    """Make a judge from one sentence, before there are labels.

    The sentence may also be the name of an aspect of the library (`judgesmith list aspects`). Such a judge is not
    validated: measure its agreement with `check` on a few rated rows. `compile LABELS --start judge.json` then
    refines it.
    """

    example: ClassVar[str] = (
        'judgesmith new "The reply is polite." --lm openai/gpt-4o-mini'
    )

    criterion: str | None = argument(
        None,
        "Criterion as one sentence, or the name of a library aspect (`judgesmith list aspects`).",
        "SENTENCE",
    )
    pass_fail: bool = flag(
        False,
        "Decide pass or fail instead of scoring. The cut-off is the middle of the model's scale.",
    )
    output: Path = flag(
        Path("judge.json"), "File of the saved judge.", "-o", "--output"
    )
    scale: tuple[float, float] | None = flag(
        None,
        "Lowest and highest score. Default: 1 5 for a sentence, the library's scale for an aspect.",
        metavar="LOW HIGH",
    )

    @classmethod
    def catalogue(cls, chosen: Mapping[str, Any]) -> Catalogue:
        """Return the options of the method."""
        return cls._setup(
            chosen, (name for name in chosen if name not in cls.model_fields)
        ).catalogue()

    @classmethod
    def _setup(cls, chosen: Mapping[str, Any], options: Any) -> Setup:
        from judgesmith.compiling.run import Setup

        lms = chosen.get("lm") or []
        names = [*options, *(["models"] if len(lms) > 1 else [])]
        return Setup.unlabelled(
            chosen.get("method"),
            next(iter(lms), None),
            names,
            bool(chosen.get("criterion")),
        )

    def run(self) -> None:
        """Save a judge without labels and print it."""
        from rich.markup import escape

        from judgesmith.compiling.run import method_in_words
        from judgesmith.programs.capabilities import begin, models_of
        from judgesmith.programs.judge import Judge
        from judgesmith.programs.models.names import check_listed
        from judgesmith.programs.simple import simple_outcome, worded
        from judgesmith.running.console import out
        from judgesmith.running.opening import check_writable, open_model, quiet
        from judgesmith.running.settings import JudgeInWords
        from judgesmith.running.trust import UNRATED

        setup = self._setup(
            dict(self),
            (f"{key}.{name}" for key, chosen in self._more.items() for name in chosen),
        )
        chosen = {owner.key: self.more(owner.key) for owner in setup.catalogue().owners}
        chosen["method"] |= setup.jury(self.lm)
        words = JudgeInWords(**chosen["run"])
        scale = self.scale or (
            (1, 5) if self.criterion and not self.pass_fail else None
        )
        criteria = [worded(self.criterion)] if self.criterion else []
        with quiet():
            method = method_in_words(
                setup.method,
                chosen["method"],
                words,
                None,
                self.library_aspect,
                criteria,
            )
            check_writable(self.output, words.criteria)
            check_listed(models_of(method))
            judge = Judge(
                method, outcome=simple_outcome(scale, pass_fail=self.pass_fail)
            )
            judge.set_lm(open_model(self.first_lm()))
            begin(method, lambda: judge.lm)
            judge.save(self.output)
        saved = escape(str(self.output))
        outcome = "pass or fail" if self.pass_fail else str(judge.scale)
        out.print(
            f"Saved {saved}: {method.kind}, {outcome}, learnt from no labels. How far to trust it is not known yet: "
            f"`judgesmith check` measures that. {UNRATED[0].upper()}{UNRATED[1:]}. "
            f"Next: judgesmith score OUTPUTS.jsonl --judge {saved}; with labels, "
            f"judgesmith compile LABELS --start {saved}"
        )
