"""The curve study against scripted servers: levels, replacements, failures, the climb to an unknown limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan, border_width
from nameplate.contract.errors import ClientError, Interrupted, PromptRefused, ServerError
from nameplate.contract.identity import Fact
from nameplate.contract.limits import ServerLimits
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.measure.curve_builder import AboutCurve, build_curve
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.result import TrialResult
from nameplate.measure.tests.trials import contract
from nameplate.studies.curve import Beside, Outcome, curve
from nameplate.studies.runner import run
from nameplate.studies.speed import Left, Telling
from nameplate.studies.tests.scripted import IDENTITY, Answer, result_of
from nameplate.verdict.curve_level import LevelStatus

Script = Callable[[TrialPlan], "Answer | TrialResult"]
LOADS = CurvePlan(concurrencies=(1, 2, 4))
UNKNOWN = CurvePlan(inputs=(8192,), to_limit=True, output_tokens=64)


def refused(plan: TrialPlan) -> TrialResult:
    """Return the result of a server that answered 400 to every request."""
    base = result_of(plan, "invalid")
    facts = structs.replace(base.facts, sent=3, ok=0, failed=3, bad_requests=3, http_statuses={"400": 3})
    return structs.replace(base, facts=facts)


class Server:
    """Run a curve study against a script, and keep what was run, said and found."""

    def __init__(self, script: Script = lambda _: "pass") -> None:
        self._script = script
        self.ran: list[TrialPlan] = []
        self.results: list[TrialResult] = []
        self.said: list[str] = []
        self.left: list[Left] = []
        self.beside = Beside()
        self.contract: Contract = contract()
        self.limit: int | None = None

    def __call__(self, plan: TrialPlan) -> TrialResult:
        self.ran.append(plan)
        answer = self._script(plan)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, TrialResult) else result_of(plan, answer)

    def go(
        self,
        plan: CurvePlan,
        *,
        rules: Rules | None = None,
        limit: int | None = None,
        max_s: float | None = None,
        **more: object,
    ) -> Outcome:
        shapes = () if plan.kind == "input" else (Shape(1000, 11),)
        held = structs.replace(contract(rules=rules or Rules(quiet_s=0)), slos=(), shapes=shapes, curve=plan)
        self.contract = held
        self.limit = limit
        study = curve(
            held,
            ServerLimits(context_tokens=limit),
            Telling(self.said.append, self.left.append),
            self.beside,
            max_s,
        )
        return run(study, self, on_trial=lambda _p, r, _: self.results.append(r), **more)  # type: ignore[arg-type]

    def result(self) -> CurveResult:
        facts = {} if self.limit is None else {"context_limit_tokens": Fact(self.limit, "test")}
        about = AboutCurve(identity=IDENTITY.with_facts(facts), refused_probes=self.beside.refused_probes)
        return build_curve(self.contract, about, self.results, self.beside.unrun)

    @property
    def keys(self) -> list[str]:
        return [plan.key for plan in self.ran]

    @property
    def statuses(self) -> list[str]:
        return [row.status.value for row in self.result().rows]


def test_every_level_is_run_in_order_as_often_as_asked() -> None:
    """Levels ascend, each has its trials, and the numbers of requests are twice the protocol's."""
    server = Server()
    outcome = server.go(CurvePlan(concurrencies=(32, 1), repeat=2))
    assert [(plan.concurrency, plan.requests) for plan in server.ran] == [(1, 64)] * 2 + [(32, 256)] * 2
    assert len(set(server.keys)) == 4
    assert outcome.exit_code == 0 and server.statuses == ["valid", "valid"]


def test_rates_have_their_own_arrivals_and_counts() -> None:
    """A rate's trial lasts a minute or 64 requests, and repeated trials have other arrivals."""
    from nameplate.contract.arrivals import ArrivalPlan

    server = Server()
    server.go(CurvePlan(rates=(0.5, 2.0), arrivals=ArrivalPlan(rate=0.5, outstanding_limit=99), repeat=2))
    assert [plan.requests for plan in server.ran] == [64, 64, 120, 120]
    seeds = [plan.arrivals.seed for plan in server.ran if plan.arrivals]
    assert seeds[0] != seeds[1] and seeds[0] == seeds[2]
    assert {plan.concurrency for plan in server.ran} == {99}


def test_levels_after_one_client_know_what_it_waited() -> None:
    """C=1 is the cold baseline of the later levels; without it, and for rates, there is none."""
    server = Server()
    server.go(structs.replace(LOADS, repeat=2))
    alone = server.results[1].measurement.latencies.whole.ttft.low_median_high
    assert alone is not None
    assert [plan.alone_ttft_ns for plan in server.ran] == [None, None, alone, alone, alone, alone]
    other = Server()
    other.go(CurvePlan(concurrencies=(2, 4)))
    assert {plan.alone_ttft_ns for plan in other.ran} == {None}


def test_a_level_that_fails_is_a_result() -> None:
    """A failed level has its status, the next ones are measured, and the curve is answered."""
    server = Server(lambda plan: "fail" if plan.concurrency == 2 else "pass")
    outcome = server.go(structs.replace(LOADS, repeat=2))
    assert server.statuses == ["valid", "failed", "valid"] and outcome.exit_code == 0
    assert [plan.concurrency for plan in server.ran] == [1, 1, 2, 4, 4]
    row = server.result().rows[1]
    assert row.points == () and row.reason == "scripted fail"


def test_an_invalid_trial_is_replaced_twice() -> None:
    """An invalid trial is run again with new prompts, at most twice; then its level is invalid."""
    server = Server(lambda plan: "invalid" if plan.concurrency == 2 else "pass")
    outcome = server.go(LOADS)
    assert [plan.attempt for plan in server.ran] == [0, 0, 1, 2, 0]
    assert server.statuses == ["valid", "invalid", "valid"] and outcome.exit_code == 4
    once = Server(lambda plan: "invalid" if plan.concurrency == 2 and not plan.attempt else "pass")
    assert once.go(LOADS).exit_code == 0
    assert len(once.result().rows[1].trials) == 2 and len(once.result().rows[1].points) == 1


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ServerError("gone."), 5, "lost"),
        (Interrupted("Interrupted."), 130, "interrupted"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ClientError("no room."), 4, "interrupted"),
    ],
)
def test_what_ends_a_study(error: BaseException, code: int, status: str) -> None:
    """A lost server, a person and a fault of ours end the study; what was measured stays, the rest says why not."""
    server = Server(lambda plan: error if plan.concurrency == 2 else "pass")
    outcome = server.go(LOADS)
    assert outcome.exit_code == code
    assert server.statuses == ["valid", status, "interrupted"]
    assert server.result().rows[2].reason.startswith("not run: ")


def test_a_restart_during_a_trial_is_a_loss() -> None:
    """A server that restarted while requests broke off was lost, though it answers again."""

    def script(plan: TrialPlan) -> Answer | TrialResult:
        if plan.concurrency != 2:
            return "pass"
        result = result_of(plan, "invalid")
        facts = structs.replace(
            result.facts, counters_fell=("output_tokens_total",), load_failures={"reset": 2}
        )
        return structs.replace(result, facts=facts)

    server = Server(script)
    assert server.go(LOADS).exit_code == 5
    assert server.statuses == ["valid", "lost", "interrupted"]


def test_a_time_budget_skips_what_it_leaves_no_room_for() -> None:
    """Levels that the time does not reach are skipped, and the study is incomplete."""
    server = Server()
    outcome = server.go(LOADS, max_s=0.5)
    assert server.statuses == ["valid", "skipped", "skipped"] and outcome.exit_code == 3
    assert "s are needed" in server.result().rows[1].reason


def test_time_left_is_told_and_falls() -> None:
    """The study tells how many levels are done; before anything was measured the time is a lower bound."""
    server = Server()
    server.go(LOADS)
    assert [state.done for state in server.left] == [0, 1, 2, 3]
    assert [state.at_least for state in server.left] == [True, False, False, False]
    assert server.left[-1].left_s == 0


def test_a_climb_to_a_known_limit() -> None:
    """The limit is what the context leaves beside the output; what lies beyond it is not sent."""
    server = Server()
    plan = CurvePlan(inputs=(1024, 32_768), to_limit=True, output_tokens=64)
    outcome = server.go(plan, limit=16_384)
    assert [plan.shape.input_tokens for plan in server.ran] == [1024, 16_384 - 64 - 16]
    assert [plan.concurrency for plan in server.ran] == [1, 1]
    assert server.statuses == ["valid", "valid", "over_limit"] and outcome.exit_code == 0
    border = server.result().border
    assert border is not None and border.source == "told" and border.context_tokens == 16_384


@pytest.mark.parametrize("limit", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize("early", [False, True])
def test_a_climb_to_an_unknown_limit(limit: int, early: bool) -> None:
    """By doubling and bisection the border is found, whether a trial or the count before it is refused."""

    def script(plan: TrialPlan) -> Answer | TrialResult:
        if plan.shape.input_tokens + plan.shape.output_tokens <= limit:
            return "pass"
        return PromptRefused("too long.") if early else refused(plan)

    server = Server(script)
    assert server.go(UNKNOWN).exit_code == 0
    border = server.result().border
    assert border is not None and border.source == "found"
    accepted, beyond = border.accepted_tokens, border.refused_tokens
    assert accepted is not None and beyond is not None
    assert accepted <= limit - 64 < beyond <= accepted + border_width(accepted)
    # The longest that was taken is measured as a step of its own, not only probed.
    rows = {int(row.load): row for row in server.result().rows}
    assert rows[accepted].status is LevelStatus.valid and rows[accepted].points
    assert len([plan for plan in server.ran if plan.role == "locator"]) <= 8
    assert len(server.ran) < 24


def test_a_server_that_takes_everything_is_climbed_to_a_bound() -> None:
    """A server without a limit is climbed to lengths beyond any context, and no further."""
    server = Server()
    assert server.go(UNKNOWN).exit_code == 0
    assert max(plan.shape.input_tokens for plan in server.ran) == 1 << 24
    assert server.result().border is None


def test_a_climb_stops_at_a_length_that_breaks_the_server() -> None:
    """Doubling does not go past a length that fails for another reason than its length."""
    server = Server(lambda plan: "fail" if plan.shape.input_tokens > 16_384 else "pass")
    assert server.go(UNKNOWN).exit_code == 0
    assert server.statuses == ["valid", "valid", "failed"]


def test_refused_probes_and_refused_levels_are_told_apart_from_losses() -> None:
    """A prompt that is refused is its step's status with the server's words, and the study goes on."""
    server = Server(
        lambda plan: PromptRefused("context is 9000.") if plan.shape.input_tokens == 16_384 else "pass"
    )
    outcome = server.go(CurvePlan(inputs=(8192, 16_384, 32_768), output_tokens=64))
    assert server.statuses == ["valid", "refused", "valid"] and outcome.exit_code == 0
    assert server.result().rows[1].reason == "context is 9000."


def test_only_the_first_step_of_a_climb_is_warmed_up() -> None:
    """Long prompts are dear: what warms the server up is sent once."""
    server = Server()
    server.go(CurvePlan(inputs=(1024, 2048), output_tokens=64), rules=Rules(warmup=2, quiet_s=5))
    assert [(plan.warmup, plan.requests, plan.quiet_s) for plan in server.ran] == [(2, 3, 0.0), (0, 3, 5.0)]


def test_sealed_trials_stand_for_themselves() -> None:
    """A study that goes on runs only what is missing, and decides the same."""
    first = Server(lambda plan: ServerError("gone.") if plan.concurrency == 4 else "pass")
    first.go(LOADS)
    again = Server()
    sealed = {result.plan.key: result for result in first.results}
    assert again.go(LOADS, sealed=sealed, spoiled=("1000-11.c4.t1",)).exit_code == 0
    assert again.keys == ["1000-11.c4.t1.retry1"]
    assert again.statuses == ["valid"] * 3
