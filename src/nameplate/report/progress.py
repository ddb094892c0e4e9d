"""What a running trial has shown so far: kept cheaply between redraws, said in a few lines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.client.order import Progress
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.slo import Slo
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.report import numbers
from nameplate.report.held import HeldShot, say_held
from nameplate.statistics.percentile import percentile, supported

# A sample's line is below 2 KiB; the last of these bytes hold several.
_TAIL_BYTES = 16 * 1024


class Snapshot(Struct, frozen=True, kw_only=True):
    """Hold a load as of its last report. `ended` and `total` are of the running stage, times are the view's own.

    `ttft_p50_ns` and `ttft_judged_ns` are over the `ttfts` first outputs so far. `held` is of streams that are held;
    of prefill samples `prompt_tokens` is the length asked, `least` how many there will be at the least. `from_sending`
    says that the TTFTs so far are not those that are judged, which count from schedule.
    """

    stage: str
    started: int
    ended: int
    total: int
    in_flight: int
    stage_began_ns: int
    now_ns: int
    ttfts: int = 0
    ttft_p50_ns: float | None = None
    ttft_judged_ns: float | None = None
    ttft_judged_supported: bool = False
    server: ServerSample | None = None
    held: HeldShot | None = None
    prompt_tokens: int | None = None
    least: int | None = None
    from_sending: bool = False

    @property
    def left_s(self) -> float | None:
        """Return the time left in this stage: of a window by its end, else by the rate of completions.

        None before the first one, in a ramp, and where sampling ends by what it sees.
        """
        if self.held is not None:
            left_ns = self.held.left_ns if self.held.in_window else None
            return None if left_ns is None else left_ns / 1e9
        if self.least is not None:
            return None
        if not self.ended or self.now_ns <= self.stage_began_ns:
            return None
        rate = self.ended / (self.now_ns - self.stage_began_ns)
        return max(0, self.total - self.ended) / rate / 1e9


def ttft_slo(contract: Contract | None) -> Slo | None:
    """Return the SLO that the TTFT so far is shown against: the first one on TTFT."""
    slos = contract.slos if contract is not None else ()
    return next((slo for slo in slos if slo.metric == "ttft" and slo.percentile is not None), None)


def snapshot(
    plan: TrialPlan,
    progress: Progress,
    ttfts_ns: Mapping[int, int],
    slo: Slo | None,
    stage_began_ns: int,
    now_ns: int,
    server: ServerSample | None,
    held: HeldShot | None = None,
) -> Snapshot:
    """Take a load's report as it is now."""
    sampling = plan.until if progress.stage == "measured" else None
    ordered = sorted(ttfts_ns.values())
    judged = slo.percentile if slo is not None and slo.percentile is not None else 95.0
    return Snapshot(
        stage=progress.stage,
        started=progress.started,
        ended=progress.ended,
        total=plan.warmup if progress.stage == "warmup" else plan.requests,
        in_flight=progress.in_flight,
        stage_began_ns=stage_began_ns,
        now_ns=now_ns,
        ttfts=len(ordered),
        ttft_p50_ns=percentile(ordered, 50.0) if ordered else None,
        ttft_judged_ns=percentile(ordered, judged) if ordered else None,
        ttft_judged_supported=supported(len(ordered), judged),
        server=server,
        held=held,
        from_sending=plan.arrivals is not None,
        prompt_tokens=None if sampling is None else plan.shape.input_tokens,
        least=None if sampling is None else sampling.least,
    )


def last_sample(directory: Path) -> ServerSample | None:
    """Return the last whole line of the trial's server samples; None where there is none yet, or none readable."""
    try:
        with (directory / layout.SERVER).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return None
    whole = tail[: tail.rfind(b"\n") + 1].splitlines()
    for line in reversed(whole):
        try:
            return msgspec.json.decode(line, type=ServerSample)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return None


def say_server(sample: ServerSample | None) -> str:
    """Say what the server told of itself last; a failed scrape is unknown, not zero."""
    if sample is None:
        return "server tells nothing"
    if sample.error is not None:
        return "server's metrics could not be read"
    said = [
        f"running {numbers.count(sample.running)}",
        f"waiting {numbers.count(sample.waiting)}",
        f"KV {numbers.share(sample.kv_usage_mean, 0)}",
    ]
    return "server: " + ", ".join(said)


def say_ttft(shot: Snapshot, slo: Slo | None) -> str:
    """Say the TTFT so far beside its limit."""
    if not shot.ttfts:
        return "TTFT: none yet"
    if shot.prompt_tokens is not None and shot.ttft_p50_ns:
        rate = numbers.rate(shot.prompt_tokens * 1e9 / shot.ttft_p50_ns, "tok/s")
        return f"TTFT so far: p50 {numbers.duration(shot.ttft_p50_ns)}, n {shot.ttfts}: about {rate}"
    if shot.held is not None:
        return f"TTFT so far: p50 {numbers.duration(shot.ttft_p50_ns)}, n {shot.ttfts}"
    mark = "" if shot.ttft_judged_supported else numbers.UNSUPPORTED
    name = "p95" if slo is None else f"p{slo.percentile:g}"
    if slo is None or slo.limit_ns is None:
        judged, limit = numbers.duration(shot.ttft_judged_ns), ""
    else:
        judged, limit = (
            numbers.against(shot.ttft_judged_ns, slo.limit_ns),
            f" (< {numbers.limit(slo.limit_ns)})",
        )
    p50 = numbers.duration(shot.ttft_p50_ns)
    said = "TTFT from sending so far" if shot.from_sending else "TTFT so far"
    return f"{said}: p50 {p50}, {name} {judged}{mark}{limit}, n {shot.ttfts}"


def say_requests(shot: Snapshot) -> str:
    """Say how many requests of the stage are done, or where held streams are."""
    if shot.held is not None:
        return say_held(shot.held)
    if shot.least is not None:
        return f"samples: {shot.ended:,} done, {shot.least:,} to {shot.total:,} wanted"
    if shot.stage == "ramp":
        return f"ramp: {shot.started:,} started, {shot.in_flight} in flight"
    what = "warm-up" if shot.stage == "warmup" else "requests"
    return f"{what} {shot.ended:,} of {shot.total:,} done, {shot.in_flight} in flight"
