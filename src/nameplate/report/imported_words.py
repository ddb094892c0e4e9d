"""What is said of a load test of another tool, wherever it is shown."""

from __future__ import annotations

from nameplate.exchange.peers.run import Run
from nameplate.report import numbers
from nameplate.report.safe import safe

NAMES = {
    "ttft": "TTFT",
    "first_answer": "first answer",
    "second_output": "second output",
    "itl": "ITL",
    "tpot": "TPOT",
    "chunk_gaps": "chunk gaps",
    "e2e": "E2E",
    "longest_gap": "longest gap",
    "per_user": "output tok/s a user",
    "output_rate": "output tok/s",
    "input_rate": "input tok/s",
    "total_rate": "all tok/s",
    "peak_output_rate": "peak output tok/s",
    "request_rate": "requests/s",
    "goodput": "goodput, req/s",
    "output_tokens": "output tokens",
    "prompt_tokens": "prompt tokens",
    "total_output_tokens": "output tokens, all",
    "total_output_tokens_retokenized": "counted again",
    "total_input_tokens": "input tokens, all",
    "normalised_tpot": "E2E a token",
    "e2e_per_user": "output tok/s a request",
    "prefill_rate": "prefill tok/s",
    "decode_rate": "decode tok/s",
    "repetition": "a repetition",
    "client_queue": "queue in the client",
    "dispatch_delay": "late start",
    "concurrency": "in flight",
    "accept_length": "tokens a step",
}


def summary_words(run: Run) -> str:
    """Say in a sentence how many requests completed, and what the tool found."""
    told = (("output_rate", ""), ("prefill_rate", ""), ("decode_rate", ""), ("ttft", "p95"), ("itl", "p95"))
    parts = ", ".join(part for name, key in told if (part := _one(run, name, key)))
    counts = run.counts
    many = ""
    if counts.completed is not None:
        all_of = f" of {numbers.count(counts.requests)}" if counts.requests is not None else ""
        many = f"{numbers.count(counts.completed)}{all_of} requests completed"
    return f"{'; '.join(filter(None, (many, parts)))}."


def contradiction_words(run: Run) -> str:
    """Say which checks of the file by its own numbers fail."""
    names = ", ".join(dict.fromkeys(safe(check.name, 40) for check in run.contradictions))
    return f"The file contradicts itself: {names}."


def _one(run: Run, name: str, key: str = "") -> str:
    measure = run.measure(name)
    if measure is None:
        return ""
    value = measure.percentiles.get(key) if key else measure.mean
    if value is None:
        return ""
    return f"{NAMES.get(name, name)}{' ' + key if key else ''} {value_words(measure.unit, value)}"


def facts_of(run: Run) -> list[tuple[str, str]]:
    """Return what is told of a run beside its measures: model, server, load, fates, window."""
    load = run.load
    rate = (
        f"{load.rate_per_s:g} requests/s, {load.arrivals or 'arrivals not known'}" if load.rate_per_s else ""
    )
    shape = [
        f"{load.concurrency:,} at once" if load.concurrency else "",
        rate,
        "everything sent at once" if load.rate_unbounded and not load.concurrency else "",
        f"{numbers.count(load.requests)} requests" if load.requests else "",
        f"for {load.duration_s:g} s" if load.duration_s else "",
    ]
    lengths = [
        f"{numbers.count(round(value))} {noun} tokens"
        for noun, value in (("input", load.input_tokens), ("output", load.output_tokens))
        if value
    ]
    counts = run.counts
    fates = [
        f"{numbers.count(value)} {noun}"
        for noun, value in (
            ("completed", counts.completed), ("failed", counts.failed), ("cancelled", counts.cancelled),
            ("unfinished", counts.unfinished), ("left out (warm-up, or outside the window)", counts.left_out),
        )
        if value or (noun == "completed" and value is not None)
    ]  # fmt: skip
    pairs: list[tuple[str, str]] = [
        ("model", safe(run.model or "not told")),
        ("server", safe(", ".join(part for part in (run.endpoint, run.engine) if part) or "not told")),
        (
            "load",
            safe(", ".join(part for part in (*shape, *lengths, load.dataset or "") if part) or "not told"),
        ),
        ("requests", ", ".join(fates) or "not told"),
        ("window", f"{run.window_s:,.2f} s" if run.window_s else "not told"),
    ]
    if run.label:
        pairs.insert(0, ("run", safe(run.label)))
    return pairs


def value_words(unit: str, value: float | None) -> str:
    """Write a value of a measure by its unit."""
    if unit == "ns":
        return numbers.duration(value)
    if unit == "1/s":
        return numbers.rate(value)
    return numbers.count(value)


def load_name(run: Run) -> str:
    """Name a run by its load."""
    load = run.load
    if load.rate_per_s:
        return f"{load.rate_per_s:g}/s"
    return f"{load.concurrency:,} at once" if load.concurrency else "load not told"
