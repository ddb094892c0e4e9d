"""The speed summary: golden at two widths, every status in words, imported numbers, hostile servers."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from rich.console import Console
from rich.text import Text

from nameplate.contract.identity import Identity
from nameplate.contract.matrix import KI
from nameplate.hosts.summary import GpuSummary, GpuUse, ThrottleShare
from nameplate.measure.speed_result import CellRow, SpeedResult, decode_speed, encode_speed
from nameplate.report.cells import MEANING, WORDS
from nameplate.report.measurements import all_measurements
from nameplate.report.speed import speed_summary
from nameplate.report.speed_words import answer, coverage
from nameplate.report.tests.rendering import hold_golden, text_of
from nameplate.report.tests.speed_results import (
    HOSTILE,
    S,
    decode_values,
    host,
    imported_result,
    prefill_rows,
    prefill_values,
    row,
    speed_result,
    spread,
)
from nameplate.verdict.cell import CellStatus

RESULT = speed_result()
DIRECTORY = Path("runs/speed-1")
AGAIN = "nameplate speed http://127.0.0.1:8000"


def shown(result: SpeedResult = RESULT, width: int = 100, **options: bool) -> str:
    return text_of(speed_summary(result, DIRECTORY, AGAIN, **options), width)


def only(*rows: CellRow, **changes: Any) -> SpeedResult:
    return speed_result(rows=rows, **changes)


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 160])
def test_the_summary_reads_as_agreed(width: int) -> None:
    """The whole summary is as a person once found it good."""
    hold_golden(f"speed_{width}", shown(width=width))


def test_an_imported_summary_reads_as_agreed() -> None:
    """Another tool's numbers are shown as that tool's."""
    hold_golden("speed_imported_100", shown(imported_result()))


@pytest.mark.parametrize("discarded", [False, True])
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int, discarded: bool) -> None:
    """Nothing wraps by itself, and no column of the matrix is left out."""
    text = shown(width=width, discarded=discarded)
    assert max(map(len, text.splitlines())) <= width
    heads = [line.split() for line in text.split("Sustained decode")[1].splitlines() if "context " in line]
    levels = [level for line in heads for level in line if level.isdigit()]
    assert levels[:8] == ["1", "2", "4", "8", "16", "32", "64", "128"]


def test_the_answer_comes_first_and_is_of_valid_cells_only() -> None:
    """One user's speed and the most that the server gave stand first; a larger discarded rate is no answer."""
    first = shown(width=200).splitlines()[0]
    assert first.startswith(
        "One user at 8K reads 162.8 tok/s; the most this server gave was 4,790 tok/s, 128 users at 16K, each "
        "reading 37.6."
    )
    lost = decode_values(9000.0, 8, 100)
    bad = row("decode", 8 * KI, 8, None, CellStatus.looped, "8 of 8", discarded=lost)
    good = row("decode", 8 * KI, 1, decode_values(100.0, 1, 100))
    assert answer(only(good, bad)) == (
        "One user at 8K reads 100.5 tok/s; no other cell is valid. Prefill was not measured."
    )


def test_what_is_not_measured_is_said() -> None:
    """Without a valid cell there is no number in the answer, whatever was planned."""
    looped = row("decode", 8 * KI, 1, None, CellStatus.looped, "1 of 1")
    pair = row("decode", 8 * KI, 2, decode_values(180.0, 2, 100))
    prefill = row("prefill", 8 * KI, 1, prefill_values(15_900, 8200))
    assert answer(only(looped)) == "No rate: the one planned cell is not valid."
    assert answer(only(prefill)) == "Decode was not measured. Prompts are read at 15,900 tok/s at 8K."
    assert answer(only(looped, prefill)).startswith("Decode: no cell is valid (1 looped).")
    assert answer(only(looped, pair)).startswith(
        "No cell with one user is valid; each of 2 users at 8K reads 90.4 tok/s, 180.0 tok/s in all; no "
        "other cell is valid."
    )
    assert answer(only()) == "Nothing was planned, so there is no rate."
    assert coverage(only(looped, finished=False)).startswith("Not finished: ")


@pytest.mark.parametrize("status", [one for one in CellStatus if one is not CellStatus.valid])
def test_every_status_stands_in_words_with_its_meaning_and_without_a_number(status: CellStatus) -> None:
    """A cell that is not valid shows why, and nothing that could be read as a rate."""
    lost = decode_values(77.7, 1, 100)
    result = only(row("decode", 8 * KI, 1, None, status, "because of this", discarded=lost))
    text = shown(result, 200)
    assert f"{WORDS[status]} (1)" in text
    assert MEANING[status] in text and "because of this" in text
    assert "77.7" not in text and "77.7" not in text_of(all_measurements(result), 200)


def test_the_legend_explains_only_what_occurs() -> None:
    """Statuses that no cell has are not mentioned, and each has its count."""
    text = shown()
    assert "looped (23)" in text and "over capacity (10)" in text and "over limit (1)" in text
    plain = shown(only(row("decode", 8 * KI, 1, decode_values(100.0, 1, 100))))
    assert not any(f"{word} (" in plain for word in WORDS.values())


def test_a_status_is_explained_once() -> None:
    """The burst's legend does not repeat what the matrix' legend said."""
    assert unwrapped(shown()).count(MEANING[CellStatus.server_error]) == 1


def test_discarded_numbers_are_asked_for_and_marked() -> None:
    """What was measured in a cell that is not valid stands in brackets beside its status."""
    assert "4.83" not in shown()
    text = shown(discarded=True)
    assert "(4.83)" in text and "no result, shown because you asked" in text
    assert not re.search(r"(?<!\()\b4\.83\b", text)


def test_cold_and_warm_are_told_apart() -> None:
    """One warmth stands above the matrix; several stand in the cells, and the legend says what they mean."""
    cold = row("decode", 8 * KI, 1, decode_values(100.0, 1, 515))
    warm = row("decode", 8 * KI, 2, decode_values(180.0, 2, 66, warmth="warm"))
    assert "TTFT (cold)" in shown(only(cold)) and "A ramp sends" not in shown(only(cold))
    assert "A ramp sends all its prompts at once" in shown(only(cold, warm))
    text = shown(only(cold, warm), 200)
    assert "515 ms c" in text and "66.0 ms w" in text and "w (1)" in text and "c (1)" in text
    assert "cold or warm unknown" in shown(
        only(row("decode", 8 * KI, 1, decode_values(100.0, 1, 515, warmth="unknown")))
    )


def test_estimated_tokens_are_marked() -> None:
    """A rate from estimated tokens carries its mark in the matrix, the answer and the table of all measurements."""
    result = only(row("decode", 8 * KI, 1, decode_values(100.0, 1, 515, estimated=True)))
    assert "~100.0" in shown(result) and "~ (1)" in shown(result) and "reads about 100.5" in answer(result)
    assert "~100.0" in text_of(all_measurements(result), 200)


def test_absent_is_a_dash() -> None:
    """A valid cell without a TTFT, and a pair that was not planned, show a dash and no zero."""
    blank = decode_values(100.0, 1, 100, ttft=spread(0, 0), per_user=None)
    text = shown(
        only(row("decode", 8 * KI, 1, blank), row("decode", 16 * KI, 2, decode_values(180.0, 2, 100)))
    )
    matrix = text.split("context  ", 1)[1].split("What it ran on")[0]
    assert "- · -" not in matrix and not re.search(r"(?<![\d.])0(\.0+)?( ms| s)?\b", matrix)


def test_only_measures_that_occur_are_explained() -> None:
    """A measure without any number here needs no words."""
    text = shown()
    assert "burst rate" in text and "energy a token" not in text


def test_notes_of_one_kind_stand_together() -> None:
    """The same note of several cells is one item that names them; different numbers are quoted twice at most."""
    rows = [
        row("decode", 8 * KI, level, decode_values(100.0, level, 100), notes=(f"{level} preemptions", "same"))
        for level in (1, 2, 4, 8)
    ]
    text = unwrapped(shown(only(*rows, warnings=("of the whole",))))
    assert "! of the whole" in text
    assert "8K x 1: 1 preemptions; 8K x 2: 2 preemptions; likewise 8K x 4, 8K x 8" in text
    assert "same (8K x 1, 8K x 2, 8K x 4, 8K x 8)" in text


def test_hardware_of_the_client_is_not_the_servers() -> None:
    """A host says whose it is, and the client's warns that it says nothing of the server."""
    assert "Server's host" in shown()
    text = unwrapped(shown(speed_result(hosts=(host("client", said="the target is elsewhere"),))))
    assert "Client's host the target is elsewhere; its hardware says nothing of the server" in text
    assert "not installed: numactl" in text


def test_gpus_at_work_and_energy_are_told() -> None:
    """Power, throttling and energy of the valid cells have their units."""
    use = GpuUse(
        samples=60,
        utilisation_mean_percent=97.0,
        power_mean_w=512.0,
        temperature_max_c=71,
        throttle=(ThrottleShare("power cap", 0.4),),
    )
    gpu = GpuSummary(
        which="server", begin_ns=0, end_ns=30 * S, all_gpus=use, gpus=(use,), scope="the one GPU"
    )
    values = decode_values(100.0, 1, 100, gpu=gpu, energy_per_token_j=5.12)
    text = unwrapped(shown(only(row("decode", 8 * KI, 1, values)), 200))
    assert "use 97%, power 512 W, up to 71 C, clocks held back by power cap in up to 40% of samples" in text
    assert "5.12 J a token at 8K x 1" in text


def test_an_imported_result_says_whose_it_is() -> None:
    """The first line names the tool, its definitions are listed, and no evidence of ours is claimed."""
    text = unwrapped(shown(imported_result()))
    assert text.startswith("Imported: these numbers are those of llm-inference-bench 0.4.30")
    assert "How llm-inference-bench's definitions differ" in text and "Here: from the first byte sent" in text
    assert "nameplate verify" not in text


def test_a_prefill_without_samples_of_its_own_is_shown() -> None:
    """An imported rate has no samples: its median stands, and what is not known is a dash."""
    values = decode_values(15_900, 1, 515)
    text = shown(only(row("prefill", 8 * KI, 1, values)))
    line = next(line for line in text.splitlines() if line.split()[:1] == ["8K"])
    assert line.split() == ["8K", "8,200", "15,900", "-", "1", "515.0", "ms"]


def test_plain_letters_where_the_terminal_knows_no_others() -> None:
    """An ASCII terminal gets the whole report in ASCII, the line of time included."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    console = Console(file=file, width=200, no_color=True, markup=False, emoji=False, highlight=False)
    console.print(speed_summary(RESULT, DIRECTORY))
    console.print(all_measurements(RESULT))
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert "162.8 | 515 ms" in text and "####" in text


def test_colour_only_repeats_the_words() -> None:
    """Without colour the same text stands."""
    page = speed_summary(RESULT, DIRECTORY, AGAIN)
    colored = text_of(page, 100, color=True)
    assert "\x1b[" in colored
    plain = "".join(Text.from_ansi(line).plain + "\n" for line in colored.splitlines())
    assert plain == text_of(page, 100)


# Words that the format itself fixes: everything else in a result may come from a server or a file.
_FIXED = frozenset(
    {
        "schema",
        "kind",
        "status",
        "unit",
        "warmth",
        "which",
        "vendor",
        "energy_source",
        "expected",
        "unsupported",
    }
)


def hostile(value: Any, key: str = "") -> Any:
    """Replace every text of a decoded result that its format does not fix."""
    if key in _FIXED:
        return value
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, dict):
        return {name: hostile(one, name) for name, one in value.items()}
    return [hostile(one, key) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("make", [speed_result, imported_result])
def test_nothing_that_a_server_says_reaches_the_terminal_unescaped(make: Any) -> None:
    """With every text of the result replaced by one that controls a terminal, none of it does."""
    rows = tuple(structs.replace(one, notes=(HOSTILE,)) for one in make().rows)
    result = make(contract=None, rows=rows, warnings=(HOSTILE,), note=HOSTILE)
    told = hostile(msgspec.json.decode(encode_speed(result)))
    told["identity"] = {
        "facts": {name: {"value": HOSTILE, "source": HOSTILE} for name in ("engine", "model")}
    }
    bad = decode_speed(msgspec.json.encode(told))
    assert isinstance(bad.identity, Identity) and bad.rows[0].reason == HOSTILE
    summary = speed_summary(bad, Path(HOSTILE), HOSTILE, discarded=True)
    for body, width in ((summary, 100), (all_measurements(bad, discarded=True), 200)):
        text = text_of(body, width)
        assert "[bold]owned[/bold]" in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


def test_a_result_that_tells_nothing_is_shown() -> None:
    """A result without cells, contract, identity or hosts still reads as one."""
    text = shown(SpeedResult(tool="nameplate", rows=()))
    assert "Nothing was planned" in text and "an engine that does not name itself" in text
    assert "not told: context, KV pool, how many it runs at once" in unwrapped(text)


def test_a_mixed_cell_that_is_not_valid_has_no_timeline() -> None:
    """Without the arrival's first output there is nothing to compare, and that is said."""
    result = only(
        row("mixed", 64 * KI, 8, None, CellStatus.not_ready, "the long prompt got no output"),
        *prefill_rows(),
    )
    text = shown(result)
    assert "not ready" in text and "█" not in text and "the long prompt got no output" in unwrapped(text)
