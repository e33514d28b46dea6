"""Tell from probabilities of answers what a panel of a small model's forms gains, with the power of the comparison.

    python experiments/bench/panel_readings_gains.py FOLDER [--save FOLDER]

FOLDER has the tables of `panel_readings.py`. Only rows that every form of a set was asked for count. Each draw labels
40 or 100 rows of as few documents as have them, drawn at random, and holds out all others; the labels choose a form
by Q, standardise the panel, and weigh it as `compile` does. Values are means over 200 draws. Intervals are 95 %:
documents are drawn again, with draws of labels in each, a document with all its copies on one side. Both are done for
the expected score and for the likeliest answer. Panels of the two are compared as the mean over all panels of one form,
of two and so on, and as the panel that compiling makes of all. In the positive control, labels are the shortness of the
text, and one more member counts its words.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.experiments.bench.panel_gains import (
    INTERVAL,
    POWER,
    Answers,
    Draws,
    around,
    compiled,
    members_of,
    table,
)
from judgesmith.experiments.studies.replay import agreements
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.panel.averaging import (
    averaged,
    standings_of,
    worth_asking,
)
from judgesmith.programs.readings.head import Vector

SIZES = (40, 100)
#: The member that is added for the positive control alone; and the kinds of scores in an answer.
CONTROL = "length"
KINDS = {"percent": "expected", "said": "likeliest"}
CHOSEN = "chosen by Q"
PANEL = "panel"
WEIGHED = "as compiled"
NUMBER = "{:.2f}"
COUNT = "{:.0f}"
SHARE = "{:.0%}"
HEAD = {"model, set and aspect": ""}
TITLE = {**HEAD, "score": ""}
COUNTS = {"labels": COUNT, "held out": COUNT}
#: The columns of each table.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "members": {
        **TITLE,
        "form": "",
        "rows": COUNT,
        "failed": SHARE,
        "different scores": COUNT,
        "Q": NUMBER,
        "correlation with": "",
        "panel − this form": INTERVAL,
        "expected − likeliest": INTERVAL,
    },
    "gains": {
        **TITLE,
        **COUNTS,
        CHOSEN: NUMBER,
        PANEL: NUMBER,
        "panel − chosen": INTERVAL,
        "as compiled − chosen": INTERVAL,
        "panel − at random": INTERVAL,
        "panel − best form": INTERVAL,
        "least of the first that is found": NUMBER,
    },
    "panels": {
        **HEAD,
        **COUNTS,
        "members": "",
        "members heard": "",
        "by expectation": NUMBER,
        "by likeliest answers": NUMBER,
        "gain": INTERVAL,
        "one form by expectation − likeliest panel": INTERVAL,
        "least gain that is found": NUMBER,
    },
    "control": {
        **TITLE,
        **COUNTS,
        "length was chosen": SHARE,
        CHOSEN: NUMBER,
        "best form": NUMBER,
        "chosen − best form": INTERVAL,
        "panel with length − chosen": INTERVAL,
    },
}


def tables(folder: Path) -> Iterator[Answers]:
    """Yield the answers of each model, set and kind: the rows that every form was asked for, where they are enough."""
    for file in sorted(folder.glob("*.jsonl")):
        by_set: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            by_set[line["set"]].append(line)
        for name, lines in by_set.items():
            for kind in KINDS:
                scored = [{**line, "percent": line[kind]} for line in lines]
                answers = table(file.stem, name, kind, scored)
                if len(answers.human) >= 2 * SIZES[0]:
                    yield answers


def with_length(answers: Answers) -> Answers:
    """Return the positive control: a member that counts words, and labels that are their negative."""
    share = 100 * (1 - answers.words / answers.words.max())
    return replace(
        answers,
        forms=(*answers.forms, CONTROL),
        percents=np.column_stack([answers.percents, share]),
        human=-answers.words,
    )


# Draws of labels


def played(
    answers: Answers, labelled: NDArray[Any], heldout: NDArray[Any]
) -> dict[str, float]:
    """Return the held-out Q of each form and rule, and whether the control's form was chosen."""
    train = answers.percents[labelled]
    rest = answers.percents[heldout]
    human = answers.human[labelled]
    chosen = int(agreements(train, human).sum(axis=0).argmax())
    panel = averaged(rest, standings_of(train))
    columns = np.column_stack([rest, panel, compiled(train, rest, human)])
    q = agreements(columns, answers.human[heldout]).sum(axis=0).tolist()
    singles = dict(zip(answers.forms, q, strict=False))
    found = {
        CHOSEN: q[chosen],
        PANEL: q[-2],
        WEIGHED: q[-1],
        "at random": float(np.mean(q[:-2])),
    }
    return singles | found | {"control": float(answers.forms[chosen] == CONTROL)}


def as_few_as_have(counts: NDArray[Any], size: int) -> int:
    """Return the fewest documents, in their order, that have that many rows."""
    return int(np.searchsorted(np.cumsum(counts), size)) + 1


DRAWS = Draws(played, as_few_as_have, many=200, resamples=300, few=2)


@dataclass(frozen=True)
class Gains:
    """Q of each form and rule on the rows as they are, and over resamples of their documents."""

    plain: dict[str, float]
    again: dict[str, Vector]

    def less(self, one: str, other: str) -> list[float]:
        """Return the first less the second, with its interval."""
        return around(self.plain[one] - self.plain[other], self.error(one, other))

    def error(self, one: str, other: str) -> float:
        """Return the standard error of the difference."""
        return float((self.again[one] - self.again[other]).std())


def gains(answers: Answers, size: int) -> Gains:
    """Draw labels from the rows as they are, and from resamples of their documents."""
    return Gains(*DRAWS.gains(answers, size))


def by_expectation(answers: Answers, other: Answers) -> list[list[float]]:
    """Return what each form's expected score is ahead of its likeliest answer, on all rows."""
    documents = answers.rows_by_document()
    both = np.column_stack([answers.percents, other.percents])
    count = len(answers.forms)
    rng = np.random.default_rng(0)

    def ahead(at: NDArray[Any]) -> Vector:
        q = agreements(both[at], answers.human[at]).sum(axis=0)
        return np.asarray(q[:count] - q[count:])

    again = []
    for _ in range(5 * DRAWS.resamples):
        picks = rng.integers(len(documents), size=len(documents)).tolist()
        again.append(ahead(np.concatenate([documents[one] for one in picks])))
    leads = ahead(np.arange(len(both)))
    errors = np.std(again, axis=0)
    return [around(*pair) for pair in zip(leads.tolist(), errors.tolist(), strict=True)]


# Panels of both readings


def both(expected: Answers, likeliest: Answers) -> Answers:
    """Return the answers of each form in both readings: all expected ones, then the likeliest."""
    forms = (*expected.forms, *(f"{form}, likeliest" for form in likeliest.forms))
    percents = np.column_stack([expected.percents, likeliest.percents])
    return replace(expected, forms=forms, percents=percents)


def panels_of(count: int) -> list[list[list[int]]]:
    """Return the panels of each number of forms, as forms' places."""
    every = []
    for size in range(1, count + 1):
        every.append(list(map(list, itertools.combinations(range(count), size))))
    return every


def in_both(
    answers: Answers, labelled: NDArray[Any], heldout: NDArray[Any]
) -> dict[str, float]:
    """Return the held-out Q of panels in each reading, and how many members compiling leaves."""
    count = len(answers.forms) // 2
    human = answers.human[labelled]
    held = answers.human[heldout]
    found = dict[str, float]()
    for name, places in zip(
        KINDS.values(), (range(count), range(count, 2 * count)), strict=True
    ):
        train = answers.percents[labelled][:, places]
        rest = answers.percents[heldout][:, places]
        columns = [compiled(train, rest, human)]
        columns.append(rest[:, agreements(train, human).sum(axis=0).argmax()])
        for panels in panels_of(count):
            for some in panels:
                columns.append(averaged(rest[:, some], standings_of(train[:, some])))
        q = agreements(np.column_stack(columns), held).sum(axis=0).tolist()
        found |= {f"{name} {WEIGHED}": q.pop(0), f"{name} {CHOSEN}": q.pop(0)}
        found[f"{name} heard"] = len(worth_asking(train))
        for size, panels in enumerate(panels_of(count), start=1):
            found[f"{name} {size}"] = float(np.mean(q[: len(panels)]))
            del q[: len(panels)]
    return found


PANELS = replace(DRAWS, play=in_both, many=100, resamples=200)


def of_panels(answers: Answers, size: int) -> Iterator[list[Any]]:
    """Yield a row for each size of a panel: both readings, and what expectation is ahead by."""
    found = Gains(*PANELS.gains(answers, size))
    count = len(answers.forms) // 2
    expected, likeliest = KINDS.values()
    for members in (*map(str, range(1, count + 1)), WEIGHED):
        heard = members
        if members == WEIGHED:
            counts = [f"{found.plain[f'{one} heard']:.1f}" for one in KINDS.values()]
            heard = " and ".join(counts)
        one = f"{expected} {members}"
        other = f"{likeliest} {members}"
        yield [
            answers.title,
            size,
            len(answers.human) - size,
            members,
            heard,
            found.plain[one],
            found.plain[other],
            found.less(one, other),
            found.less(f"{expected} {CHOSEN}", other),
            POWER * found.error(one, other),
        ]


# Tables


def compared(answers: Answers, size: int, found: Gains) -> list[Any]:
    """Return a row: the panel and the chosen form, what the first is ahead by, and the least lead that is found."""
    best = max(answers.forms, key=found.plain.__getitem__)
    return [
        answers.title,
        KINDS[answers.kind],
        size,
        len(answers.human) - size,
        found.plain[CHOSEN],
        found.plain[PANEL],
        found.less(PANEL, CHOSEN),
        found.less(WEIGHED, CHOSEN),
        found.less(PANEL, "at random"),
        found.less(PANEL, best),
        POWER * found.error(PANEL, CHOSEN),
    ]


def controlled(answers: Answers, size: int) -> list[Any]:
    """Return a row of the positive control."""
    found = gains(with_length(answers), size)
    best = max(answers.forms, key=found.plain.__getitem__)
    return [
        answers.title,
        KINDS[answers.kind],
        size,
        len(answers.human) - size,
        found.plain["control"],
        found.plain[CHOSEN],
        found.plain[best],
        found.less(CHOSEN, best),
        found.less(PANEL, CHOSEN),
    ]


def told(every: Sequence[Answers]) -> dict[str, list[list[Any]]]:
    """Return the rows of each table."""
    members = list[list[Any]]()
    rows = list[list[Any]]()
    control = list[list[Any]]()
    panels = list[list[Any]]()
    likeliest = {one.title: one for one in every if one.kind == "said"}
    for answers in every:
        sizes = [size for size in SIZES if len(answers.human) >= 2 * size]
        found = {size: gains(answers, size) for size in sizes}
        beyond = by_expectation(answers, likeliest[answers.title])
        for line, form, ahead in zip(
            members_of(answers), answers.forms, beyond, strict=True
        ):
            title, name, *numbers = line
            expected = ahead if answers.kind != "said" else None
            leads = [found[sizes[-1]].less(PANEL, form), expected]
            members.append([title, KINDS[answers.kind], name, *numbers, *leads])
        for size, gained in found.items():
            rows.append(compared(answers, size, gained))
        if answers.kind != "said":
            control.append(controlled(answers, sizes[0]))
            two = both(answers, likeliest[answers.title])
            panels += of_panels(two, sizes[0])
    names = ("members", "gains", "panels", "control")
    return dict(zip(names, (members, rows, panels, control), strict=True))


def main() -> None:
    """Print the tables, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    commands = [
        "python experiments/bench/panel_readings.py SET -o FOLDER",
        "python experiments/bench/panel_readings_gains.py FOLDER",
    ]
    for name, rows in told(list(tables(options.folder))).items():
        for row in rows:
            print(name, json.dumps(row), flush=True)
        columns = COLUMNS[name]
        name = f"panel-readings-{name}"
        save(options.save, name, columns, rows, commands=commands, seed=0)


if __name__ == "__main__":
    main()
