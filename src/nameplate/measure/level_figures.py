"""The figures of one level's trials together: what their TTFT is made of, and what the server held meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from nameplate.measure.held_back import HeldBack
from nameplate.measure.result import TrialResult
from nameplate.measure.server_side import Gauge
from nameplate.measure.waits import Estimate, Part, Waits, estimate
from nameplate.statistics.buckets import Interval

Side = Literal["alone", "pass", "fail"]


class LevelFigures(Struct, frozen=True, kw_only=True):
    """Hold the means over all requests of a level's trials in nanoseconds, and the server's gauges over its samples.

    `n` requests, `unmeasured` of them warm-up that could not be told apart. `split` says that queue, prefill and rest
    are the server's own and add up to the TTFT; otherwise they are null, `reason` says why, and `estimate` may stand
    in. `queue_p95` reaches from the lowest to the highest edge over the trials. `preemptions` are of all together.
    """

    side: Side
    trials: int
    n: int
    unmeasured: int = 0
    split: bool = False
    reason: str = ""
    ttft_mean_ns: int | None = None
    queue_mean_ns: int | None = None
    prefill_mean_ns: int | None = None
    rest_mean_ns: int | None = None
    send_lag_mean_ns: int | None = None
    e2e_mean_ns: int | None = None
    queue_p95: Interval | None = None
    estimate: Estimate | None = None
    running: Gauge | None = None
    waiting: Gauge | None = None
    kv_usage: Gauge | None = None
    preemptions: int | None = None
    held_back: HeldBack | None = None

    @property
    def requests_waited(self) -> bool:
        """Tell whether the server's gauge ever showed a waiting request."""
        return self.waiting is not None and self.waiting.max > 0


def figures_of(side: Side, trials: Sequence[TrialResult]) -> LevelFigures:
    """Put the figures of a level's trials together; at least one trial."""
    servers = [trial.measurement.server for trial in trials]
    common = {
        "running": _gauges([server.running for server in servers]),
        "waiting": _gauges([server.waiting for server in servers]),
        "kv_usage": _gauges([server.kv_usage for server in servers]),
        "preemptions": _sum([server.preemptions for server in servers]),
    }
    known = [waits for trial in trials if (waits := trial.measurement.waits) is not None]
    if len(known) < len(trials):
        return LevelFigures(
            side=side,
            trials=len(trials),
            n=0,
            reason="a trial has no drained load",
            **common,  # type: ignore[arg-type]
        )
    split = all(waits.rest_mean_ns is not None for waits in known)

    def mean(value: Callable[[Waits], int | None]) -> int | None:
        return _mean([(value(waits), waits.n) for waits in known])

    return LevelFigures(
        side=side,
        trials=len(trials),
        n=sum(waits.n for waits in known),
        unmeasured=sum(waits.unmeasured for waits in known),
        split=split,
        reason=next((waits.reason for waits in known if waits.reason), ""),
        ttft_mean_ns=mean(lambda waits: waits.ttft_mean_ns),
        queue_mean_ns=mean(lambda waits: _part(waits.queue)) if split else None,
        prefill_mean_ns=mean(lambda waits: _part(waits.prefill)) if split else None,
        rest_mean_ns=mean(lambda waits: waits.rest_mean_ns) if split else None,
        send_lag_mean_ns=mean(lambda waits: waits.send_lag_mean_ns),
        e2e_mean_ns=mean(lambda waits: waits.e2e_mean_ns),
        estimate=_estimate(known),
        queue_p95=_widest([waits.queue.p95 if waits.queue is not None else None for waits in known]),
        held_back=_together([waits.held_back for waits in known]),
        **common,  # type: ignore[arg-type]
    )


def _part(part: Part | None) -> int | None:
    return None if part is None else part.mean_ns


def _mean(values: Sequence[tuple[int | None, int]]) -> int | None:
    """Return the mean over all requests; None as soon as one trial's is unknown."""
    known = [(value, n) for value, n in values if value is not None and n]
    if len(known) < len(values) or not known:
        return None
    return round(sum(value * n for value, n in known) / sum(n for _, n in known))


def _estimate(known: Sequence[Waits]) -> Estimate | None:
    """Estimate the wait over all requests; the trials of a study have one baseline."""
    ttft = _mean([(waits.ttft_mean_ns, waits.n) for waits in known])
    alone = known[0].estimate
    if ttft is None or alone is None or any(waits.estimate is None for waits in known):
        return None
    return estimate(ttft, (alone.alone_low_ns, alone.alone_ns, alone.alone_high_ns))


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _gauges(gauges: Sequence[Gauge | None]) -> Gauge | None:
    known = [gauge for gauge in gauges if gauge is not None]
    if not known:
        return None
    n = sum(gauge.n for gauge in known)
    return Gauge(n, sum(gauge.mean * gauge.n for gauge in known) / n, max(gauge.max for gauge in known))


def _widest(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [interval for interval in intervals if interval is not None]
    if not known or len(known) < len(intervals):
        return None
    highs = [interval.high for interval in known if interval.high is not None]
    high = max(highs) if len(highs) == len(known) else None
    return Interval(min(interval.low for interval in known), high)


def _together(seen: Sequence[HeldBack | None]) -> HeldBack | None:
    known = [one for one in seen if one is not None]
    if not known:
        return None
    return HeldBack(
        samples=sum(one.samples for one in known),
        waited=sum(one.waited for one in known),
        running_limit=known[0].running_limit,
        kv_full_share=known[0].kv_full_share,
        at_limit=_sum([one.at_limit for one in known]),
        kv_full=_sum([one.kv_full for one in known]),
        neither=_sum([one.neither for one in known]),
    )
