"""A scripted server for speed studies: each plan's status comes from a script, and nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.cell import Cell
from nameplate.measure.prefill import Prefill, PrefillSample
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.speed_trial import SpeedTrial
from nameplate.measure.tests.trials import S, closed_loop, contract, evidence
from nameplate.statistics.percentile import summarise
from nameplate.studies.runner import run
from nameplate.studies.speed import Left, Outcome, Telling, speed
from nameplate.studies.tests.scripted import IDENTITY
from nameplate.verdict.cell import CellStatus, CellVerdict

KI = 1024
Answer = CellStatus | BaseException
# The scripted server reads a thousand tokens in this time.
PREFILL_NS = S // 10
LIMITS = ServerLimits(context_tokens=131_072, running=256, kv_tokens=4_194_304, block_tokens=16)


def matrix_of(
    contexts: tuple[int, ...] = (KI, 2 * KI), concurrencies: tuple[int, ...] = (1, 4), **more: object
) -> Matrix:
    """Return a small matrix of decode and prefill cells, with fields replaced by `more`."""
    values: dict[str, object] = {
        "prefill_contexts": contexts,
        "decode_contexts": contexts,
        "concurrencies": concurrencies,
        "window_ns": 10 * S,
        "output_tokens": 512,
    }
    return Matrix(**{**values, **more})  # type: ignore[arg-type]


def speed_contract(matrix: Matrix) -> Contract:
    return structs.replace(contract(), slos=(), shapes=(), speed=matrix)


@cache
def _template(ttft_ns: int, tokens: int) -> TrialResult:
    rows: list[RequestRow] = [
        structs.replace(row, prompt_tokens=tokens)
        for row in closed_loop(1, 10, warmup=0, ttft=lambda _: ttft_ns)
    ]
    return evaluate(evidence(rows, concurrency=1, requests=10))


@cache
def _cell(ttft_ns: int) -> Cell:
    empty = summarise([])
    return Cell(
        streams=1, window=None, ready_ns=None, ready_deadline_ns=None, itl=empty, chunk_gaps=empty, per_user=empty,
        ttft=summarise([ttft_ns]), second_output=empty, e2e_per_user=empty, warmth="cold", judged_streams=1,
    )  # fmt: skip


def ttft_ns_of(tokens: int) -> int:
    return PREFILL_NS * tokens // 1000


def speed_result(
    plan: TrialPlan,
    status: CellStatus = CellStatus.valid,
    *,
    elapsed_s: float = 20.0,
    interrupted: bool = False,
    before: Identity = IDENTITY,
) -> TrialResult:
    """Return a result of this plan and status, with the prefill of a server of known speed."""
    tokens = plan.shape.input_tokens
    ttft_ns = ttft_ns_of(tokens)
    prefill = None
    if plan.role == "prefill" and status is CellStatus.valid:
        samples = (PrefillSample(tokens, 0, ttft_ns),) * 3
        prefill = Prefill(samples=samples, n=3, median=tokens * 1e9 / ttft_ns, ttft_median_ns=float(ttft_ns))
    return structs.replace(
        _template(ttft_ns, tokens),
        plan=plan,
        speed=SpeedTrial(
            verdict=CellVerdict(status, f"scripted {status.value}"),
            prefill=prefill,
            cell=_cell(ttft_ns) if plan.hold is not None else None,
        ),
        interrupted=interrupted,
        started_ns=0,
        ended_ns=round(elapsed_s * 1e9),
        identity_before=before,
        identity_after=before,
    )


class Script:
    """Execute a speed study's plans by a script, and keep all that was run, said and left."""

    def __init__(self, answer: Callable[[TrialPlan], Answer] = lambda _: CellStatus.valid) -> None:
        self._answer = answer
        self.ran: list[TrialPlan] = []
        self.results: list[TrialResult] = []
        self.said: list[str] = []
        self.left: list[Left] = []
        self.unrun: dict[CellPlan, CellVerdict] = {}

    def __call__(self, plan: TrialPlan) -> TrialResult:
        self.ran.append(plan)
        answer = self._answer(plan)
        if isinstance(answer, BaseException):
            raise answer
        return speed_result(plan, answer)

    def go(self, matrix: Matrix, limits: ServerLimits = LIMITS, **more: object) -> Outcome:
        """Run a study of this matrix against the script."""
        study = speed(speed_contract(matrix), limits, Telling(self.said.append, self.left.append), self.unrun)
        kept = self.results.append
        return run(study, self, on_trial=lambda _plan, result, _replayed: kept(result), **more)  # type: ignore[arg-type]

    @property
    def keys(self) -> list[str]:
        return [plan.key for plan in self.ran]
