"""The whole of a capacity or rate study, below its answer."""

from __future__ import annotations

import htpy as h

from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.pages.identity import contract_card, evidence_card, identity_table, launch, server_card
from nameplate.pages.plate_picture import plate_picture
from nameplate.pages.rated.answer import shape_facts
from nameplate.pages.rated.figures import boundary_figure, confirmations_figure, path_figure
from nameplate.pages.rated.limit import limit_section
from nameplate.pages.rated.phases import phases
from nameplate.pages.rated.points import points_of
from nameplate.pages.rated.surface import surface_figure
from nameplate.pages.rated.trials import trials_table
from nameplate.pages.subject import RatedSubject
from nameplate.pages.trial.boundary import boundary_ecdf
from nameplate.pages.trial.list import trial_list
from nameplate.pages.values import document
from nameplate.pages.words import facts, warnings
from nameplate.report import numbers
from nameplate.report.identity import one_line
from nameplate.report.safe import safe
from nameplate.report.words import overall_warnings, promise, warnings_of

TERMS = (
    "rated",
    "operate at",
    "certified",
    "TTFT",
    "ITL",
    "E2E",
    "output tok/s",
    "req/s",
    "opening",
    "steady",
    "pNN",
    "prefill tok/s",
    "running, waiting",
    "KV",
    "cold",
)


def rated_section(subject: RatedSubject) -> h.Element:
    """Return plate, boundary, figures, search, limit and trials of a study."""
    plate, contract = subject.plate, subject.plate.contract
    return h.div(document("plate.json" if subject.finished else "", subject.name))[
        _cards(subject),
        launch(plate.identity.facts),
        identity_table(plate.identity.facts, plate.identity.missing),
        surface_figure(contract, plate.shapes),
        [_confirmations(subject, one) for one in contract.slos],
        [_shape(subject, shape, position) for position, shape in enumerate(plate.shapes)],
        warnings(overall_warnings(plate), "Warnings for the plate"),
        _decisions(subject),
        trial_list(subject),
    ]


def _confirmations(subject: RatedSubject, slo: Slo) -> h.Node:
    plate = subject.plate
    shown = [(shape, points_of(subject, shape, slo)) for shape in plate.shapes]
    return confirmations_figure(plate.contract, shown, slo)


def _trial_size(subject: RatedSubject) -> str:
    """Say how many requests a confirmation measures: what a limit of a closed loop depends on."""
    plans = [result.plan for result in subject.results if result.plan.role == "confirmation"]
    if not plans:
        return "none ran"
    sizes, warmups = sorted({plan.requests for plan in plans}), sorted({plan.warmup for plan in plans})
    measured = numbers.between(f"{sizes[0]:,}", f"{sizes[-1]:,}")
    return f"{measured} measured requests, {numbers.between(str(warmups[0]), str(warmups[-1]))} of warm-up before them"


def _cards(subject: RatedSubject) -> h.Element:
    plate, contract, record = subject.plate, subject.plate.contract, subject.record
    spent_s = sum(verdict.spent_s for verdict in record.shapes)
    return h.div(".cards")[
        plate_picture(subject.directory) or server_card(plate.identity.facts, plate.target.url),
        contract_card(
            contract,
            [
                ("Promise", h.strong[safe(promise(contract.slos), 400)]),
                ("Shapes", ", ".join(str(shape) for shape in contract.shapes)),
                ("Load", _load(subject)),
                ("Confirmations", f"{contract.rules.confirmations} independent trials wanted on each side"),
                ("Each of them", _trial_size(subject)),
            ],
        ),
        evidence_card(
            str(subject.directory),
            plate.study_manifest_sha256,
            record.command,
            subject.began,
            subject.ended,
            subject.simulated,
            f"nameplate {plate.tool_version or record.tool_version}",
            [("Spent", f"{numbers.count(len(record.trials), 'trial')}, {numbers.rough(spent_s)}")],
        ),
    ]


def _load(subject: RatedSubject) -> str:
    contract = subject.plate.contract
    if contract.rate is not None:
        return f"open loop, {contract.rate.spread} arrivals"
    return f"closed loop, start policy {contract.rules.start}"


def _shape(subject: RatedSubject, shape: PlateShape, position: int) -> h.Element:
    contract = subject.plate.contract
    levels = levels_of(contract)
    path = f"shapes.{position}"
    title = f"Shape {shape.shape}"
    first = contract.slos[0] if contract.slos else None
    figures = [
        boundary_figure(shape, contract, slo, points_of(subject, shape, slo), throughput=slo == first)
        for slo in contract.slos
    ]
    if first is not None:
        figures.append(boundary_ecdf(subject, shape, first))
    return h.section(aria_label=title)[
        h.h2[title],
        shape_facts(shape, subject, position),
        trials_table(shape, contract, path, subject.directory),
        figures,
        path_figure(contract, first, points_of(subject, shape, first)) if first else None,
        phases(shape, contract),
        limit_section(shape, levels, path),
        h.h3["What this number covers"],
        facts(
            [
                ("Qualified", safe("; ".join(shape.qualified), None) or "nothing"),
                ("Not qualified", safe("; ".join(shape.not_qualified), None) or "-"),
            ]
        ),
        warnings(warnings_of(shape), f"Warnings for {shape.shape}", h.h3),
    ]


def _decisions(subject: RatedSubject) -> h.Element:
    levels = levels_of(subject.plate.contract)
    return h.details[
        h.summary[f"All {len(subject.record.decisions)} decisions of the study, with their reasons"],
        h.ol[
            [
                h.li[
                    f"{one.shape} {one.step} {'' if one.level is None else levels.name(one.level)}: ",
                    safe(one.what, 500),
                    h.span(".soft")[f" {safe(one.reason, 800)}"],
                ]
                for one in subject.record.decisions
            ]
        ],
    ]


def about(subject: RatedSubject) -> str:
    """Say in a line what server this is."""
    return one_line(subject.plate.identity.facts)
