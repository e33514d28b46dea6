"""What did a model say, and what did it only think?

Visible thoughts under any known mark, characters that nobody sees, and a chat template's last tokens are taken out of
an answer when it enters, before anything reads it. A mark inside a sentence is a quotation, as of a judged text that
has one, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from judgesmith.programs.answers.reply import (
    CUT_THINKING,
    ONLY_THOUGHTS,
    Reply,
    TokenChoice,
)

_NAMES = (
    r"think(?:ing)?|thoughts?|thought_process|reasoning|reflections?|scratch_?pad|analysis|(?:inner_|internal_)?monologue|"
    r"inner_thoughts?|chain_of_thought|cot|deliberation|ant_?thinking|seed:\w*think\w*|seed:cot\w*|drafts?|notes?|plan(?:ning)?|"
    r"(?:self_?)?(?:reflection|critique|correction)|(?:reasoning|thinking|internal)_(?:process|steps|thoughts?|reasoning)|"
    r"working|brainstorm(?:ing)?|rough_work"
)
#: An opening mark or, where one of the groups holds something, a closing one.
_MARK = re.compile(
    rf"""<\s?(/?)\s?(?:{_NAMES}|think\w*)(?:\s[^<>\n]{{0,160}}+)?>
    | <\s?details\b[^<>\n]{{0,80}}(?:think|reason)[^<>\n]{{0,80}}> | (</\s?details\s?>)
    | \[\s?(/?)\s?(?:think(?:ing)?|thoughts?|reasoning)\s?\]
    | [◁⟨〈]\s?(/?)\s?think\w*\s?[▷⟩〉]
    | <[|｜]\s?(/)?(?:(end_)|(?:begin|start)_)?(?:of_)?(?:{_NAMES})(?:(_end)|_(?:start|begin))?\s?[|｜]>
    | <unused94>(?:thought\b)? | (<unused95>)
    | <\|inner_prefix\|> | (<\|inner_suffix\|>)
    | <\|channel>\s?(?:thought|analysis)\b | (<channel\|>)
    | (?<![^\n])```(?:think\w*|thoughts?|reasoning)[ \t]*+\n | (?<![^\n])(```)[ \t]*+(?![^\n])
    | (?<![^\n])here(?:['’]s|\ is)\ my\ thought\ process: | (?<![^\n])(here(?:['’]s|\ is)\ my\ response:)
    | \A\s*thinking(?:\.\.\.|…)[ \t]*+(?![^\n]) | (?<![^\n])((?:\.\.\.|…)\s?done\ thinking\.?)
    | (\[\s?(?:begin|start)(?:\ of)?(?:\ final)?\ (?:response|answer|output|verdict)\s?\])""",
    re.IGNORECASE | re.VERBOSE,
)
#: Closing marks that other things have, too: without an opening one before them they are none.
_COMMON = ("```", "</details", "</ details", "here")
#: The channels of gpt-oss: "<|start|>assistant<|channel|>analysis<|message|>…<|end|>", thoughts but for the final one;
#: and the same where a server has dropped the marks, "analysis…assistantfinal…".
_CHANNEL = re.compile(
    r"(?:<\|start\|>\s*+\w*+\s*+)?<\|channel\|>\s*+(\w+)[^<>\n]{0,80}+(?:<\|constrain\|>\s*+\w*+\s*+)?<\|message\|>"
)
_BARE_CHANNEL = re.compile(
    r"(?:\A\s*+(?:assistant)?|assistant)(analysis|commentary|final)(?=[A-Z\"'({\d*#])"
)
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>")
#: Tokens that end a turn, and those around an answer.
_LAST = re.compile(
    r"(?:\s*+(?:<[|｜][\w▁ ]{1,40}[|｜]>|</s>|<(?:eos|eot|end_of_turn)>|\[/INST\]|<\|?im_end\|?>))++\s*+\Z",
    re.IGNORECASE,
)
_AROUND = re.compile(
    r"<[|｜](?:(?:begin|end|start)_of_(?:solution|box|response|answer|text)|(?:start|end)_response)[|｜]>"
    r"|\[\s?end(?: of)?(?: final)? (?:response|answer|output|verdict)\s?\]",
    re.IGNORECASE,
)
#: Characters at the end of an answer among which such tokens are looked for, and around a mark, those of its sentence.
_TAIL = 200
#: What nobody sees. Between two digits a mark of direction stays: it may turn them round. So does a joiner inside a
#: word of a script that has them, or inside an emoji; and an override of directions anywhere.
_UNSEEN = re.compile(
    r"[\u00ad\u180e\u200b\u2060-\u2065\ufeff]"
    r"|(?<!\d)[\u061c\u200e\u200f\u202a-\u202c\u2066-\u206f]|[\u061c\u200e\u200f\u202a-\u202c\u2066-\u206f](?!\d)"
    r"|[\u200c\u200d](?=[\x00-\x7f\s]|\Z)|(?<=[\x00-\x7f\s])[\u200c\u200d]|\A[\u200c\u200d]"
)
#: What an answer has that has a mark or a heading.
_SIGNS = ("<", "[", "`", "◁", "⟨", "〈", "#", "**", "__", "done thinking")
#: How an answer begins in which thoughts have no marks.
_UNMARKED = re.compile(
    r"\s*+(?:(?:assistant)?(?:analysis|commentary|final)[A-Z\"'({\d*#]|[Hh]ere(?: is|'s) my thought|"
    r"[Tt]hinking(?:\.\.\.|…))"
)
#: A heading over thoughts, and one over what counts.
_HEADING = r"^[ \t]*(?:\#{{1,6}}[ \t]*|\*\*|__)(?:my\ |the\ )?(?:{})[ \t]*:?(?:\*\*|__)?:?[ \t]*$"
_OF_THOUGHTS = re.compile(
    _HEADING.format(
        r"thinking(?:\ process)?|thoughts?(?:\ process)?|(?:inner|internal)\ (?:monologue|thoughts?|reasoning)|drafts?|"
        r"scratch\ ?pad|chain\ of\ thought|brainstorm(?:ing)?|rough\ work|notes\ to\ self"
    ),
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_OF_ANSWER = re.compile(
    _HEADING.format(
        r"(?:final\ )?(?:answer|response|verdict|output|result|decision|evaluation|judgment|judgement|assessment)"
    ),
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_ROLE = re.compile(r"(?:assistant|model|ai|bot|answer|response)\W*\Z", re.IGNORECASE)


def without_thoughts(text: str, judged: Iterable[str] = ()) -> tuple[str, bool]:
    """Return a text with a model's thoughts blanked out, at the same length, so that places in it still hold.

    Args:
        text: The text.
        judged: The texts under judgement, whose marks an answer may quote.

    Returns:
        The text, and True if the last thought never ends; then the rest is no answer.
    """
    if _is_plain(text):
        return text, False
    spans, cut = _channels(text) or _headed(text) or _marked(text, judged)
    parts = []
    place = 0
    for start, end in spans:
        parts += [text[place:start], " " * (end - start)]
        place = end
    return "".join([*parts, text[place:]]), cut


_MARKER = re.compile(r"\[\[ ## (\w+) ## \]\]\s*")


def without_markers(reply: Reply, fields: Collection[str]) -> Reply:
    """Return an answer in the form of DSPy's own chat adapter (as `dspy.utils.DummyLM` writes it) in ours.

    It has `Score: 4` in place of a marker and 4; for a signature with one output, that output alone.

    Args:
        reply: The reply.
        fields: The signature's outputs.
    """
    if "[[ ## " not in reply.text:
        return reply

    def label(marker: re.Match[str]) -> str:
        name = marker[1]
        if name == "completed" or (len(fields) == 1 and name in fields):
            return ""
        return f"{name.capitalize()}: " if name in fields else marker[0]

    return replace(reply, text=_MARKER.sub(label, reply.text).strip(), tokens=None)


#: Elements at the beginning of an answer, none of which holds a verdict, and what comes after them: words of its own,
#: or an element that says that it is the last word.
_BEFORE_ANSWER = re.compile(
    r"\A(?:\s*<(?!/|(?:overall_?|final_?|total_?)*(?:score|rating|verdict|answer|response|result|overall|final)\b)"
    r"([\w-]{1,40})>(?:(?!</\1>)[\s\S])*</\1>)+\s*"
    r"(?=[^<\s]|<(?:final|answer|verdict|response|result|overall|output)\w*>)",
    re.IGNORECASE,
)


def after_elements(text: str) -> str | None:
    """Return an answer with the elements blanked out that it begins with; None if nothing comes after them."""
    before = _BEFORE_ANSWER.match(text) if "</" in text else None
    return None if before is None else " " * before.end() + text[before.end() :]


def at_its_places(text: str, judged: Iterable[str] = ()) -> str:
    """Return the text of `spoken`, every character at its own place, with spaces for those taken out."""
    answer, cut = without_thoughts(text, judged)
    return " " * len(text) if cut else _UNSEEN.sub(_blank, answer)


def spoken(reply: Reply, judged: Iterable[str] = ()) -> Reply:
    """Return a reply as its reader is to see it, tokens and all.

    If nothing but thoughts came, its text is empty and `absent` has the reason.

    Args:
        reply: The reply.
        judged: As for `without_thoughts`.
    """
    if _is_plain(reply.text) and reply.text.isascii():
        return reply
    text, cut = without_thoughts(reply.text, judged)
    text = _AROUND.sub(_blank, text)
    text = text[:-_TAIL] + _LAST.sub(_blank, text[-_TAIL:])
    if cut or (not text.strip() and reply.text.strip()):
        why = CUT_THINKING if cut or reply.ending != "whole" else ONLY_THOUGHTS
        return replace(reply, text="", tokens=None, absent=reply.absent or why)
    gone = {place for match in _UNSEEN.finditer(text) for place in range(*match.span())}
    if text == reply.text and not gone:
        return reply
    answer_text = "".join(
        character for place, character in enumerate(text) if place not in gone
    )
    return replace(reply, text=answer_text, tokens=_tokens(reply, text, gone))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _tokens(reply: Reply, text: str, gone: set[int]) -> tuple[TokenChoice, ...] | None:
    """The tokens of a reply without what was taken out of its text.

    Where they do not spell the text they stay, and are found from its end.
    """
    if (
        reply.tokens is None
        or "".join(token.text for token in reply.tokens) != reply.text
    ):
        return reply.tokens
    tokens = []
    place = 0
    for token in reply.tokens:
        after = place + len(token.text)
        letters = "".join(text[i] for i in range(place, after) if i not in gone)
        choices = token.alternatives
        if letters != token.text:
            choices = tuple(
                (_UNSEEN.sub("", other), logprob) for other, logprob in choices
            )
        tokens.append(TokenChoice(letters, choices))
        place = after
    return tuple(tokens)


def _is_plain(text: str) -> bool:
    """Return True if a text can hold neither a mark nor, if it is ASCII, anything else that is taken away."""
    for sign in _SIGNS:
        if sign in text:
            return False
    if _UNMARKED.match(text):
        return False
    return text.isascii() or _UNSEEN.search(text) is None


def _channels(text: str) -> tuple[list[tuple[int, int]], bool] | None:
    """Everything outside the final channel; None for an answer without channels."""
    headers = list(_CHANNEL.finditer(text))
    if not headers and _UNMARKED.match(text):
        headers = list(_BARE_CHANNEL.finditer(text))
    if not headers or _in_sentence(text, headers[0], 0):
        return None
    final = next((header for header in reversed(headers) if header[1] == "final"), None)
    if final is None:
        return [(0, len(text))], True
    end = _CHANNEL_ENDS.search(text, final.end())
    return [(0, final.end()), (end.start() if end else len(text), len(text))], False


def _headed(text: str) -> tuple[list[tuple[int, int]], bool] | None:
    """Everything up to the heading of the answer, if an answer begins with a heading over thoughts; else None."""
    begins = _OF_THOUGHTS.match(text.lstrip()) if "\n" in text else None
    answers = list(_OF_ANSWER.finditer(text)) if begins else []
    return ([(0, answers[-1].end())], False) if answers else None


def _marked(text: str, judged: Iterable[str]) -> tuple[list[tuple[int, int]], bool]:
    """Return the places of thoughts between marks, and True if the last one has no end.

    A closing mark alone ends thoughts that began with the answer.
    """
    spans: list[tuple[int, int]] = []
    opened: int | None = None
    quoted = 0
    ended = 0
    cited = _Cited(judged)
    for match in _MARK.finditer(text):
        closing = any(match.groups())
        if opened is not None:
            if closing:
                spans.append((opened, match.end()))
                opened = None
                ended = match.end()
        elif not closing:
            if _in_sentence(text, match, ended) or cited(text, match):
                quoted += 1
            else:
                opened = match.start()
        elif quoted:
            quoted -= 1
        elif not match[0].strip().lower().startswith(_COMMON) and not (
            _is_quoted(text, match) or cited(text, match)
        ):
            spans = [(0, match.end())]
            ended = match.end()
    if opened is not None:
        spans.append((opened, len(text)))
    return spans, opened is not None


def _line(text: str, match: re.Match[str], begin: int = 0) -> tuple[str, str]:
    """Return the text before a mark and after it on its line.

    begin: the earliest beginning of the text before.
    """
    start, end = match.span()
    first = max(begin, start - _TAIL)
    last = end + _TAIL
    before = text[max(first, text.rfind("\n", first, start) + 1) : start]
    after = text[end:last]
    return before.strip(), after.partition("\n")[0]


def _in_sentence(text: str, match: re.Match[str], begin: int) -> bool:
    """Return True if an opening mark stands inside a sentence, or between quotation marks."""
    before, _ = _line(text, match, begin)
    if before.endswith("|>") or _ROLE.match(before):
        return False
    before = before.strip("*_#>- ")
    return bool(before) and before[-1] not in ".!?。！？"


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """Return True if a closing mark without an opening one stands inside a sentence: "a stray </think> tag"."""
    before, after = _line(text, match)
    if not before or before[-1] in ".!?。！？":
        return False
    apart = text[match.start() - 1] in " \t\"'“‘`(«"
    going_on = after.strip()[:1]
    return before[-1] == ":" or (apart and bool(going_on) and not going_on.isupper())


class _Cited:
    """A test for marks of the judged texts that stand inside a line. Prompts show them without their first sign."""

    def __init__(self, judged: Iterable[str]) -> None:
        self._judged = [text.casefold() for text in judged]
        self._there: dict[str, bool] = {}

    def __call__(self, text: str, match: re.Match[str]) -> bool:
        before, after = _line(text, match)
        if not (before and after.strip()):
            return False
        mark = match[0][1:].strip().casefold()
        if mark not in self._there:
            self._there[mark] = any(mark in other for other in self._judged)
        return self._there[mark]
