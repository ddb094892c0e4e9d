"""The page of a speed study: its values are those of the result, and no cell without a number shows one."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from nameplate.contract.identity import Fact, Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence.header import ClockPair, PromptLength, TrialHeader
from nameplate.hosts.summary import GpuSummary, GpuUse
from nameplate.measure.speed_result import CellRow, SpeedResult, encode_speed
from nameplate.pages.anchor import trial_anchor
from nameplate.pages.report import report_page
from nameplate.pages.subject import SpeedSubject, TrialSubject
from nameplate.pages.tests.reading import Page, at_path
from nameplate.report.speed_words import answer
from nameplate.report.tests.speed_results import (
    KI,
    decode_values,
    imported_result,
    prefill_values,
    row,
    speed_result,
    study_contract,
)
from nameplate.verdict.cell import CellStatus

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)></td>\u2028\u202e</style>${7*7}"


def gpu_row() -> CellRow:
    """Return a decode cell whose GPUs were watched."""
    use = GpuUse(samples=30, power_mean_w=431.5, energy_j=12_945.0, temperature_max_c=71)
    seen = GpuSummary(
        which="server", begin_ns=0, end_ns=30, all_gpus=use, gpus=(), scope="all GPUs of the host"
    )
    return row("decode", 8 * KI, 3, decode_values(300.0, 3, 700, gpu=seen, energy_per_token_j=1.438))


RESULTS: dict[str, SpeedResult] = {
    "made": speed_result(note="a note"),
    "imported": imported_result(),
    "gpus": speed_result(rows=(*speed_result().rows, gpu_row())),
    "empty": speed_result(rows=()),
    "one": speed_result(rows=(row("decode", 8 * KI, 1, decode_values(162.0, 1, 515)),)),
    "none valid": speed_result(rows=(row("decode", 8 * KI, 1, None, CellStatus.looped, "1 of 1 looped"),)),
}


def subject(result: SpeedResult, *trials: TrialSubject, name: str = "run") -> SpeedSubject:
    """Return a subject of this result."""
    return SpeedSubject(directory=Path("runs") / name, trials=trials, manifest_sha256=None, result=result)


def page_of(result: SpeedResult, *trials: TrialSubject) -> Page:
    """Return the page of a result, read."""
    return Page(report_page([subject(result, *trials)]))


@cache
def made(name: str) -> Page:
    """Return the page of one of the results, read once."""
    return page_of(RESULTS[name])


@pytest.mark.parametrize("name", RESULTS)
def test_every_value_with_a_path_is_the_one_in_the_result(name: str) -> None:
    """Each raw value on the page equals what stands at its path in result.json."""
    result = RESULTS[name]
    document = json.loads(encode_speed(result))
    values = made(name).values
    for told, path, value in values:
        assert told == "result.json"
        assert at_path(document, path) == value, path
    valid = [at for at, one in enumerate(result.rows) if one.values is not None]
    paths = {path for _, path, _ in values}
    assert {f"rows.{at}.values.tokens_per_s" for at in valid} <= paths
    assert {f"rows.{at}.status" for at in range(len(result.rows))} <= paths


def test_what_was_discarded_stands_nowhere_on_the_page() -> None:
    """Other numbers in a cell that is not valid make the same page, and no path leads to them."""
    result = RESULTS["made"]
    other = structs.replace(
        result,
        rows=tuple(
            one
            if one.discarded is None
            else structs.replace(one, discarded=decode_values(987_654.0, 7, 12_345))
            for one in result.rows
        ),
    )
    page = report_page([subject(other)])
    assert page == report_page([subject(result)])
    assert not any("discarded" in path for _, path, _ in Page(page).values)


def test_cells_without_a_number_say_their_status_and_why() -> None:
    """Each such cell of the matrix has its word, a pattern, its reason, and no value."""
    result = RESULTS["made"]
    page = made("made")
    cells = page.of_class("none")
    planned = [
        one for one in result.rows if one.kind in ("decode", "burst") and one.status is not CellStatus.valid
    ]
    assert len(cells) == len(planned)
    for cell in cells:
        assert {"p-not-run", "p-void", "p-broken"} & set(cell.classes)
        assert "data-value" not in cell.attributes
    told = " ".join(one.attributes.get("title", "") for one in page.elements if one.tag == "a")
    for one in planned:
        assert one.reason in told
    for status in {one.status for one in planned}:
        assert f"{status.value.replace('_', ' ')} (" in page.text


def test_the_matrix_shows_its_total_until_another_measure_is_chosen() -> None:
    """Radio buttons choose the measure, the total first; each valid cell holds all of them."""
    page = made("made")
    buttons = [one for one in page.elements if one.tag == "input"]
    assert [one.attributes["value"] for one in buttons if "checked" in one.attributes] == ["1", "1"]
    assert len({one.attributes["name"] for one in buttons}) == 2
    cells = [one for one in page.of_class("valid") if one.tag == "td"]
    assert (
        len(cells) == len(page.of_class("m1")) == len(page.of_class("m2")) == len(page.of_class("m3")) == 11
    )
    places = [float(said) for one in cells for said in re.findall(r"--m\d:([\d.]+)", one.attributes["style"])]
    assert len(places) == 33 and min(places) == 0.0 and max(places) == 1.0


def test_the_answer_is_the_one_of_the_terminal() -> None:
    """The page says the same sentences as the terminal."""
    for name, result in RESULTS.items():
        text = made(name).text
        assert all(part in text for part in re.split(r"(?<=\.) ", answer(result)))


def test_lines_break_where_a_cell_has_no_number() -> None:
    """A planned cell without a number is null in the curve's data, so that nothing is drawn across it."""
    rows = [row("decode", 8 * KI, c, decode_values(100.0 * c, c, 500)) for c in (1, 4)]
    rows.insert(1, row("decode", 8 * KI, 2, None, CellStatus.looped, "2 of 2 looped"))
    page = page_of(speed_result(rows=tuple(rows)))
    curves = [spec for spec in page.charts if "requests at once" in spec["description"]]
    assert len(curves) == 3
    for spec in curves:
        assert [(one["at"], one["value"] is None) for one in spec["data"]["values"]] == [
            (1, False),
            (2, True),
            (4, False),
        ]
        assert spec["layer"][0]["mark"]["invalid"] == "break-paths-show-domains"


def test_curves_hold_the_numbers_of_the_result() -> None:
    """What is drawn are the result's values: medians and samples of prefill, rates of decode, slices of mixed."""
    result = RESULTS["made"]
    specs = made("made").charts
    rates = next(spec for spec in specs if spec["description"].startswith("Prompt tokens"))["data"]["values"]
    prefill = [(one.context_tokens, one.values) for one in result.rows_of("prefill")]
    assert [(one["context"], one["rate"]) for one in rates if one["of"] == "median"] == [
        (context, None if held is None else held.tokens_per_s) for context, held in prefill
    ]
    assert [one["rate"] for one in rates if one["of"] == "sample"] == [
        sample.rate
        for _, held in prefill
        if held is not None and held.prefill
        for sample in held.prefill.samples
    ]
    total = next(spec for spec in specs if spec["description"].startswith("total"))["data"]["values"]
    assert {(one["context"], one["at"]): one["value"] for one in total} == {
        (one.label, one.concurrency): None if one.values is None else one.values.tokens_per_s
        for one in result.rows_of("decode")
    }
    (mixed,) = (one.values.mixed for one in result.rows_of("mixed") if one.values is not None)
    assert mixed is not None
    slices = next(spec for spec in specs if spec["description"].startswith("Output tokens a second of all"))
    assert tuple(one["rate"] for one in slices["data"]["values"]) == mixed.timeline


def test_nothing_from_a_server_or_a_user_becomes_markup() -> None:
    """Hostile model, address, launch command, note, reasons, labels and origin stay text, charts too."""
    bad = [
        row(
            "decode", 8 * KI, 1, decode_values(100.0, 1, 500), label=HOSTILE, reason=HOSTILE, notes=(HOSTILE,)
        ),
        row("decode", 8 * KI, 2, decode_values(190.0, 2, 500), label=HOSTILE),
        row("decode", 16 * KI, 1, None, CellStatus.server_error, HOSTILE, trials=(HOSTILE,)),
        row("prefill", 8 * KI, 1, prefill_values(1000.0, 8 * KI), label=HOSTILE),
    ]
    facts = Identity(
        {name: Fact(HOSTILE, HOSTILE) for name in ("engine", "version", "hardware", "model", HOSTILE)}
    )
    for base in (speed_result(), imported_result()):
        origin = base.origin
        if origin is not None:
            origin = structs.replace(
                origin,
                tool=HOSTILE,
                version=HOSTILE,
                file=HOSTILE,
                definitions={HOSTILE: HOSTILE, "ttft": HOSTILE},
                metadata={
                    "timestamp": HOSTILE,
                    "decode_mode": HOSTILE,
                    "prefill_mode": [HOSTILE],
                    "max_tokens": 1,
                },
            )
        result = structs.replace(
            base,
            origin=origin,
            rows=tuple(bad),
            model=HOSTILE,
            target=HOSTILE,
            tool=HOSTILE,
            launch_command=HOSTILE,
            note=HOSTILE,
            warnings=(HOSTILE,),
            identity=facts,
        )
        text = report_page([subject(result, name="run")])
        page = Page(text)
        scripts = [one for one in page.elements if one.tag == "script"]
        assert all(set(one.attributes) <= {"type"} for one in scripts)
        assert sum("type" not in one.attributes for one in scripts) == 3
        assert not [one for one in page.elements if one.tag == "img"]
        assert not [name for one in page.elements for name in one.attributes if name.startswith("on")]
        assert "\u2028" not in text and "\u202e" not in text


def test_texts_of_a_megabyte_do_not_fill_the_page() -> None:
    """What a hostile server adds beyond sense is counted, not shown."""
    long = "x" * 1_000_000
    one = row(
        "decode", 8 * KI, 1, None, CellStatus.server_error, long, label=long, notes=(long,), trials=(long,)
    )
    result = speed_result(
        rows=(one,), model=long, target=long, launch_command=long, note=long, warnings=(long,)
    )
    plain = len(report_page([subject(speed_result(rows=()))]))
    assert len(report_page([subject(result)])) < plain + 60_000


def test_a_matrix_of_ten_by_twenty_stays_small() -> None:
    """The page of 200 cells stays below the 3 MB that a whole report may have."""
    rows = [
        row("decode", (1 + at) * 8 * KI, 1 + level, decode_values(100.0 * (1 + level), 1 + level, 500.0))
        for at in range(10)
        for level in range(20)
    ]
    page = report_page([subject(speed_result(rows=tuple(rows)))])
    assert len(page.encode()) < 3_000_000
    assert page.count("<svg") == 0 and len(Page(page).of_class("m1")) == 200


@pytest.mark.parametrize("name", ["empty", "none valid"])
def test_without_a_number_the_page_says_so(name: str) -> None:
    """An empty matrix and one without a valid cell have a page, no curve, and no button to choose a measure."""
    page = made(name)
    assert "no rate" in page.text.lower()
    assert not page.charts and not [one for one in page.elements if one.tag == "input"]


def test_an_imported_result_claims_no_evidence_of_ours() -> None:
    """It names its tool, its file's digest and its definitions, and offers no recomputing."""
    page = made("imported")
    assert "ab" * 32 in page.text and "llm-inference-bench 0.4.30" in page.text
    assert "nameplate verify runs" not in page.text and "first non-empty content" in page.text
    assert "1 / ITL of a request" not in page.text


def test_a_cell_leads_to_its_trial_where_there_is_one_and_every_link_to_something() -> None:
    """Cells link to their trial on the page, or to their line in the table of all measurements."""
    header = TrialHeader(
        contract=study_contract(),
        plan=TrialPlan("decode.8K.c1", "decode", Shape(8 * KI, 4096), 1, 1, 0),
        clock="virtual",
        started=ClockPair(0, 1_800_000_000_000_000_000),
        command=("speed", "sim:h200"),
        identity=Identity(),
        prompt_length=PromptLength(method="usage"),
    )
    trial = TrialSubject(directory=Path("runs/run/trials/decode.8K.c1"), header=header, result=None)
    page = page_of(RESULTS["made"], trial)
    anchors = {one.attributes["id"] for one in page.elements if "id" in one.attributes}
    links = [one.attributes["href"] for one in page.elements if one.tag == "a"]
    assert f"#{trial_anchor(Path('runs/run'), 'decode.8K.c1')}" in links
    assert all(link[1:] in anchors for link in links), set(links)
    assert len(anchors) == sum("id" in one.attributes for one in page.elements)
    assert "2027-01-15" in page.text and "simulated time" in page.text


def test_several_runs_on_one_page_do_not_share_anchors() -> None:
    """Two matrices beside each other keep their own buttons and lines."""
    page = Page(report_page([subject(RESULTS["made"], name="a"), subject(RESULTS["made"], name="b")]))
    ids = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    buttons = [one for one in page.elements if one.tag == "input"]
    assert len({one.attributes["name"] for one in buttons}) == 4


def test_what_nobody_told_is_not_stated() -> None:
    """Hardware, engine and run say "not stated" for what is unknown, and nothing is zero."""
    page = page_of(speed_result(hosts=(), identity=Identity(), limits=type(speed_result().limits)()))
    assert page.text.count("not stated") >= 8
