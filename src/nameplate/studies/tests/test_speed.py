"""The speed study, driven by scripts: its order, its retries, its budget, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.errors import (
    CallerError,
    ClientError,
    EvidenceError,
    Interrupted,
    PromptRefused,
    ServerError,
)
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, MixedRule, planned_cells, telling_order
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_builder import About, build_speed
from nameplate.measure.speed_result import SpeedResult
from nameplate.measure.tests.trials import S, identity
from nameplate.studies.resume import leftover
from nameplate.studies.speed import RETRIES, Outcome
from nameplate.studies.tests.scripted_speed import (
    KI,
    LIMITS,
    Answer,
    Script,
    matrix_of,
    speed_contract,
    speed_result,
    ttft_ns_of,
)
from nameplate.verdict.cell import CellStatus

CONTEXTS = st.sets(
    st.sampled_from([64, 100, KI, 1025, 5000, 8 * KI, 50_000, 131_056]), min_size=1, max_size=5
)
MIXED = MixedRule(arrival_tokens=8 * KI, streams=4)


def rows_of(script: Script, matrix: Matrix, outcome: Outcome, limits: ServerLimits = LIMITS) -> SpeedResult:
    """Return the result that the study's trials come to."""
    facts = {
        "context_limit_tokens": limits.context_tokens,
        "kv_tokens": limits.kv_tokens,
        "running_limit_effective": limits.running,
    }
    about = About(tool="t", identity=identity(**{n: v for n, v in facts.items() if v is not None}))
    return build_speed(
        speed_contract(matrix), about, script.results, script.unrun, exit_code=outcome.exit_code
    )


def test_what_tells_most_comes_first() -> None:
    """After the warm-up at the largest context: prefills, the column of one user, the first row, the rest."""
    script = Script()
    outcome = script.go(matrix_of((KI, 2 * KI, 4 * KI), (1, 2, 4)))
    assert script.keys == [
        "warmup.4K",
        "prefill.1K.c1", "prefill.2K.c1", "prefill.4K.c1",
        "decode.1K.c1", "decode.2K.c1", "decode.4K.c1",
        "decode.1K.c2", "decode.1K.c4",
        "decode.2K.c2", "decode.2K.c4", "decode.4K.c2", "decode.4K.c4",
    ]  # fmt: skip
    assert outcome.exit_code == 0 and not outcome.unrun


@given(
    st.lists(st.integers(1, 1 << 20), max_size=6),
    st.lists(st.integers(1, 512), max_size=6),
)
def test_the_order_holds_every_pair_once(contexts: list[int], concurrencies: list[int]) -> None:
    """Whatever lists are given, each pair of them is in the order exactly once."""
    order = telling_order(contexts, concurrencies)
    assert len(order) == len(set(order))
    assert set(order) == {(k, c) for k in contexts for c in concurrencies}


@settings(deadline=None, max_examples=40)
@given(
    CONTEXTS,
    st.sets(st.integers(1, 512), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 100)),
)
def test_every_cell_has_a_name_of_its_own(
    contexts: set[int], concurrencies: set[int], burst: bool, mixed: bool, requests: int | None
) -> None:
    """No two planned cells of a study share a name, and each trial's key is used once."""
    matrix = matrix_of(
        tuple(contexts), tuple(concurrencies), burst=burst, requests=requests, mixed=MIXED if mixed else None
    )
    names = [cell.name for cell in planned_cells(matrix)]
    assert len(names) == len(set(names))
    script = Script()
    outcome = script.go(matrix)
    assert len(script.keys) == len(set(script.keys))
    rows = rows_of(script, matrix, outcome).rows
    assert len(rows) == len(names)
    assert all(bool(row.trials) == (row.status is CellStatus.valid) for row in rows)


@pytest.mark.parametrize("status", [CellStatus.looped, CellStatus.client_limited, CellStatus.extra_traffic])
def test_a_spoiled_cell_is_tried_once_more_with_new_prompts(status: CellStatus) -> None:
    """It runs as its next attempt; the second counts, both are in its row, and a person hears of it."""
    matrix = matrix_of()
    script = Script(lambda plan: status if plan.key == "decode.1K.c4" else CellStatus.valid)
    outcome = script.go(matrix)
    assert [key for key in script.keys if key.startswith("decode.1K.c4")] == [
        "decode.1K.c4",
        "decode.1K.c4.retry1",
    ]
    row = next(row for row in rows_of(script, matrix, outcome).rows if row.trials[0] == "decode.1K.c4")
    assert row.status is CellStatus.valid and row.trials == ("decode.1K.c4", "decode.1K.c4.retry1")
    assert any("decode 1K x 4" in said and "tried once more" in said for said in script.said)


@pytest.mark.parametrize("status", list(CellStatus))
def test_no_cell_is_tried_a_third_time(status: CellStatus) -> None:
    """A status that repeats itself stands after its retries, and the study goes on to every cell."""
    script = Script(lambda plan: status if plan.role == "decode" else CellStatus.valid)
    outcome = script.go(matrix_of())
    tries = [plan for plan in script.ran if plan.name == "decode.1K.c1"]
    assert len(tries) == 1 + RETRIES.get(status, 0)
    assert {plan.name for plan in script.ran if plan.role == "decode"} == {
        "decode.1K.c1", "decode.1K.c4", "decode.2K.c1", "decode.2K.c4",
    }  # fmt: skip
    assert outcome.exit_code == 0  # the prefills are valid


def test_all_cells_void_is_no_answer() -> None:
    """Where every cell that ran is void the study exits with 4."""
    script = Script(lambda _: CellStatus.not_ready)
    assert script.go(matrix_of()).exit_code == 4


def test_cells_that_cannot_be_run_are_never_asked_for() -> None:
    """Over the KV pool, the context or the running limit: no plan, a status with its arithmetic, and a row."""
    limits = ServerLimits(context_tokens=8 * KI, running=8, kv_tokens=10_000, block_tokens=16)
    matrix = matrix_of((KI, 4 * KI, 16 * KI), (1, 4, 16))
    script = Script()
    outcome = script.go(matrix, limits)
    rows = {(r.kind, r.label, r.concurrency): r for r in rows_of(script, matrix, outcome, limits).rows}
    assert len(rows) == 3 + 9
    assert rows["decode", "4K", 4].status is CellStatus.over_capacity
    assert "4 x 4,096 unique = 16,384" in rows["decode", "4K", 4].reason
    assert rows["decode", "1K", 16].status is CellStatus.over_limit
    assert rows["decode", "16K", 1].status is rows["prefill", "16K", 1].status is CellStatus.over_limit
    assert {plan.name for plan in script.ran} == {
        "warmup.4K", "prefill.1K.c1", "prefill.4K.c1", "decode.1K.c1", "decode.1K.c4", "decode.4K.c1",
    }  # fmt: skip
    assert all(rows[key].values is None for key in rows if rows[key].status is not CellStatus.valid)
    assert outcome.exit_code == 0


def test_a_matrix_that_cannot_be_run_at_all_asks_for_nothing() -> None:
    """Every cell has its status, not even a warm-up is sent, and the question is answered."""
    script = Script()
    outcome = script.go(matrix_of((64 * KI,), (1,)), ServerLimits(context_tokens=KI))
    assert not script.ran and outcome.exit_code == 0
    assert {verdict.status for verdict in script.unrun.values()} == {CellStatus.over_limit}


def test_outputs_beyond_the_pool_are_warned_of_and_run() -> None:
    """Prompts that fit where their outputs may not are run, with a warning of preemption before and in the row."""
    limits = ServerLimits(context_tokens=8 * KI, kv_tokens=5_000)
    matrix = matrix_of((KI,), (4,), prefill_contexts=())
    script = Script()
    outcome = script.go(matrix, limits)
    (row,) = rows_of(script, matrix, outcome, limits).rows
    assert row.status is CellStatus.valid
    assert "preemption" in " ".join(row.notes) and any("preemption" in said for said in script.said)


def test_the_time_budget_trims_openly() -> None:
    """Cells that it leaves no room for are skipped with the arithmetic; what tells most was run."""
    matrix = matrix_of(time_budget_s=100.0)
    script = Script()
    outcome = script.go(matrix)
    result = rows_of(script, matrix, outcome)
    skipped = [row for row in result.rows if row.status is CellStatus.skipped]
    assert skipped and skipped == list(result.rows[-len(skipped) :])
    assert all("of the time budget of 100 s are left" in row.reason for row in skipped)
    assert sum(20 for _ in script.ran) <= 100
    assert any("is skipped" in said for said in script.said)
    assert outcome.exit_code == 0


def test_a_budget_without_room_for_any_cell_is_inconclusive() -> None:
    """Where all cells were skipped nothing is answered: exit 3."""
    script = Script()
    outcome = script.go(matrix_of(time_budget_s=1.0))
    assert outcome.exit_code == 3
    assert {verdict.status for verdict in outcome.unrun.values()} == {CellStatus.skipped}


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted by a person"),
        (Interrupted("stopped"), 130, "stopped"),
        (ServerError("no answer"), 5, "the server was lost: no answer"),
        (ClientError("the disk is full"), 4, "the disk is full"),
        (EvidenceError("torn"), 4, "torn"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 4, 6])
def test_whatever_ends_a_study_every_cell_has_a_status(
    fault: BaseException, code: int, words: str, at: int
) -> None:
    """Cells before it keep theirs; the one that ran and those after it are interrupted, with the reason."""
    count = iter(range(99))
    matrix = matrix_of()
    script = Script(lambda _: fault if next(count) == at else CellStatus.valid)
    outcome = script.go(matrix)
    assert outcome.exit_code == code and words in outcome.reason
    result = rows_of(script, matrix, outcome)
    assert [row.status for row in result.rows].count(CellStatus.valid) == max(0, at - 1)
    broken = [row for row in result.rows if row.status is not CellStatus.valid]
    assert {row.status for row in broken} == {CellStatus.interrupted}
    assert all(words in row.reason and row.values is None for row in broken)
    begins = ["not finished" if at else "not run"] + ["not run"] * (len(broken) - 1)
    assert [row.reason.partition(":")[0] for row in broken] == begins


def test_an_interrupted_trial_ends_the_study() -> None:
    """A cell that a person cut short is interrupted, with what was measured discarded, and no other begins."""
    matrix = matrix_of()

    class Cut(Script):
        def __call__(self, plan: TrialPlan) -> TrialResult:
            self.ran.append(plan)
            cut = plan.name == "decode.2K.c1"
            return speed_result(plan, CellStatus.interrupted if cut else CellStatus.valid, interrupted=cut)

    script = Cut()
    outcome = script.go(matrix)
    assert outcome.exit_code == 130 and script.keys[-1] == "decode.2K.c1"
    statuses = [row.status.value for row in rows_of(script, matrix, outcome).rows]
    assert statuses == ["valid"] * 3 + ["interrupted"] * 3


def test_the_callers_mistakes_are_the_callers() -> None:
    """A mistake of the caller is no status: it is raised."""
    with pytest.raises(CallerError):
        Script(lambda _: CallerError("no")).go(matrix_of())


def test_a_changed_server_ends_the_study() -> None:
    """Identity is held against the first trial's; cells of different servers are no matrix: exit 4."""

    class Restarted(Script):
        def __call__(self, plan: TrialPlan) -> TrialResult:
            self.ran.append(plan)
            start = 1.0 if plan.role != "decode" else 2.0
            return speed_result(plan, before=identity(engine="vllm", model="m", process_start_time_s=start))

    script = Restarted()
    outcome = script.go(matrix_of())
    assert outcome.exit_code == 4 and "process_start_time_s changed" in outcome.reason
    assert script.keys[-1] == "decode.1K.c1"


def test_a_refused_length_ends_its_cells_and_no_more() -> None:
    """A context that the server takes no prompt of is over its limit; the warm-up is the next shorter one."""

    def answer(plan: TrialPlan) -> Answer:
        refused = plan.shape.input_tokens == 4 * KI
        return PromptRefused("the context holds 3,000") if refused else CellStatus.valid

    matrix = matrix_of((KI, 2 * KI, 4 * KI), (1, 4))
    script = Script(answer)
    outcome = script.go(matrix, ServerLimits())
    assert script.keys[:2] == ["warmup.4K", "warmup.2K"]
    rows = rows_of(script, matrix, outcome, ServerLimits()).rows
    assert {row.context_tokens for row in rows if row.status is CellStatus.over_limit} == {4 * KI}
    assert all(row.status is CellStatus.valid for row in rows if row.context_tokens != 4 * KI)
    assert outcome.exit_code == 0


@pytest.mark.parametrize(("measured", "alone"), [((), True), ((8 * KI,), False), ((KI,), True)])
def test_the_long_prompt_alone_is_measured_where_nothing_else_did(
    measured: tuple[int, ...], alone: bool
) -> None:
    """A mixed cell needs prefill samples at its context; where the matrix has them it asks for none."""
    matrix = matrix_of((KI,), (1,), prefill_contexts=measured, mixed=MIXED)
    script = Script()
    script.go(matrix)
    assert ("alone.8K" in script.keys) == alone
    assert script.keys[-1] == "mixed.8K.c4"
    if alone:
        assert script.keys[-2] == "alone.8K"


def test_a_void_prefill_does_not_stand_for_the_long_prompt_alone() -> None:
    """Where the prefill cell at the arrival's length is void, the mixed cell measures its own."""
    matrix = matrix_of((8 * KI,), (1,), mixed=MIXED)
    script = Script(
        lambda plan: CellStatus.server_error if plan.name.startswith("prefill") else CellStatus.valid
    )
    script.go(matrix)
    assert "alone.8K" in script.keys


def test_the_estimate_falls_and_is_never_negative() -> None:
    """Once prefill is known each cell that ends makes the rest shorter; nothing is left at the end."""
    script = Script()
    script.go(matrix_of((KI, 2 * KI), (1, 4), burst=True, mixed=MIXED))
    assert script.left[0].at_least and not script.left[-1].at_least
    known = [left for left in script.left if not left.at_least]
    assert all(a.left_s >= b.left_s >= 0 for a, b in pairwise(known))
    assert (known[-1].left_s, known[-1].done) == (0, known[-1].of)
    assert [left.done for left in script.left] == sorted(left.done for left in script.left)


@settings(deadline=None, max_examples=40)
@given(
    CONTEXTS,
    st.sets(st.integers(1, 512), min_size=1, max_size=4),
    st.one_of(st.none(), st.floats(0.001, 10_000)),
    st.one_of(st.none(), st.integers(1, 100)),
    st.floats(0, 100),
)
def test_no_estimate_is_negative_or_endless(
    contexts: set[int], concurrencies: set[int], budget_s: float | None, requests: int | None, unique: float
) -> None:
    """Whatever is asked for, what is left is a finite time, within the budget where there is one."""
    script = Script()
    script.go(
        matrix_of(
            tuple(contexts), tuple(concurrencies),
            time_budget_s=budget_s, requests=requests, unique_percent=unique, burst=True,
        )
    )  # fmt: skip
    assert all(0 <= left.left_s < 1e9 for left in script.left)
    assert script.left[-1].left_s == 0
    if budget_s is not None:
        assert all(left.left_s <= budget_s for left in script.left)


def test_a_predicted_miss_of_the_ready_timeout_is_said() -> None:
    """A ramp that takes longer than --ready-timeout is told before the cell starts, and the cell runs all the same."""
    # Sixteen prompts of 2,048 tokens take 16 x 0.2 s, and three seconds of stability.
    matrix = matrix_of((2 * KI,), (1, 16), ready_timeout_ns=5 * S)
    script = Script()
    script.go(matrix)
    assert [said for said in script.said if "hardly be ready" in said] == [
        "decode 2K x 16 will hardly be ready: its prompts take some 6 s, and --ready-timeout is 5 s"
    ]
    assert script.keys[-1] == "decode.2K.c16"
    assert all(plan.hold.ready_ns == 5 * S for plan in script.ran if plan.hold is not None)


def test_a_counted_cell_waits_for_no_readiness() -> None:
    """With --requests there is no ramp to miss, and no hold."""
    script = Script()
    script.go(matrix_of((2 * KI,), (1, 16), ready_timeout_ns=5 * S, requests=8))
    assert not any("hardly" in said for said in script.said)
    decodes = [plan for plan in script.ran if plan.role == "decode"]
    assert [(plan.requests, plan.hold) for plan in decodes] == [(8, None), (16, None)]


def test_the_deadline_follows_from_the_measured_prefill() -> None:
    """Ready within C x cold TTFT x unique share, and the stable time, with the stated margin; an hour if unknown."""
    script = Script()
    script.go(matrix_of((2 * KI,), (4,), unique_percent=25.0))
    (plan,) = [plan for plan in script.ran if plan.hold is not None]
    assert plan.hold is not None
    expected = round(1.5 * (4 * ttft_ns_of(2 * KI) * 0.25 + 3 * S)) + 30 * S
    assert plan.hold.ready_ns == pytest.approx(expected, abs=2)
    assert plan.shared_tokens == 1536


def test_a_study_resumed_at_any_prefix_ends_the_same() -> None:
    """Whatever was sealed is not run again, and every cell has the status that it would have had."""

    def answer(plan: TrialPlan) -> Answer:
        return CellStatus.looped if plan.name == "decode.1K.c4" else CellStatus.valid

    matrix = matrix_of(mixed=MIXED, burst=True)
    whole = Script(answer)
    outcome = whole.go(matrix)
    expected = rows_of(whole, matrix, outcome)
    for cut in range(len(whole.results) + 1):
        left = leftover(whole.results[:cut], [])
        again = Script(answer)
        resumed = again.go(matrix, sealed=left.sealed, spoiled=left.spoiled)
        assert again.keys == whole.keys[cut:]
        assert rows_of(again, matrix, resumed) == expected


@pytest.mark.parametrize("status", [CellStatus.valid, CellStatus.looped])
def test_a_spoiled_attempt_is_no_try(status: CellStatus) -> None:
    """A cell that a kill cut short runs with new prompts, and has its full number of tries."""
    whole = Script()
    whole.go(matrix_of())
    at = whole.keys.index("decode.1K.c4")
    left = leftover(whole.results[:at], ["decode.1K.c4"])
    again = Script(lambda plan: status if plan.name == "decode.1K.c4" else CellStatus.valid)
    again.go(matrix_of(), sealed=left.sealed, spoiled=left.spoiled)
    keys = [key for key in again.keys if key.startswith("decode.1K.c4")]
    expected = ["decode.1K.c4.retry1", "decode.1K.c4.retry2"]
    assert keys == expected[: 1 + RETRIES.get(status, 0)]


def test_a_resumed_study_spends_the_same_budget() -> None:
    """Sealed trials count against the time budget: a resumed study skips the same cells."""
    matrix = matrix_of(time_budget_s=100.0)
    whole = Script()
    whole.go(matrix)
    for cut in range(len(whole.results) + 1):
        left = leftover(whole.results[:cut], [])
        again = Script()
        again.go(matrix, sealed=left.sealed, spoiled=left.spoiled)
        assert again.unrun == whole.unrun


@settings(deadline=None)
@given(st.lists(st.sampled_from(list(CellStatus)), min_size=16, max_size=16))
def test_whatever_cells_come_to_each_has_one_row(statuses: list[CellStatus]) -> None:
    """No sequence of statuses loses a cell, runs a key twice, or gives a rate to a cell that is not valid."""
    given_statuses: Callable[[], CellStatus] = iter(statuses * 2).__next__
    matrix = matrix_of(mixed=MIXED)
    script = Script(lambda _: given_statuses())
    outcome = script.go(matrix)
    result = rows_of(script, matrix, outcome)
    cells = [CellPlan(row.kind, row.context_tokens, row.concurrency) for row in result.rows]
    assert cells == list(planned_cells(matrix))
    assert len(script.keys) == len(set(script.keys))
    assert all((row.values is not None) == (row.status is CellStatus.valid) for row in result.rows)
    ran = [row for row in result.rows if row.trials]
    assert outcome.exit_code == (0 if any(row.values for row in ran) else 4)


def test_plans_of_a_matrix_fit_the_context() -> None:
    """Near the limit the output is what remains of it; a cell at the limit itself gets a few tokens."""
    limits = structs.replace(LIMITS, context_tokens=4 * KI)
    script = Script()
    script.go(matrix_of((2 * KI, 4 * KI - 16), (1,), output_tokens=4096), limits)
    decodes = {plan.shape.input_tokens: plan.shape.output_tokens for plan in script.ran if plan.hold}
    assert decodes == {2 * KI: 2 * KI, 4 * KI - 16: 16}
    assert all(plan.shape.input_tokens + plan.shape.output_tokens <= 4 * KI for plan in script.ran)
