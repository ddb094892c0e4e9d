"""What the wait for the first token is made of, as far as the server's own histograms say so."""

from __future__ import annotations

import htpy as h

from nameplate.measure.waits import Part, Waits
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import paragraphs
from nameplate.report import numbers
from nameplate.report.waits import between, time_of, untold, waits_notes

_PATH = "measurement.waits"


def waits_section(waits: Waits | None) -> h.Node:
    """Return queue, prefill and what they leave of the TTFT; in words where the server does not tell."""
    if waits is None:
        return None
    if waits.queue is None or waits.prefill is None:
        return h.div[h.h3["Queue and prefill apart"], paragraphs(untold(waits))]
    columns = (
        Column("part", kind="text"),
        Column("n"),
        Column("mean", "mean, ns"),
        *(Column(f"{name} within", kind="text") for name in ("p50", "p95", "p99")),
    )
    rows = [_part("queue", "queue", waits.queue), _part("prefill", "prefill", waits.prefill)]
    if waits.rest_mean_ns is not None:
        rows.append(_plain("rest", "rest_mean_ns", waits.n, waits.rest_mean_ns))
        rows.append(_plain("= TTFT, ours", "ttft_mean_ns", waits.n, waits.ttft_mean_ns))
    if waits.send_lag_mean_ns is not None:
        rows.append(_plain("send lag before it", "send_lag_mean_ns", waits.n, waits.send_lag_mean_ns))
    if waits.server_ttft is not None:
        rows.append(_part("TTFT, the server's", "server_ttft", waits.server_ttft))
    if waits.decode is not None:
        rows.append(_part("decode", "decode", waits.decode))
    return h.div[
        table(columns, rows, "Queue and prefill apart, by the server's own clock", sortable=False),
        h.p(".soft")[" ".join(waits_notes(waits))],
    ]


def _part(title: str, name: str, part: Part) -> list[Cell | str]:
    return [
        title,
        Cell(f"{part.n:,}", part.n, f"{_PATH}.{name}.n"),
        Cell(numbers.duration(part.mean_ns), part.mean_ns, f"{_PATH}.{name}.mean_ns"),
        *(
            between(interval, label in part.unsupported)
            for label, interval in (("p50", part.p50), ("p95", part.p95), ("p99", part.p99))
        ),
    ]


def _plain(title: str, name: str, n: int, mean_ns: int | None) -> list[Cell | str]:
    return [title, Cell(f"{n:,}", n), Cell(time_of(mean_ns), mean_ns, f"{_PATH}.{name}"), "", "", ""]
