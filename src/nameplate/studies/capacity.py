"""The study of a boundary, of concurrency or of rate: baseline, locate, confirm both sides, settle.

It decides and never does. What a level is, its contract says (`nameplate.contract.levels`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError
from nameplate.contract.levels import Levels, levels_of
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.studies.locator import located, next_probe
from nameplate.studies.plans import Planner
from nameplate.studies.search import Ended, Search
from nameplate.verdict.boundary import Boundary, Status, boundary, settle, wanted_levels
from nameplate.verdict.certainty import promising, require_confidence
from nameplate.verdict.expectation import Expectation, differences
from nameplate.verdict.shape import Decision, ShapeVerdict
from nameplate.verdict.trial import TrialStatus

Capacity = Generator[TrialPlan, TrialResult, ShapeVerdict]
Study = Generator[TrialPlan, TrialResult, tuple[ShapeVerdict, ...]]
Step = Generator[TrialPlan, TrialResult, None]


def study(
    contract: Contract,
    *,
    expectations: Mapping[Shape, Expectation] | None = None,
    decisions: list[Decision] | None = None,
) -> Study:
    """Find the boundary of every shape of the contract, one after the other.

    Once a person or a lost server interrupts, the shapes that were not begun get a verdict of their own that says
    so. `decisions` is appended to as decisions fall. CallerError for a contract that cannot be studied.
    """
    log = [] if decisions is None else decisions
    found: list[ShapeVerdict] = []
    for shape in contract.shapes:
        last = found[-1].boundary if found else None
        if last is not None and last.status is Status.interrupted:
            cut = boundary(Status.interrupted, {}, exit_code=last.exit_code)
            found.append(ShapeVerdict(shape, cut, (), None, "not begun: the study was interrupted before"))
            continue
        spent_s = sum(verdict.spent_s for verdict in found)
        expected = (expectations or {}).get(shape)
        found.append(
            (yield from capacity(contract, shape, expectation=expected, decisions=log, spent_s=spent_s))
        )
    return tuple(found)


def capacity(
    contract: Contract,
    shape: Shape,
    *,
    expectation: Expectation | None = None,
    decisions: list[Decision] | None = None,
    spent_s: float = 0.0,
) -> Capacity:
    """Find one shape's boundary by the protocol: yield the next trial's plan, take its result, return the verdict.

    Throw `Interrupted`, `KeyboardInterrupt`, `ServerError`, `ClientError` or `EvidenceError` into it instead of a
    result, and it returns what stands so far with the status that the cause has. CallerError, on the first step,
    for rules that allow no level or a contract without an SLO.
    """
    require_levels(contract)
    search = Search(contract, shape, [] if decisions is None else decisions, spent_s)
    try:
        yield from _baseline(search, expectation)
        candidate = yield from _locate(search)
        found = yield from _confirm(search, candidate)
    except Ended as end:
        return search.ended(end)
    return search.verdict(found, _reason(found, search.levels, contract.rules.confidence))


def require_levels(contract: Contract) -> None:
    """Refuse a contract that allows no level or promises nothing; CallerError, before anything is run."""
    rules = contract.rules
    if not contract.slos:
        raise CallerError("A boundary needs an SLO.", hint='Add one, e.g. --slo "ttft p95 < 10s".')
    if contract.rate is not None:
        contract.rate.require()
    elif not 1 <= rules.min_concurrency <= rules.max_concurrency:
        raise CallerError(
            f"No level lies between --min {rules.min_concurrency} and --max {rules.max_concurrency}.",
            hint="--min must be at least 1 and at most --max.",
        )
    requests = Planner(contract, contract.shapes[0]).confirmation(levels_of(contract).lowest, 1).requests
    require_confidence(rules, contract.slos, requests)


def _baseline(search: Search, expectation: Expectation | None) -> Step:
    result = yield from search.valid_trial(
        search.planner.baseline(), [], "baseline", "one user alone shows whether the right thing is measured"
    )
    latencies = result.measurement.latencies.whole
    correctness = result.measurement.correctness
    loops = correctness.loops
    search.planner = structs.replace(
        search.planner,
        baseline_e2e_ns=latencies.e2e.p50,
        alone_ttft_ns=latencies.ttft.low_median_high,
        outputs_must_differ=correctness.ok > 1 and correctness.outputs_unique,
        # A greedy toy model loops always; what one user alone gets is no fault of the load.
        outputs_must_not_loop=loops is not None and loops.judged > 0 and not loops.looped,
    )
    if expectation is None:
        return
    alone = result.measurement.single_user
    off = differences(
        expectation,
        latencies.ttft.p50,
        alone.prefill_nominal if alone else None,
        alone.decode if alone else None,
    )
    if off:
        raise Ended(Status.invalid, f"the baseline is not the expected one: {'; '.join(off)}")
    search.note("baseline", "the baseline is as expected", expectation.source, 1, result.plan.key)


def _locate(search: Search) -> Generator[TrialPlan, TrialResult, int]:
    levels = search.levels
    probes: dict[int, bool] = {}
    while True:
        level = next_probe(probes, levels, search.planner.baseline_e2e_ns)
        if level is None:
            break
        reason = _why_probe(probes, levels)
        result = yield from search.valid_trial(search.planner.locator(level), [], "locate", reason)
        # An inconclusive probe navigates like a fail: towards less traffic.
        passed = result.verdict.status == "pass"
        # Under a confidence the search is for a level that can be certified, which lies below one that passes.
        probes[level] = passed and (
            search.rules.confidence is None or promising(search.rules, result.verdict.slos)
        )
    candidate = located(probes, levels.lowest)
    why = "the highest level that passed while locating"
    search.note("locate", f"candidate {levels.name(candidate)}", why, candidate)
    return candidate


def _why_probe(probes: Mapping[int, bool], levels: Levels) -> str:
    if not probes:
        return "the locator starts here"
    if all(probes.values()):
        return "every level so far passed: go up"
    if not any(probes.values()):
        return "every level so far failed: go down"
    low = levels.name(max(level for level, passed in probes.items() if passed))
    high = levels.name(min(level for level, passed in probes.items() if not passed))
    return f"between {low}, which passed, and {high}, which did not"


def _confirm(search: Search, candidate: int) -> Generator[TrialPlan, TrialResult, Boundary]:
    levels = search.levels
    lowest, highest = levels.lowest, levels.highest
    wanted = tuple(level for level in (candidate, candidate + 1) if lowest <= level <= highest)
    reason = "the candidate and the level above it, by turns"
    while True:
        yield from _confirm_by_turns(search, wanted, reason)
        found = settle(search.settled, lowest, highest, zero_below=levels.zero_below)
        if found is not None:
            return found
        wanted = wanted_levels(search.settled, lowest, highest)
        said = ", ".join(f"{levels.name(level)} {status}" for level, status in sorted(search.settled.items()))
        reason = f"confirmed so far: {said}; a pass and a fail must stand on either side"


def _confirm_by_turns(search: Search, levels: tuple[int, ...], reason: str) -> Step:
    """Run the levels' trials by turns, so that drift of the server touches all of them alike."""
    for level in levels:
        search.confirmations.setdefault(level, [])
    while open_levels := [level for level in levels if search.level(level).status == "open"]:
        for level in open_levels:
            history: list[TrialStatus] = search.confirmations[level]
            plan = search.planner.confirmation(level, search.level(level).valid + 1)
            yield from search.valid_trial(plan, history, "confirm", reason)
            verdict = search.level(level)
            if verdict.status != "open":
                said = f"{search.levels.name(level)}: {verdict.status}"
                search.note("judge", said, ", ".join(verdict.trials), level)


def _reason(found: Boundary, levels: Levels, confidence: float | None) -> str:
    passing, failing = (
        "nothing" if level is None else levels.name(level) for level in (found.pass_level, found.fail_level)
    )
    if found.status is Status.open_above:
        return f"{passing}, the highest allowed level, passes in all confirmations"
    if found.status is Status.open_below:
        return f"{failing}, the lowest allowed level, fails"
    if found.status is Status.noisy:
        noisy = ", ".join(map(levels.name, found.noisy))
        if confidence is None:
            return f"the trials of {noisy} disagree"
        return f"{noisy} neither failed nor could be certified at {confidence * 100:.8g}%"
    if found.pass_level is None:
        return f"{failing} fails in all confirmations"
    return f"{passing} passes and {failing} fails in all confirmations"
