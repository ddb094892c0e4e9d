"""What was fixed of a trial before its first request, and the machine that sent it."""

from __future__ import annotations

import htpy as h
import msgspec

from nameplate.evidence.header import TrialHeader
from nameplate.pages.words import facts
from nameplate.report import numbers
from nameplate.report.safe import safe


def header_table(header: TrialHeader) -> h.Element:
    """Return a trial's header as facts, folded away."""
    plan, length, keeping = header.plan, header.prompt_length, header.keeping
    calibrated = length.calibrated_tokens
    floor = header.template_floor_tokens
    entries: list[tuple[h.Node, h.Node]] = [
        ("Trial", safe(plan.key, 200)),
        ("Role", plan.role),
        ("Clock", "simulated" if header.clock == "virtual" else "live"),
        ("Load processes", f"{header.workers:,}"),
        (
            "Prompt length",
            f"by {length.method}"
            + ("" if calibrated is None else f", calibrated to {numbers.count(calibrated, 'token')}"),
        ),
        ("Shared by the template", "not known" if floor is None else numbers.count(floor, "token")),
        (
            "Raw reads kept",
            keeping.reads if keeping.reads != "sample" else f"one request in {keeping.sample_every}",
        ),
        ("Prompts kept", "yes" if keeping.prompts else "no"),
        ("Quiet before it", numbers.rough(plan.quiet_s) if plan.quiet_s else "none"),
        ("Tool", safe(header.tool_version, 60)),
        *((safe(name, 60), safe(str(value), 200)) for name, value in header.client_host.items()),
    ]
    plan_text = msgspec.json.format(msgspec.json.encode(plan.as_written)).decode()
    return h.details[
        h.summary["The trial's header: how it was sent, and from which machine"],
        facts(entries),
        h.h3["Its plan, as JSON"],
        h.pre[h.code[safe(plan_text, 6000, lines=True)]],
    ]
