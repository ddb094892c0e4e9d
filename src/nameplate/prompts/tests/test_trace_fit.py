"""A trace is fitted to its server: what cannot be sent is refused, or left out and counted where that is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.trace import TracePlan, TraceRow, TraceRows
from nameplate.prompts.trace_fit import TooLong, TooShort, fit_trace, with_rows


def trace_of(rows: list[TraceRow], block_tokens: int | None = 64) -> TracePlan:
    plan = TracePlan(
        name="t", sha256="", format="jsonl", limit=99, read=len(rows), requests=0, duration_ns=0, rows_sha256="",
    )  # fmt: skip
    return with_rows(plan, TraceRows.of(rows, block_tokens))


def fit(
    rows: list[TraceRow],
    too_long: TooLong = "refuse",
    too_short: TooShort = "refuse",
    context: int | None = 1000,
) -> TracePlan:
    return fit_trace(
        trace_of(rows),
        context_tokens=context,
        floor_tokens=40,
        template_tokens=28,
        too_long=too_long,
        too_short=too_short,
    )


def test_what_does_not_fit_the_context_is_refused_or_left_out() -> None:
    """Input and output together: refused with how many and the first, or left out and counted."""
    rows = [TraceRow(0, 900, 100), TraceRow(5, 901, 100), TraceRow(9, 100, 950)]
    with pytest.raises(
        CallerError, match=r"2 of 3 requests .* 1,000 tokens; the first asks for 901 \+ 100"
    ) as refused:
        fit(rows)
    assert "--trace-too-long skip" in refused.value.hint
    fitted = fit(rows, too_long="skip")
    assert fitted.requests == 1 and fitted.left_out == {"too long for the context": 2}
    assert fit(rows, context=None).requests == 3


def test_what_no_prompt_is_short_enough_for_is_refused_left_out_or_raised() -> None:
    """Within the tolerance of a prompt's length nothing is short; with blocks of others only the template counts."""
    rows = [TraceRow(0, 31, 1), TraceRow(1, 32, 1), TraceRow(2, 40, 1), TraceRow(3, 29, 1, "", (7,))]
    with pytest.raises(CallerError, match="1 of 4 requests") as refused:
        fit(rows)
    assert "--trace-too-short raise" in refused.value.hint
    assert fit(rows, too_short="skip").left_out == {"too short for a prompt": 1}
    fitted = fit(rows, too_short="raise")
    assert fitted.rows is not None and fitted.raised == 1 and fitted.left_out == {}
    assert [row.input_tokens for row in fitted.rows] == [40, 32, 40, 29]
    assert fitted.rows_sha256 == fitted.rows.sha256 != trace_of(rows).rows_sha256


def test_nothing_left_is_refused() -> None:
    """A trace of which nothing fits is no load."""
    with pytest.raises(CallerError, match="Nothing is left"):
        fit([TraceRow(0, 5000, 1)], too_long="skip")


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.builds(TraceRow, st.integers(0, 9), st.integers(1, 1200), st.integers(1, 200)), min_size=1
    ),
    too_short=st.sampled_from(["skip", "raise"]),
)
def test_every_request_is_accounted_for(rows: list[TraceRow], too_short: TooShort) -> None:
    """Sent and left out add up to what there was, and all that is sent fits."""
    try:
        fitted = fit(rows, "skip", too_short)
    except CallerError:
        return
    assert fitted.rows is not None
    assert fitted.requests + sum(fitted.left_out.values()) == len(rows)
    assert all(row.input_tokens >= 32 and row.input_tokens + row.output_tokens <= 1000 for row in fitted.rows)
