"""How long the client waits for anything: far above any SLO, so that a slow answer is measured and not cut."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.slo import Slo

SECOND_NS = 10**9


class Deadlines(Struct, frozen=True):
    """Bound each stage of a request, in nanoseconds; each has a named outcome of its own."""

    connect_ns: int = 10 * SECOND_NS
    first_output_ns: int = 600 * SECOND_NS
    silence_ns: int = 120 * SECOND_NS
    total_ns: int = 6 * 3600 * SECOND_NS

    @classmethod
    def for_slos(cls, slos: Iterable[Slo], base: Deadlines | None = None) -> Deadlines:
        """Raise the first-output deadline to ten times the loosest TTFT limit, and refuse deadlines below a limit."""
        given = base or cls()
        first = given.first_output_ns
        for slo in slos:
            if slo.metric == "ttft" and slo.limit_ns is not None and base is None:
                first = max(first, 10 * slo.limit_ns)
        chosen = cls(given.connect_ns, first, given.silence_ns, given.total_ns)
        for slo in slos:
            if slo.limit_ns is None:
                continue
            stage_ns = {
                "ttft": chosen.first_output_ns,
                "longest_gap": chosen.silence_ns,
                "itl": chosen.silence_ns,
            }.get(slo.metric, chosen.total_ns)
            # The deadline of the whole request cuts every stage of it.
            bound = min(stage_ns, chosen.total_ns)
            if bound <= slo.limit_ns:
                raise CallerError(
                    f"A deadline of {bound / 1e9:g} s is not above the limit of the SLO {slo}.",
                    why="Requests would be cut before they could miss the SLO.",
                    hint="Raise the deadline or lower the limit.",
                )
        return chosen
