"""The closed list of checks, in the order in which they are shown, each with what it means."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Group = Literal["integrity", "gates", "verdict"]


class Name(StrEnum):
    """Name one check."""

    manifest = "manifest"
    files = "files"
    record_count = "record_count"
    raw_reads = "raw_reads"
    plan = "plan"
    times = "times"
    outcomes = "outcomes"
    usage_and_finish = "usage_and_finish"
    outputs = "outputs"
    loops = "loops"
    non_empty_output = "non_empty_output"
    timelines = "timelines"
    prompts_as_sent = "prompts_as_sent"
    prompts_disjoint = "prompts_disjoint"
    totals = "totals"
    concurrency = "concurrency"
    identity = "identity"
    published_numbers = "published_numbers"

    status_ok = "status_ok"
    none_cancelled = "none_cancelled"
    no_errors = "no_errors"
    output_length = "output_length"
    finish_reason = "finish_reason"
    input_length = "input_length"
    cached_tokens = "cached_tokens"
    unique_prompts = "unique_prompts"
    unique_outputs = "unique_outputs"
    looping = "looping"
    client_lateness = "client_lateness"
    no_other_traffic = "no_other_traffic"
    server_counters = "server_counters"
    same_server = "same_server"
    planned_concurrency = "planned_concurrency"
    readiness = "readiness"
    whole_evidence = "whole_evidence"

    trial_verdict = "trial_verdict"

    study_manifest = "study_manifest"
    study_files = "study_files"
    study_trials = "study_trials"
    study_contract = "study_contract"
    study_prompts = "study_prompts"
    study_identity = "study_identity"
    levels = "levels"
    boundary = "boundary"
    plate = "plate"
    matrix = "matrix"
    curve = "curve"

    unfinished = "unfinished"
    segments = "segments"
    soak_record = "soak_record"
    soak_verdict = "soak_verdict"
    drift = "drift"


INTEGRITY: dict[Name, str] = {
    Name.manifest: "every file is in the manifest, with the size and the SHA-256 that it says",
    Name.files: "every file is whole and of its documented format",
    Name.record_count: "each request that was scheduled has one row, each row its raw reads, as many as planned",
    Name.raw_reads: "the raw reads are kept as the header says, of planned requests, in order of time",
    Name.plan: "phase and class of each row, and the result's plan, follow from the header",
    Name.times: "the times in each row are those of the raw reads",
    Name.outcomes: "outcome, status and error of each row are what the raw reads give",
    Name.usage_and_finish: "usage and finish reason of each row are what the stream said",
    Name.outputs: "events, bytes and digest of each row's output are those of the stream",
    Name.loops: "each row says whether its text ended in a loop, and how much there was to judge by",
    Name.non_empty_output: "every ok stream has output",
    Name.timelines: "the kept times of output events are those of the raw reads",
    Name.prompts_as_sent: "each row's prompt is the kept body, and the body is what the contract asks",
    Name.prompts_disjoint: "no prompt occurs twice, and cold ones differ from their head on",
    Name.totals: "sent = ok + failed + cancelled + unfinished, and the published totals are those of the rows",
    Name.concurrency: "requests in flight, rebuilt from the raw reads, are as published and as planned",
    Name.identity: "the server's identity is the same in header, journal and result",
    Name.published_numbers: "every other published number is recomputed from the evidence",
}

GATES: dict[Name, str] = {
    Name.status_ok: "no request was refused, and none answered with an error status",
    Name.none_cancelled: "every planned request came to its end",
    Name.no_errors: "no stream error, timeout, reset, refusal or failed warm-up",
    Name.output_length: "the server counted as many output tokens as were asked for",
    Name.finish_reason: "every answer finished for the reason that the contract allows",
    Name.input_length: "prompts are as long as asked, by the server's count",
    Name.cached_tokens: "cached tokens lie within the cache policy",
    Name.unique_prompts: "no prompt was used twice",
    Name.unique_outputs: "no answer repeats where the baseline's were unique",
    Name.looping: "no more answers end in loops than may, where none of the baseline's did",
    Name.client_lateness: "the client's own lateness is within its budget",
    Name.no_other_traffic: "the server never held more requests than ours",
    Name.server_counters: "the server's own counters agree with ours",
    Name.same_server: "the server's identity did not change and its counters did not fall",
    Name.planned_concurrency: "the load was as planned, and what a rate study asks of its queue and latency held",
    Name.readiness: "held streams were ready by their rule when the window began, and it is as long as planned",
    Name.whole_evidence: "the evidence was whole when the trial was judged",
}

VERDICT: dict[Name, str] = {
    Name.trial_verdict: "the trial's verdict and its reasons follow from gates and SLOs",
}

STUDY_INTEGRITY: dict[Name, str] = {
    Name.study_manifest: "the study's files and its trials' manifests are what the study's manifest says",
    Name.study_files: "contract, record and plate are whole and of their documented format",
    Name.study_trials: "the record lists every sealed trial once, with its own plan and verdict",
    Name.study_contract: "record, plate and every trial carry the study's contract",
    Name.study_prompts: "no prompt occurs in two trials, or in the probe or the calibration",
    Name.study_identity: "every trial met the same server",
}

STUDY_VERDICT: dict[Name, str] = {
    Name.levels: "each level's verdict follows from its trials",
    Name.boundary: "rated number, status and exit code follow from the levels",
    Name.plate: "every value on the plate follows from the recomputed trials",
}

SPEED_VERDICT: dict[Name, str] = {
    Name.matrix: "every planned cell has its row, with the status and the numbers that its trials recompute to",
}

CURVE_VERDICT: dict[Name, str] = {
    Name.curve: "every level has its status and numbers, and curves, knee and losses follow from them",
}

# Of one segment of a soak; its gates are judged over all of them.
SEGMENT: dict[Name, str] = {
    **{name: meaning for name, meaning in INTEGRITY.items() if name not in (Name.concurrency, Name.identity)},
    Name.unfinished: "every request without an end is named, with what the raw reads tell of how far it had come",
}

SOAK: dict[Name, str] = {
    Name.study_manifest: STUDY_INTEGRITY[Name.study_manifest],
    Name.study_files: "contract, journal and record are whole and of their documented format",
    Name.study_contract: "record and every segment carry the soak's contract",
    Name.study_prompts: "no prompt occurs in two segments, or in the probe or the calibration",
    Name.segments: "segments follow each other, each planned for what was left, and the record lists every one",
    Name.soak_record: "counts, rates, percentiles, windows and gaps over all segments are recomputed from theirs",
}

SOAK_VERDICT: dict[Name, str] = {
    Name.drift: "the drift of every series follows from the recomputed windows",
    Name.soak_verdict: "verdict, reasons and exit code follow from SLOs, gates and what ended the soak",
}

MEANING: dict[Name, str] = {
    **INTEGRITY,
    **GATES,
    **VERDICT,
    **STUDY_INTEGRITY,
    **STUDY_VERDICT,
    **SPEED_VERDICT,
    **CURVE_VERDICT,
    Name.unfinished: SEGMENT[Name.unfinished],
    Name.segments: SOAK[Name.segments],
    Name.soak_record: SOAK[Name.soak_record],
    **SOAK_VERDICT,
}


def group_of(name: Name) -> Group:
    """Return the group that a check is shown in."""
    if name in GATES:
        return "gates"
    verdicts = {**VERDICT, **STUDY_VERDICT, **SPEED_VERDICT, **CURVE_VERDICT, **SOAK_VERDICT}
    return "verdict" if name in verdicts else "integrity"
