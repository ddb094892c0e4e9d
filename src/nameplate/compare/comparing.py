"""Two sides to their comparison: contract first, then load by load and measure by measure, then the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from nameplate import __version__
from nameplate.compare.answering import answer, is_answered, notes_of
from nameplate.compare.conditions import FailIf, exit_code
from nameplate.compare.document import (
    CellCompared,
    Comparison,
    NotCompared,
    ResultSide,
    Settings,
    SideDocument,
)
from nameplate.compare.foreign import by_its_run, measures_apart, run_differences
from nameplate.compare.judge import Drawn, Samples, compare_measure, settle
from nameplate.compare.matching import Load, Matched, Trial, loads_of, match, pairs, shapes_of
from nameplate.compare.measures import ALONE, HEADLINE, HEADLINE_OF_CELLS, USUAL, USUAL_OF, Statistic
from nameplate.compare.rating import compare_rated
from nameplate.compare.side import Side
from nameplate.compare.terms import Difference, differences, named
from nameplate.contract.errors import CallerError
from nameplate.statistics.two_samples import PAIRED, SEVERAL, WELCH

# Groups of the cells of a speed matrix.
_MATRIX = ("prefill", "decode", "burst", "mixed")
# Of a side's loads so many are named where none is common.
_SAID = 8
# Of one family so many terms are named one by one, and more by a wildcard.
_NAMED = 2


class Asked(Struct, frozen=True, kw_only=True):
    """Hold what is asked of a comparison.

    `vary` are patterns of terms that may differ, `gates` further measures that it is about, `only` patterns of loads.
    """

    settings: Settings = Settings()
    vary: tuple[str, ...] = ()
    gates: tuple[Statistic, ...] = ()
    conditions: tuple[FailIf, ...] = ()
    only: tuple[str, ...] = ()


class Refused(CallerError):  # noqa: N818 - it is an answer: not as they are
    """What is to be compared differs in its contract, and nobody said that this is the point."""

    def __init__(self, found: Sequence[Difference]) -> None:
        self.differences = tuple(found)
        refused = [one for one in found if one.kind == "refused"]
        count = "one term of their contracts differs"
        if len(refused) > 1:
            count = f"{len(refused)} terms of their contracts differ"
        options = " ".join(_options(refused))
        super().__init__(
            f"A and B are not comparable as they are: {count}.",
            why=f"What differs may be what the numbers show: {'; '.join(map(_told, refused))}.",
            hint=f"Where a difference is the point, name it: {options}." if options else "",
        )


def compare_sides(a: Side, b: Side, asked: Asked) -> Comparison:
    """Compare two sides; Refused where they differ in what must be alike, CallerError where nothing can be compared."""
    loads_a, loads_b = loads_of(a), loads_of(b)
    shapes = shapes_of(loads_a), shapes_of(loads_b)
    one_shape_each = len(shapes[0]) == len(shapes[1]) == 1
    differing = one_shape_each and shapes[0] != shapes[1]
    found = match(loads_a, loads_b, any_shape=differing, only=asked.only)
    changed = _differences(a, b, found, asked.vary)
    if any(one.kind == "refused" for one in changed):
        raise Refused(changed)
    rated = () if asked.only else compare_rated(a, b, any_shape=differing)
    if not found.both and not rated:
        raise CallerError(
            "A and B have no load in common.",
            why=f"A has {_names(loads_a)}; B has {_names(loads_b)}.",
            hint="Compare results of the same loads" + (", or loosen --at." if asked.only else "."),
        )
    cells = _settled([_cell(a, b, *pair, asked) for pair in found.both], asked.settings)
    conditions = tuple(one.judge(cells, rated) for one in asked.conditions)
    told = answer(cells, rated, asked.settings)
    return Comparison(
        tool=f"nameplate {__version__}",
        answer=told,
        a=_side(a, loads_a),
        b=_side(b, loads_b),
        terms=structs.replace(asked.settings, methods=_methods(cells)),
        differences=changed,
        cells=cells,
        only_a=tuple(load.first.name for load in found.only_a),
        only_b=tuple(load.first.name for load in found.only_b),
        rated=rated,
        conditions=conditions,
        notes=(*_unused(changed, asked.vary), *notes_of(a, b, cells, rated)),
        exit_code=exit_code(conditions, answered=is_answered(told, cells, rated)),
    )


def _differences(a: Side, b: Side, found: Matched, vary: Sequence[str]) -> tuple[Difference, ...]:
    changed: list[Difference] = []
    foreign = a.foreign or b.foreign
    if not foreign:
        terms_a, terms_b = ([source.terms for source in side.sources] for side in (a, b))
        changed += differences(terms_a, terms_b, vary)
    for one, other in found.both:
        held = [[cell.terms for _, cell in load.cells] for load in (one, other)]
        if foreign:
            runs = [[run for trial in load.trials if (run := trial.member.run)] for load in (one, other)]
            of_load: Iterable[Difference] = ()
            if all(runs):
                of_load = run_differences(runs[0], runs[1], vary, one.first.name)
        else:
            of_load = differences(held[0], held[1], vary, one.first.name)
        # One change of plan shows in every load: it is told once, of the first.
        said = {(known.name, known.a, known.b) for known in changed}
        changed += [new for new in of_load if (new.name, new.a, new.b) not in said]
    return tuple(changed)


def _cell(a: Side, b: Side, one: Load, other: Load, asked: Asked) -> CellCompared:
    trials_a, trials_b = one.trials, other.trials
    apart: dict[str, NotCompared] = {}
    if a.foreign or b.foreign:
        trials_a, trials_b = _as_runs(trials_a), _as_runs(trials_b)
        runs = [[run for trial in side if (run := trial.member.run)] for side in (trials_a, trials_b)]
        apart |= measures_apart(runs[0], runs[1]) if all(runs) else {}
    apart |= _meant_otherwise(trials_a, trials_b)
    partners = pairs(trials_a, trials_b) if min(len(trials_a), len(trials_b)) else None
    if partners is not None:
        trials_b = partners
    by_result = partners is None and _by_result(trials_a, trials_b, asked.settings)
    gated = _gated(a, b, one, asked)
    measures = []
    for statistic in _wanted(trials_a, trials_b, (*gated, *_of_conditions(asked))):
        if statistic.measure in apart:
            continue
        samples = Samples(
            tuple(Drawn(trial.source, trial.member.observed[statistic]) for trial in trials_a),
            tuple(Drawn(trial.source, trial.member.observed[statistic]) for trial in trials_b),
            paired=partners is not None,
            by_result=by_result,
        )
        measures.append(compare_measure(statistic, samples, asked.settings, gated=statistic in gated))
    return CellCompared(
        cell=one.first.name
        if one.first.name == other.first.name
        else f"{one.first.name} -> {other.first.name}",
        group=one.first.group,
        trials_a=tuple(trial.member.key for trial in trials_a),
        trials_b=tuple(trial.member.key for trial in trials_b),
        paired=partners is not None,
        unit="result" if by_result else "trial",
        measures=tuple(measures),
        not_compared=tuple(apart.values()),
        notes=tuple(dict.fromkeys(cell.note for load in (one, other) for _, cell in load.cells if cell.note)),
    )


def _as_runs(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    return tuple(Trial(trial.source, by_its_run(trial.member)) for trial in trials)


def _meant_otherwise(a: Sequence[Trial], b: Sequence[Trial]) -> dict[str, NotCompared]:
    """Return the measures of matrices that mean something else on the other side."""
    found: dict[str, NotCompared] = {}
    held = [trial.member.meanings for trial in (*a, *b)]
    for name in sorted({name for meanings in held for name in meanings}):
        meant = list(dict.fromkeys(meanings.get(name, "as nameplate defines it") for meanings in held))
        if len(meant) > 1:
            found[name] = NotCompared(name, (" | ".join(meant),))
    return found


def _by_result(a: Sequence[Trial], b: Sequence[Trial], settings: Settings) -> bool:
    """Tell whether each side has results enough that they, and not their trials, are the sample."""
    counts = [len({trial.source for trial in side}) for side in (a, b)]
    return min(counts) >= settings.least_trials and any(
        count < len(side) for count, side in zip(counts, (a, b), strict=True)
    )


def _gated(a: Side, b: Side, load: Load, asked: Asked) -> tuple[Statistic, ...]:
    """Return what the comparison is about: what was named, and the promises, or the headline where there are none."""
    named_ones = (*asked.gates, *_of_conditions(asked))
    if load.first.group == "baseline":
        # One request at a time is no load that a promise is about, and one trial by plan: it has its own two rates.
        return tuple(dict.fromkeys(one for one in named_ones if one.measure in ALONE))
    promises = (promise for side in (a, b) for source in side.sources for promise in source.promises)
    if every := tuple(dict.fromkeys((*named_ones, *promises))):
        return every
    headline = HEADLINE_OF_CELLS if load.first.group in _MATRIX else HEADLINE
    return tuple(map(Statistic.parse, headline))


def _of_conditions(asked: Asked) -> tuple[Statistic, ...]:
    return tuple(one.statistic for one in asked.conditions)


def _wanted(a: Sequence[Trial], b: Sequence[Trial], named_ones: Sequence[Statistic]) -> tuple[Statistic, ...]:
    """Return what every trial of both sides has, of that what is usual or was named; what was named comes first."""
    trials = (*a, *b)
    if not a or not b:
        return ()
    first = trials[0].member.observed
    common = [one for one in first if all(one in trial.member.observed for trial in trials)]
    usual = [
        one for one in common if not one.percentile or one.percentile in USUAL_OF.get(one.measure, USUAL)
    ]
    return tuple(dict.fromkeys((*(one for one in named_ones if one in common), *usual)))


def _settled(cells: Sequence[CellCompared], settings: Settings) -> tuple[CellCompared, ...]:
    """Settle the measures of all loads together: they are all looked at for a difference."""
    every = iter(settle([one for cell in cells for one in cell.measures], settings))
    return tuple(structs.replace(cell, measures=tuple(next(every) for _ in cell.measures)) for cell in cells)


def _methods(cells: Sequence[CellCompared]) -> tuple[str, ...]:
    ways = {cell.paired for cell in cells if any(one.p_value is not None for one in cell.measures)}
    return tuple(PAIRED if way else WELCH for way in sorted(ways)) + ((SEVERAL,) if ways else ())


def _unused(changed: Sequence[Difference], vary: Sequence[str]) -> Iterable[str]:
    for pattern in vary:
        if not any(named(one.name, pattern) for one in changed):
            yield f"--vary {pattern} names nothing that differs."


def _side(side: Side, loads: Sequence[Load]) -> SideDocument:
    sessions = {trial.member.session for load in loads for trial in load.trials}
    return SideDocument(
        path=side.path,
        results=tuple(
            ResultSide(
                path=source.path,
                kind=source.kind,
                tool=source.tool,
                cells=len(source.cells),
                trials=sum(len(cell.members) for cell in source.cells),
            )
            for source in side.sources
        ),
        sessions=None if None in sessions or not sessions else len(sessions),
        left_out=tuple(
            f"{cell.name}: {said}"
            for source in side.sources
            for cell in source.cells
            for said in cell.left_out
        ),
        notes=tuple(dict.fromkeys(note for source in side.sources for note in source.notes)),
    )


def _options(refused: Sequence[Difference]) -> list[str]:
    """Return the options that would allow all of it; several terms of one family by a wildcard."""
    names = list(dict.fromkeys(one.name for one in refused if one.name != "contradiction"))
    families = [name.partition(".")[0] for name in names]
    found = (
        f"--vary '{family}.*'" if families.count(family) > _NAMED and name != family else f"--vary {name}"
        for name, family in zip(names, families, strict=True)
    )
    return list(dict.fromkeys(found))


def _told(one: Difference) -> str:
    if one.name == "contradiction":
        return one.a[0]
    where = f" ({one.where})" if one.where else ""
    return f"{one.name}{where} is {' and '.join(one.a)} in A, {' and '.join(one.b)} in B"


def _names(loads: Sequence[Load]) -> str:
    said = [load.first.name for load in loads]
    return "; ".join(said[:_SAID]) + (f" and {len(said) - _SAID} more" if len(said) > _SAID else "") or "none"
