"""The names of the gates, in two kinds, and what each says when it does not hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from nameplate.wire.outcome import Outcome

GateStatus = Literal["pass", "fail", "inconclusive", "invalid", "unverified"]


class Gate(StrEnum):
    """Name a condition that stands before every SLO."""

    rejected = "rejected"
    server_error = "server_error"
    stream_error = "stream_error"
    timeout = "timeout"
    reset = "reset"
    refused = "refused"
    outstanding = "outstanding"
    bounded_queue = "bounded_queue"
    steady_latency = "steady_latency"

    all_ended = "all_ended"

    bad_request = "bad_request"
    warmup = "warmup"
    output_length = "output_length"
    finish_reason = "finish_reason"
    empty_output = "empty_output"
    input_length = "input_length"
    cached_tokens = "cached_tokens"
    unique_prompts = "unique_prompts"
    unique_outputs = "unique_outputs"
    looping = "looping"
    no_other_traffic = "no_other_traffic"
    server_counters = "server_counters"
    identity = "identity"
    client_lateness = "client_lateness"
    concurrency = "concurrency"
    arrivals = "arrivals"
    evidence = "evidence"


# Caused by the load: any of these fails the trial, unless an error_rate SLO decides instead.
LOAD = (Gate.rejected, Gate.server_error, Gate.stream_error, Gate.timeout, Gate.reset, Gate.refused)

# Of a rate study's trials alone: the rate is one that the server sustains.
SUSTAINED = (Gate.bounded_queue, Gate.steady_latency)

# The contract is broken: the trial says nothing about the server's capacity, and is invalid.
CONTRACT = (
    Gate.bad_request,
    Gate.warmup,
    Gate.output_length,
    Gate.finish_reason,
    Gate.empty_output,
    Gate.input_length,
    Gate.cached_tokens,
    Gate.unique_prompts,
    Gate.unique_outputs,
    Gate.looping,
    Gate.no_other_traffic,
    Gate.server_counters,
    Gate.identity,
    Gate.client_lateness,
    Gate.concurrency,
    Gate.arrivals,
    Gate.evidence,
)

MEANING: dict[Gate, str] = {
    Gate.rejected: "the server refused requests (429 or 503)",
    Gate.server_error: "the server answered with an error status",
    Gate.stream_error: "streams broke off or carried an error",
    Gate.timeout: "requests hit a deadline of the client",
    Gate.reset: "the server reset connections",
    Gate.refused: "the server refused connections",
    Gate.outstanding: "the server fell so far behind that the load was ended",
    Gate.bounded_queue: "the queue grows at this rate, and a longer run would wait longer, without bound",
    Gate.steady_latency: "latency rises over the trial",
    Gate.arrivals: "arrivals were not delivered as planned",
    Gate.all_ended: "requests were cancelled, unfinished or never started",
    Gate.bad_request: "the server says that the requests themselves are wrong",
    Gate.warmup: "warm-up requests failed, so the server was not ready",
    Gate.output_length: "answers have another length than was asked for",
    Gate.finish_reason: "answers finished for another reason than the contract allows",
    Gate.empty_output: "answers counted as ok hold no output",
    Gate.input_length: "prompts are more than 2% off the asked length",
    Gate.cached_tokens: "cached tokens lie outside the cache policy",
    Gate.unique_prompts: "prompts occur more than once",
    Gate.unique_outputs: "answers repeat although the baseline's were unique",
    Gate.looping: "answers end in loops although the baseline's did not",
    Gate.no_other_traffic: "the server held more requests than ours",
    Gate.server_counters: "the server's own counters disagree with ours",
    Gate.identity: "the server's identity changed or its counters fell",
    Gate.client_lateness: "the client was late: it is client-limited",
    Gate.concurrency: "the rebuilt concurrency is not the planned one",
    Gate.evidence: "the evidence is damaged or contradicts itself",
}


class GateResult(Struct, frozen=True):
    """Hold one gate's status, what was found, and how many things were counted or looked at."""

    gate: Gate
    status: GateStatus
    detail: str
    counted: int = 0


_REJECTING = (429, 503)
# What servers answer to a prompt that is too long; the fields of a request were accepted by the probe.
TOO_LONG = (400, 413, 422)

_BY_OUTCOME: dict[Outcome, Gate] = {
    Outcome.stream_error: Gate.stream_error,
    Outcome.truncated: Gate.stream_error,
    Outcome.ended_without_marker: Gate.stream_error,
    Outcome.malformed: Gate.stream_error,
    Outcome.reset: Gate.reset,
    Outcome.connect_failed: Gate.refused,
}


def gate_of_failure(outcome: str, http_status: int | None) -> Gate | None:
    """Return the gate that a failed request counts under; None for ok, cancelled and unfinished ones.

    ValueError for an outcome outside the closed list.
    """
    known = Outcome(outcome)
    if known in (Outcome.ok, Outcome.cancelled, Outcome.unfinished):
        return None
    if known.is_timeout:
        return Gate.timeout
    if http_status in _REJECTING:
        return Gate.rejected
    if known is not Outcome.http_error:
        return _BY_OUTCOME[known]
    # 408 is the server's own timeout under load; every other 3xx or 4xx says that the request is wrong.
    if http_status is not None and 300 <= http_status < 500 and http_status != 408:
        return Gate.bad_request
    return Gate.server_error
