"""Records of bench/when_search_helps.py, and what they say: tables and figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import _common
import msgspec
from _continuations import Judged
from _paired import Attempt
from _plot import Point, Series
from _records import Record, read_records, write_records
from _worlds import Played, predictions

from exact.calibration.measure import BootstrapInterval, Prediction, auc, auc_within, brier, ece, interval, reliability
from exact.evaluation.statistics import Estimate, bootstrap, rate

FOLDER = _common.ROOT / "bench" / "results" / "when_search_helps"
GREEDY, ALONE = "greedy", "policy alone"
MAIN = ("as on pages", "persistent", 16)
"""Search, noise and budget of the figure of the worlds."""


class Valued(msgspec.Struct, frozen=True):
    """The values of one state on the way of the learned agent alone, and how the episode ended."""

    task: str
    step: int
    ended: bool
    learned: float
    lexical: float
    success: bool


class AloneEpisode(msgspec.Struct, frozen=True):
    """One episode of the learned agent alone; no states where its environment failed."""

    task: str
    states: list[Valued]


class Quality(NamedTuple):
    """How good a judge is, on states with outcomes. None where that is not defined."""

    states: int
    success: float
    auc: BootstrapInterval | None
    auc_within: BootstrapInterval | None
    correlation: float | None


class Row(NamedTuple):
    """A row of the curve: a judge, and what search gained with it over the policy alone."""

    quality: Quality | None
    success: Estimate
    gain: Estimate


def write(name: str, records: Sequence[msgspec.Struct]) -> None:
    """Write the records of one name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_records(FOLDER / f"{name}.jsonl.gz", records)


def read(name: str, kind: type[Record]) -> list[Record]:
    """Return the records of one name."""
    return read_records(FOLDER / f"{name}.jsonl.gz", kind)


def name_of(id: str) -> str:
    """Return a task's name, without its seed."""
    return id.partition("?")[0]


def quality(states: Sequence[Prediction]) -> Quality:
    """Return a judge's measured quality."""
    values, outcomes = [one.value for one in states], [float(one.success) for one in states]
    varied = len(set(values)) > 1 and len(set(outcomes)) > 1
    return Quality(
        len(states), statistics.fmean(outcomes), interval(states, auc), interval(states, auc_within),
        statistics.correlation(values, outcomes) if varied else None,
    )  # fmt: skip


def shown(figure: BootstrapInterval | None) -> str:
    return "-" if figure is None else f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def counted(attempts: Sequence[Attempt], rows: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return the tasks that count: those whose rows have all ended, in the plan's order and without a gap."""
    ended = {(each.task, each.row) for each in attempts}
    found = list[str]()
    for id in order:
        if any((id, row) not in ended for row in rows):
            break
        found.append(id)
    return found


def pages(attempts: Sequence[Attempt], states: Sequence[Judged], rows: Sequence[str], tasks: Sequence[str]) -> dict[str, Row]:
    """Return the rows of the pages, on the tasks that count."""
    scores: dict[str, dict[str, float]] = {row: {} for row in rows}
    for each in attempts:
        if each.task in tasks and each.score is not None:
            scores[each.row][each.task] = each.score
    base, found = scores[GREEDY], dict[str, Row]()
    for row in rows:
        judged = [
            Prediction(name_of(each.task), at, each.value, each.outcome == 1)
            for at, each in enumerate(states)
            if each.row == row and each.task in tasks and each.outcome is not None
        ]
        gaps = {name_of(id): [score - base[id]] for id, score in scores[row].items() if id in base}
        success = rate({name_of(id): [score] for id, score in scores[row].items()})
        found[row] = Row(quality(judged) if judged else None, success, bootstrap(gaps))
    return found


def worlds(cells: Sequence[Played]) -> dict[tuple[str, str, float, int], Row]:
    """Return the rows of the worlds. Intervals are normal ones over games."""
    base = next(cell.outcomes for cell in cells if cell.search == ALONE)
    found = {}
    for cell in cells:
        if cell.search == ALONE:
            continue
        outcomes = [float(digit) for digit in cell.outcomes]
        gaps = [float(digit) - float(alone) for digit, alone in zip(cell.outcomes, base, strict=True)]
        found[cell.search, cell.kind, cell.sd, cell.budget] = Row(pooled(predictions(cell)), mean(outcomes), mean(gaps))
    return found


def pooled(states: Sequence[Prediction]) -> Quality:
    """Return a judge's quality without intervals: there are hundreds of cells."""
    over, within = (None if each is None else BootstrapInterval(each, math.nan, math.nan) for each in (auc(states), auc_within(states)))
    values, outcomes = [one.value for one in states], [float(one.success) for one in states]
    return Quality(len(states), statistics.fmean(outcomes), over, within, statistics.correlation(values, outcomes))


def mean(values: Sequence[float]) -> Estimate:
    """Return a mean with its normal interval."""
    middle, half = statistics.fmean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(middle, middle - half, middle + half, len(values))


MEASURES = {"brier": brier, "ece": ece, "auc": auc, "auc_within": auc_within}


def reliable(states: Sequence[Valued]) -> dict[str, dict[str, Any]]:
    """Return what the values of each judge are worth on some states. Of a constant (the share of success) only the Brier score counts."""
    share = statistics.fmean(float(each.success) for each in states)
    found = {}
    for judge in ("learned", "lexical", "constant"):
        values = [share if judge == "constant" else float(getattr(each, judge)) for each in states]
        judged = [
            Prediction(name_of(each.task), at, value, each.success) for at, (each, value) in enumerate(zip(states, values, strict=True))
        ]
        measures = {"brier": brier} if judge == "constant" else MEASURES
        found[judge] = {
            "states": len(judged),
            **{name: interval(judged, measure) for name, measure in measures.items()},
            "bins": [part._asdict() for part in reliability(judged)],
        }
    return found


def within_reach(attempts: Sequence[Attempt], states: Sequence[Judged], tasks: Sequence[str]) -> dict[str, list[str]]:
    """Return the tasks that the policy alone fails, and those of them where some row evaluated a state from which it succeeds."""
    failed = [each.task for each in attempts if each.row == GREEDY and each.score == 0 and each.task in tasks]
    reached = {each.task for each in states if each.outcome == 1}
    return {"failed": failed, "within_reach": [task for task in failed if task in reached]}


def least_auc(rows: Sequence[Row]) -> float:
    """Return the least AUC of a row whose gain has a lower end above 0, if all rows of higher AUC gain too. NaN where none gains."""
    least = math.nan
    for row in sorted(rows, key=lambda row: -auc_of(row)):
        if not row.gain.low > 0:
            break
        least = auc_of(row)
    return least


def auc_of(row: Row) -> float:
    """Return a row's AUC. That of values that are all equal is 0.5, as ties count half."""
    return row.quality.auc.value if row.quality and row.quality.auc else math.nan


def series(pages_rows: Mapping[str, Row], oracles: Sequence[str], found: Mapping[tuple[str, str, float, int], Row]) -> list[Series]:
    """Return the lines of the plot."""

    def point(row: Row, label: str = "") -> Point:
        return Point(auc_of(row), row.gain.mean, row.gain.low, row.gain.high, label)

    own = [point(row, name) for name, row in pages_rows.items() if name not in (*oracles, GREEDY)]
    search, _, budget = MAIN
    lines = [Series("pages, oracles", [point(pages_rows[name]) for name in oracles]), Series("pages, own judges", own, joined=False)]
    for kind in ("independent", "persistent"):
        cells = [row for key, row in found.items() if (key[0], key[1], key[3]) == (search, kind, budget)]
        lines.append(Series(f"worlds, {kind}", [point(row) for row in cells]))
    return lines
