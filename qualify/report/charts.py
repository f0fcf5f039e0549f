"""Pictures as SVG, written when the page is made.

Every picture is a function from numbers to markup. Positions are percentages, so a picture is as wide as its
column on a phone, a screen and paper, and its text keeps its size. Colours are classes of the style sheet, so
light, dark and print need no second picture. Every outcome has a pattern besides its colour. Every picture is
an image with a name and a description for those who do not see it; the same numbers stand beside it as text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

#: Subjects are told apart by mark and colour; more than these share the last.
MARKS = ("circle", "square", "triangle", "diamond", "plus", "cross")


class Ids:
    """Numbers for the ids of one page, so that the same page always has the same bytes."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """Return an id that the page has not used."""
        return f"g{next(self._numbers)}"


def _image(ids: Ids, name: str, description: str, css: str, body: str, height: int) -> Markup:
    """Wrap marks as one image with a name and a description."""
    one, two = ids.next(), ids.next()
    return Markup(  # noqa: S704 - every text in it is escaped here, the rest are numbers and our own names
        f'<svg class="{css}" role="img" aria-labelledby="{one}" aria-describedby="{two}" width="100%" '
        f'height="{height}"><title id="{one}">{escape(name)}</title>'
        f'<desc id="{two}">{escape(description)}</desc>{body}</svg>'
    )


def _n(value: float) -> str:
    """A coordinate: two decimals, no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def bar(ids: Ids, name: str, parts: Sequence[tuple[str, str, int]], total: int) -> Markup:
    """Draw a stacked bar over a fixed total. A part is (css class, word, count); the rest stays empty."""
    at = 0.0
    body = '<rect class="frame" x="0" y="0" width="100%" height="100%"/>'
    said = []
    for css, word, count in parts:
        if count <= 0 or total <= 0:
            continue
        width = 100.0 * count / total
        body += (
            f'<rect class="o-{css}" x="{_n(at)}%" y="0" width="{_n(width)}%" height="100%">'
            f"<title>{count} {escape(word)}</title></rect>"
        )
        at += width
        said.append(f"{count} {word}")
    return _image(ids, name, f"{', '.join(said) or 'nothing'}; of {total}", "bar", body, 26)


@dataclass(frozen=True)
class Axis:
    """A linear axis from low to high."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return a place in percent, held inside the picture with a margin of two."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return 2 + 96 * min(max(share, 0.0), 1.0)


def axis_over(values: Sequence[float]) -> Axis:
    """Return an axis that holds all values, with some air."""
    low, high = min(values), max(values)
    air = (high - low) * 0.04 or abs(high) * 0.04 or 1.0
    return Axis(low - air, high + air)


def _band(axis: Axis, low: float, high: float) -> str:
    left, right = axis.at(low), axis.at(high)
    return f'<rect class="noise" x="{_n(left)}%" y="0" width="{_n(right - left)}%" height="100%"/>'


def _rule(axis: Axis, value: float, css: str) -> str:
    x = _n(axis.at(value))
    return f'<line class="{css}" x1="{x}%" y1="0" x2="{x}%" y2="100%"/>'


def strip(
    ids: Ids,
    name: str,
    description: str,
    axis: Axis,
    quantiles: Sequence[float],
    *,
    noise: tuple[float, float] | None = None,
    zero: float | None = None,
    claimed: float | None = None,
    estimate: tuple[float | None, float, float | None] | None = None,
) -> Markup:
    """Draw one distribution as ticks (quantiles), a box of the middle half and the median.

    `noise` is the band of the noise floor, `zero` a line of no difference, `claimed` a line of the claimed
    size, and `estimate` an interval with its middle.
    """
    body = _band(axis, *noise) if noise else ""
    if zero is not None:
        body += _rule(axis, zero, "zero")
    if claimed is not None:
        body += _rule(axis, claimed, "claimed")
    if quantiles:
        middle = len(quantiles) // 2
        quarter = len(quantiles) // 4
        left, right = axis.at(quantiles[quarter]), axis.at(quantiles[-1 - quarter])
        body += f'<rect class="box" x="{_n(left)}%" y="9" width="{_n(max(right - left, 0.2))}%" height="18"/>'
        ticks = sorted({_n(axis.at(q)) for q in quantiles}, key=float)
        body += "".join(f'<line class="tick" x1="{x}%" y1="12" x2="{x}%" y2="24"/>' for x in ticks)
        x = _n(axis.at(quantiles[middle]))
        body += f'<line class="median" x1="{x}%" y1="6" x2="{x}%" y2="30"/>'
    if estimate is not None:
        low, mid, high = estimate
        if low is not None and high is not None:
            body += (
                f'<line class="interval" x1="{_n(axis.at(low))}%" y1="34" x2="{_n(axis.at(high))}%" y2="34"/>'
            )
        body += f'<circle class="estimate" cx="{_n(axis.at(mid))}%" cy="34" r="4"/>'
    return _image(ids, name, description, "strip", body, 40)


@dataclass(frozen=True)
class Start:
    """One start on the timeline: when (0 to 1), declared place (0 to 1), subject, out of order or not."""

    when: float
    place: float
    subject: str
    wrong: bool


def timeline(
    ids: Ids, name: str, description: str, starts: Sequence[Start], subjects: Sequence[str]
) -> Markup:
    """Draw starts: time to the right, declared place upwards; what is out of order gets a ring."""
    body = '<rect class="frame" x="0" y="0" width="100%" height="100%"/>'
    for subject in subjects:
        mine = [s for s in starts if s.subject == subject]
        path = "".join(_dots(mine))
        # Zero-length lines with round ends are dots that keep their shape when the picture is stretched.
        body += _plane(f'<path class="dots {mark_of(subjects, subject)}" d="{path}"/>')
    wrong = [s for s in starts if s.wrong]
    body += "".join(
        f'<g class="wrong"><circle cx="{_n(_x(s))}%" cy="{_n(_y(s))}%" r="7"/></g>' for s in wrong[:2000]
    )
    return _image(ids, name, description, "timeline", body, 300)


def lane(ids: Ids, name: str, description: str, starts: Sequence[Start]) -> Markup:
    """Draw the starts of one subject as ticks in time; what is out of order is longer and thicker."""
    body = '<rect class="frame" x="0" y="0" width="100%" height="100%"/>'
    for css, low, high, wanted in (("tick", 5, 17, False), ("late", 0, 22, True)):
        places = sorted({_n(round(_x(s), 1)) for s in starts if s.wrong is wanted}, key=float)
        body += "".join(f'<line class="{css}" x1="{x}%" y1="{low}" x2="{x}%" y2="{high}"/>' for x in places)
    return _image(ids, name, description, "lane", body, 22)


def mark_of(subjects: Sequence[str], subject: str) -> str:
    """Return the mark of a subject, which is also the class of its colour."""
    return "m-" + MARKS[min(list(subjects).index(subject), len(MARKS) - 1)]


def _x(start: Start) -> float:
    return 2 + 96 * start.when


def _y(start: Start) -> float:
    return 97 - 94 * start.place


def _plane(body: str) -> str:
    return (
        '<svg x="0" y="0" width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
        f"{body}</svg>"
    )


def _dots(starts: Sequence[Start]) -> Iterator[str]:
    for s in starts:
        yield f"M{_x(s) * 10:.0f} {_y(s) * 10:.0f}h0"
