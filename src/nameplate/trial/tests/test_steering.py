"""A load is cancelled as soon as its failure is certain, and not before."""

from nameplate.client.order import Progress
from nameplate.contract.plan import TrialPlan
from nameplate.measure.tests.trials import SHAPE, S, contract, ok_row
from nameplate.trial.interruption import Interruption
from nameplate.trial.steering import Steering


def steering(*, stop_when_failed: bool = True) -> Steering:
    """Watch 64 measured requests after two warm-ups, under p95 TTFT below ten seconds."""
    plan = TrialPlan("t", "locator", SHAPE, 8, 64, 2, stop_when_failed=stop_when_failed)
    return Steering(contract(), plan, Interruption(), lambda _progress, _ttfts: None)


def report(t_ns: int, waiting: int = 0, **more: object) -> Progress:
    """Report at a time that `waiting` requests, sent at 0, have no output yet."""
    values: dict[str, object] = {"waiting_since": tuple((2 + number, 0) for number in range(waiting))}
    values.update(more)
    return Progress(t_ns=t_ns, stage="measured", started=8, ended=0, in_flight=8, **values)  # type: ignore[arg-type]


def test_waiting_alone_makes_failure_certain() -> None:
    """Of 64, the p95 is 0.85 of the fourth largest and 0.15 of the fifth: waiting alone can decide it."""
    assert steering()(report(10 * S, waiting=8)) == "cancel"
    watch = steering()
    assert watch(report(9 * S, waiting=8)) is None
    assert watch(report(11 * S, waiting=4)) is None
    assert not watch.stopped_early
    assert watch(report(12 * S, waiting=4)) == "cancel"
    assert watch.stopped_early


def test_first_outputs_that_came_too_late_count() -> None:
    """A known TTFT above the limit is remembered when later reports bring nothing of it."""
    watch = steering()
    assert watch(report(12 * S, first_outputs=((2, 11 * S), (3, 11 * S), (4, 11 * S)))) is None
    assert watch(report(13 * S)) is None
    assert watch(report(14 * S, first_outputs=((5, 12 * S), (6, 12 * S)))) == "cancel"


def test_rows_of_failed_requests_make_failure_certain() -> None:
    """A request that the server failed fails the trial whatever the others do."""
    watch = steering()
    row = ok_row(2, 0, outcome="http_error", http_status=503, first_output_ns=None, last_output_ns=None)
    assert watch(report(1 * S)) is None
    assert watch(report(1 * S, rows=(row,))) == "cancel"


def test_a_confirmation_is_never_cut_short() -> None:
    """Only a plan that may stop does."""
    watch = steering(stop_when_failed=False)
    assert watch(report(100 * S, waiting=8)) is None
    assert not watch.stopped_early
