"""The part that people took in an attempt, for its report."""

from __future__ import annotations

from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import one_line
from exact.runs.journal import events as ev

_WORDS = {
    "pause": "paused",
    "resume": "resumed",
    "stop": "stopped the search",
    "expand": "asked to expand state {node}",
    "prune": "pruned at state {node}",
    "instruct": "changed the instruction to: {text}",
    "act": "gave the next action: {text}",
    "take": "used the browser",
}


def people(reading: Reading) -> tuple[data.PersonPart, ...]:
    """Return what people were asked, answered and commanded, in order."""
    found, asked = list[data.PersonPart](), dict[str, ev.PersonAsked]()
    for event in reading.people:
        match event:
            case ev.PersonAsked():
                asked[event.id] = event
            case ev.PersonAnswered() if event.id in asked:
                found.append(_answer(asked.pop(event.id), event))
            case ev.Commanded() if event.command in _WORDS:
                words = one_line(_WORDS[event.command].format(node=event.node, text=event.text))
                found.append(_part(event, words, event.refused and f"refused: {one_line(event.refused)}", touched=event.touches))
    found += [_part(event, _question(event), "no answer yet") for event in asked.values()]
    return tuple(found)


def _answer(asked: ev.PersonAsked, answer: ev.PersonAnswered) -> data.PersonPart:
    said = "no answer in time" if answer.answer is None else f"answered {one_line(answer.answer)!r} after {answer.seconds:.1f} s"
    return _part(answer, _question(asked), said, touched=answer.touched)


def _question(asked: ev.PersonAsked) -> str:
    question = asked.question
    fields = ", ".join(f"{name}: {value}" for name, value in question.fields.items())
    match question.kind:
        case "question":
            words = f"was asked: {question.text}"
        case "action":
            words = f"was asked to allow the action {question.text}"
        case _:
            words = f"was asked to allow {question.method} {question.url}" + (f" with {fields}" if fields else "")
    return one_line(words)


def _part(event: ev.PersonAsked | ev.PersonAnswered | ev.Commanded, words: str, outcome: str, *, touched: bool = False) -> data.PersonPart:
    by = "" if isinstance(event, ev.PersonAsked) else event.by
    return data.PersonPart(seconds=event.t, by=by, words=words, outcome=outcome, touched=touched)
