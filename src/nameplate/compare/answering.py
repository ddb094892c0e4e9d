"""What a comparison came to, in one sentence, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nameplate.compare.document import (
    Answer,
    CellCompared,
    Compared,
    Interval,
    Overall,
    RatedCompared,
    Settings,
)
from nameplate.compare.side import Side

# A sentence names so many measures; the others are counted.
_NAMED = 2


def answer(cells: Sequence[CellCompared], rated: Sequence[RatedCompared], settings: Settings) -> Answer:
    """Return the answer: by what differs for certain, else by whether all that the comparison is about is equal."""
    told = [(one.verdict, f"rated {one.shape} {rated_said(one)}") for one in rated]
    gated = _about(cells)
    measured = [(cell, one) for cell in cells for one in cell.measures]
    # What the comparison is about comes first, and of it what moved most.
    measured.sort(key=lambda pair: (not pair[1].gated, -_size(pair[1])))
    told += [(one.verdict, _said(cell, one)) for cell, one in measured]
    worse = [said for verdict, said in told if verdict == "worse"]
    better = [said for verdict, said in told if verdict == "better"]
    if worse and better:
        return Answer(
            "mixed", f"B is worse in some and better in others: {_listed(worse)}; but {_listed(better)}."
        )
    if worse or better:
        verdict: Overall = "worse" if worse else "better"
        return Answer(verdict, f"B is {verdict} than A: {_listed(worse or better)}.")
    if (
        gated
        and all(one.verdict == "equal" for one in gated)
        and all(one.verdict == "equal" for one in rated)
    ):
        what = ", ".join(dict.fromkeys(one.says for one in gated[:_NAMED]))
        more = len({one.says for one in gated} - {one.says for one in gated[:_NAMED]})
        other = f" and {more} more" if more else ""
        same = " The rated number is the same." if rated else ""
        return Answer("equal", f"A and B are equal within {settings.margin * 100:g}%: {what}{other}.{same}")
    return Answer("not known", f"Whether B differs from A is not known: {_why(gated, rated)}.")


def is_answered(told: Answer, cells: Sequence[CellCompared], rated: Sequence[RatedCompared]) -> bool:
    """Tell whether anything is answered: as a whole, or of one thing that the comparison is about."""
    verdicts = [one.verdict for one in _about(cells)] + [one.verdict for one in rated]
    return told.verdict != "not known" or any(verdict != "not known" for verdict in verdicts)


def _about(cells: Sequence[CellCompared]) -> list[Compared]:
    """Return what the comparison is about, what moved most first; a baseline is no part of it beside loads."""
    loaded = [cell for cell in cells if cell.group != "baseline"] or cells
    gated = [one for cell in cells for one in cell.measures if one.gated]
    found = gated or [one for cell in loaded for one in cell.measures]
    return sorted(found, key=lambda one: -_size(one))


def _why(gated: Sequence[Compared], rated: Sequence[RatedCompared]) -> str:
    unknown = [one for one in gated if one.verdict == "not known"]
    if not unknown:
        open_ = [one for one in rated if one.verdict == "not known"]
        return f"rated {open_[0].shape}: {open_[0].reason}" if open_ else "nothing could be compared"
    # Only where the trials are too few for all of them is that the whole reason.
    shown = max(unknown, key=lambda one: one.p_value is not None)
    rest = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    return f"{shown.says}: {shown.reason}{rest}"


def _said(cell: CellCompared, one: Compared) -> str:
    return (
        f"{one.says} {change_said(one)} at {cell.cell}"
        if one.relative or one.absolute
        else f"{one.says}, {one.reason}"
    )


def change_said(one: Compared) -> str:
    """Say a measure's difference with its interval: `+5.2% (3.1% to 7.3%)`."""
    if one.relative is not None:
        return interval_said(one.relative, "%")
    if one.unit == "share" and one.absolute is not None:
        return interval_said(one.absolute, " pp")
    return one.reason


def interval_said(interval: Interval, unit: str) -> str:
    """Write a share, or a difference of shares, with its bounds."""
    said = f"{_signed(interval.estimate)}{unit}"
    if interval.low is None or interval.high is None:
        return said
    return f"{said} ({_signed(interval.low)}{unit} to {_signed(interval.high)}{unit})"


def rated_said(one: RatedCompared) -> str:
    """Say both rated numbers: `7 -> 6`."""
    return " -> ".join("none" if side.rated is None else f"{side.rated:g}" for side in (one.a, one.b))


def notes_of(
    a: Side, b: Side, cells: Sequence[CellCompared], rated: Sequence[RatedCompared]
) -> Iterator[str]:
    """Yield what must be known of a comparison as a whole."""
    if {source.path for source in a.sources} & {source.path for source in b.sources}:
        yield "A and B share results: what is compared with itself differs by nothing."
    clocks = {source.terms.get("clock") for side in (a, b) for source in side.sources}
    if "virtual" in clocks:
        yield "The runs are simulated: their noise is that of a model, not that of a server."
    loaded = [cell for cell in cells if any(one.p_value is not None for one in cell.measures)]
    if loaded and all(cell.paired for cell in loaded):
        yield "Paired: each trial has a partner of the same key and nonce, which was sent the same prompts."
    elif loaded:
        yield "Not paired: the two sides were sent prompts of their own."
    if loaded and not any(cell.unit == "result" for cell in loaded):
        if len(a.sources) == len(b.sources) == 1:
            yield (
                "One result a side: the intervals hold what changes from trial to trial. What changes with a restart, "
                "another day or another machine is in the difference, and cannot be told from what you changed; three "
                "results a side, each after a restart, bring it into the interval."
            )
    elif loaded:
        yield "Each result is one value, the mean of its trials: what changes between results is in the intervals."
    several = [side.name for side in (a, b) if sum(bool(source.rated) for source in side.sources) > 1]
    if several:
        yield f"{' and '.join(several)} hold several rated numbers of a shape: none of them is chosen."
    if rated and not loaded:
        yield "No load has three trials on both sides: only the rated numbers have a verdict."


def _size(one: Compared) -> float:
    interval = one.relative or one.absolute
    return 0.0 if interval is None else abs(interval.estimate)


def _listed(said: Sequence[str]) -> str:
    more = len(said) - _NAMED
    shown = "; ".join(said[:_NAMED])
    return f"{shown}; and {more} more measure{'' if more == 1 else 's'}" if more > 0 else shown


def _signed(share: float) -> str:
    value = share * 100
    return f"{value:+.1f}" if abs(value) < 99.95 else f"{value:+,.0f}"
