"""A trial of ours as AIPerf's summary: computed from its requests by AIPerf's definitions, not ours.

Successes alone, percentiles linear; ITL is (latency - TTFT) / (output tokens - 1), latency ends at the last output, the
duration is from the first send to the last end, and a count of errors is left out where it is zero. Two things remain
ours, and are said under `nameplate`: TTFT begins at the first byte on an open connection, and tokens are the server's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.latency import gaps_of
from nameplate.measure.windows import whole_run
from nameplate.statistics.percentile import percentile
from nameplate.verdict.trial import TrialVerdict
from nameplate.wire.outcome import Outcome

SCHEMA_VERSION = "1.4"
_PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_MS = 1e6


def aiperf_of(
    header: TrialHeader,
    rows: Iterable[RequestRow],
    timelines: Iterable[Timeline],
    verdict: TrialVerdict | None = None,
) -> bytes:
    """Return the summary as JSON; a metric without a value is left out, as there."""
    measured = [row for row in rows if row.measured]
    ok = [row for row in measured if row.outcome == Outcome.ok]
    fine = {row.index for row in ok}
    gaps = [gap / _MS for timeline in timelines if timeline.index in fine for gap in gaps_of(timeline)]
    blocks: dict[str, dict[str, Any] | None] = {
        "time_to_first_token": _block("ms", _ms(row.ttft_ns for row in ok)),
        "time_to_second_token": _block("ms", _ms(_second(row) for row in ok)),
        "time_to_first_output_token": _block("ms", _ms(_answer(row) for row in ok)),
        "request_latency": _block("ms", _ms(row.e2e_ns for row in ok)),
        "inter_token_latency": _block("ms", _ms(row.tpot_ns for row in ok)),
        "inter_chunk_latency": _block("ms", gaps),
        "output_token_throughput_per_user": _block(
            "tokens/sec/user", [1e9 / row.tpot_ns for row in ok if row.tpot_ns]
        ),
        "output_sequence_length": _block("tokens", _known(row.output_tokens for row in ok)),
        "input_sequence_length": _block("tokens", _known(row.prompt_tokens for row in ok)),
        **_totals(measured, ok),
    }
    document = {
        "schema_version": SCHEMA_VERSION,
        "aiperf_version": f"nameplate {__version__}",
        "benchmark_id": header.contract.nonce,
        "was_cancelled": any(row.outcome in (Outcome.cancelled, Outcome.unfinished) for row in measured),
        "input_config": config_of(header.contract, header.plan),
        "run_info": {
            "random_seed": header.contract.seed,
            "trial": header.plan.attempt,
            "run_label": header.plan.name,
            "variation_values": {},
            "cli_command": " ".join(header.command) or None,
        },
        **{tag: block for tag, block in blocks.items() if block is not None},
        "nameplate": {
            "generator": f"nameplate {__version__}",
            "verdict": verdict.status if verdict is not None else None,
            "differs": [
                "time_to_first_token begins at the first byte sent on an open connection",
                "tokens are the server's own count, the chat template included",
            ],
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _totals(measured: Sequence[RequestRow], ok: Sequence[RequestRow]) -> dict[str, dict[str, Any] | None]:
    window = whole_run(measured)
    seconds = window.length_ns / 1e9 if window is not None else 0.0
    outputs, inputs = (
        _known(getattr(row, name) for row in ok) for name in ("output_tokens", "prompt_tokens")
    )
    # A sum over some of the requests alone would be no total.
    total, asked = (sum(found) if len(found) == len(ok) and ok else None for found in (outputs, inputs))
    failed = len(measured) - len(ok)

    def per_s(value: float | None) -> float | None:
        return value / seconds if value is not None and seconds else None

    return {
        "output_token_throughput": _scalar("tokens/sec", per_s(total)),
        "total_token_throughput": _scalar(
            "tokens/sec", per_s(total + asked if total is not None and asked is not None else None)
        ),
        "request_throughput": _scalar("requests/sec", per_s(len(ok))),
        "request_count": _scalar("requests", float(len(ok))),
        "error_request_count": _scalar("requests", float(failed) if failed else None),
        "benchmark_duration": _scalar("sec", seconds or None),
        "total_osl": _scalar("tokens", total),
        "total_isl": _scalar("tokens", asked),
    }


def config_of(contract: Contract, plan: TrialPlan, soak: bool = False) -> Mapping[str, Any]:
    """Return what load was asked for; a soak is bounded by time, its count of requests never reached."""
    target = contract.target
    arrivals = plan.arrivals
    load: dict[str, Any] = (
        {} if soak else {"request_count": plan.requests, "warmup_request_count": plan.warmup}
    )
    if arrivals is None:
        load["concurrency"] = plan.concurrency
    else:
        load |= {"request_rate": arrivals.rate, "arrival_pattern": arrivals.kind}
    return {
        "endpoint": {
            "model_names": [target.model],
            "url": target.url,
            "type": target.api,
            "streaming": True,
            "use_server_token_count": True,
        },
        "input": {
            "prompt": {
                "input_tokens": {"mean": plan.shape.input_tokens},
                "output_tokens": {"mean": plan.shape.output_tokens},
            }
        },
        "loadgen": load,
    }


def _block(unit: str, values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    ordered = sorted(values)
    mean = math.fsum(ordered) / len(ordered)
    told: dict[str, Any] = {"unit": unit, "avg": mean}
    told |= {f"p{percent}": percentile(ordered, percent) for percent in _PERCENTS}
    told |= {"min": ordered[0], "max": ordered[-1]}
    told["std"] = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / len(ordered))
    return told | {"count": len(ordered), "sum": math.fsum(ordered)}


def _scalar(unit: str, value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"unit": unit, "avg": value}


def _ms(values: Iterable[float | None]) -> list[float]:
    return [value / _MS for value in values if value is not None]


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _second(row: RequestRow) -> int | None:
    if row.first_output_ns is None or row.second_output_ns is None:
        return None
    return row.second_output_ns - row.first_output_ns


def _answer(row: RequestRow) -> int | None:
    if row.first_answer_ns is None or row.sent_ns is None:
        return None
    return row.first_answer_ns - row.sent_ns
