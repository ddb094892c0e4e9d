"""Two sides to a comparison: what belongs together, what is refused, and what the answer says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.compare.comparing import Asked, Refused, compare_sides
from nameplate.compare.conditions import FailIf
from nameplate.compare.document import Comparison, decode_comparison, encode_comparison
from nameplate.compare.matching import Trial, pairs
from nameplate.compare.measures import Statistic
from nameplate.compare.rating import compare_rated
from nameplate.compare.reading import read_side
from nameplate.compare.side import Observed, Side
from nameplate.compare.tests.making import MS, cell, member, plain, rated_one, side, source, trials
from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.exchange.peers.tests.making import DETAILED, HERE, SUMMARY, VLLM, document, put

LIKE, MORE = (100 * MS, 101 * MS, 99 * MS), (110 * MS, 111 * MS, 109 * MS)


def compared(a: Side, b: Side, **asked: object) -> Comparison:
    return compare_sides(a, b, Asked(**asked))  # type: ignore[arg-type]


def test_a_document_survives_json() -> None:
    """What is written is read again, infinities included; another schema is refused."""
    never = Observed(None, 64, infinite=True)
    told = compared(plain("A", LIKE), plain("B", (never, never, never)))
    assert decode_comparison(encode_comparison(told)) == told
    assert told.answer.verdict == "worse" and "never in all 3 trials of B" in told.answer.sentence
    with pytest.raises(EvidenceError):
        decode_comparison(encode_comparison(told).replace(b"compare/1", b"compare/9"))


def test_differences_of_the_contract_are_refused_with_both_values() -> None:
    """The refusal names every difference, what each side has, and the option that allows it; exit code 2."""
    a = side(
        "A", source([cell(trials("a", LIKE), **{"load.start": "burst"})], {"engine.version": "1", "seed": 1})
    )
    b = side(
        "B",
        source([cell(trials("b", LIKE), **{"load.start": "handover"})], {"engine.version": "2", "seed": 2}),
    )
    with pytest.raises(Refused) as caught:
        compared(a, b)
    said = str(caught.value)
    assert caught.value.exit_code == 2
    assert "engine.version is 1 in A, 2 in B" in said and "--vary engine.version" in said
    assert "load.start (512/64, C=8) is burst in A, handover in B" in said and "seed" not in said
    told = compared(a, b, vary=("engine.version", "start", "nothing"))
    assert {one.name: one.kind for one in told.differences} == {
        "engine.version": "allowed",
        "load.start": "allowed",
        "seed": "harmless",
    }
    assert "--vary nothing names nothing that differs." in told.notes


def _concurrency(value: int) -> dict[str, Any]:
    return {"load.concurrency": value}


def _at(name: str, concurrency: int) -> Side:
    return side(
        name,
        source([cell(trials(name, LIKE), load=f"C={concurrency}", **_concurrency(concurrency))], path=name),
    )


def test_single_loads_belong_together() -> None:
    """Two sides of one load each are compared, and their load is a difference; of several loads those in common."""
    with pytest.raises(Refused, match=r"load\.concurrency"):
        compared(
            _at("A", 8),
            _at("B", 9),
        )
    a = side("A", source([cell(trials("a", LIKE), load=load) for load in ("C=7", "C=8")], path="a"))
    b = side("B", source([cell(trials("b", LIKE), load=load) for load in ("C=8", "C=9")], path="b"))
    told = compared(a, b)
    assert [one.cell for one in told.cells] == ["512/64, C=8"]
    assert told.only_a == ("512/64, C=7",) and told.only_b == ("512/64, C=9",)
    assert len(compared(a, b, only=("C=8",)).cells) == 1
    with pytest.raises(CallerError, match="no load in common"):
        compared(a, b, only=("C=5",))


def test_shapes_that_differ_are_refused_or_the_point() -> None:
    """Another shape is another contract; with --vary shape its loads are matched by concurrency."""
    a = side("A", source([cell(trials("a", LIKE), load=load) for load in ("C=7", "C=8")], path="a"))
    b = side(
        "B",
        source([cell(trials("b", MORE), load=load, shape="1024/64") for load in ("C=7", "C=8")], path="b"),
    )
    with pytest.raises(Refused, match="--vary shape"):
        compared(a, b)
    assert len(compared(a, b, vary=("shape",)).cells) == 2


def test_a_folder_of_repeated_results_is_one_sample() -> None:
    """Trials of several results of one load are one sample, and where each has several, results are."""
    singles = [
        side(
            name, *(source([cell([one])], path=f"{name}{at}") for at, one in enumerate(trials(name, values)))
        )
        for name, values in (("A", LIKE), ("B", MORE))
    ]
    told = compared(*singles)
    assert told.answer.verdict == "worse" and told.cells[0].unit == "trial"
    thrice = [
        side(name, *(source([cell(trials(f"{name}{at}", values))], path=f"{name}{at}") for at in range(3)))
        for name, values in (("A", LIKE), ("B", MORE))
    ]
    told = compared(*thrice)
    assert told.cells[0].unit == "result" and any(
        "each result is one value" in note.lower() for note in told.notes
    )


def test_only_equal_nonces_pair() -> None:
    """Trials are pairs where nonce and key are the same on both sides, each exactly once; order does not matter."""
    a = [Trial(0, member(f"t{at}", {"ttft p95": 1.0 + at}, nonce="n")) for at in range(3)]
    b = [Trial(0, member(f"t{at}", {"ttft p95": 9.0 + at}, nonce="n")) for at in (2, 0, 1)]
    found = pairs(a, b)
    assert found is not None and [trial.member.key for trial in found] == ["t0", "t1", "t2"]
    other = [Trial(0, member(f"t{at}", {"ttft p95": 1.0}, nonce="m")) for at in range(3)]
    assert pairs(a, other) is None and pairs(a, b[:2]) is None and pairs(a, [*b, b[0]]) is None
    sides = [
        side(name, source([cell([trial.member for trial in held])], path=name))
        for name, held in (("A", a), ("B", b))
    ]
    told = compared(*sides)
    assert told.cells[0].paired and any(note.startswith("Paired") for note in told.notes)


def test_a_baseline_is_beside_the_point() -> None:
    """What a promise is about is a load; one request at a time is shown, and decides nothing."""
    cells = [
        side(
            name,
            source(
                [cell(trials(name, values)), cell(trials(name, values[:1]), load="C=1", group="baseline")],
                path=name,
            ),
        )
        for name, values in (("A", LIKE), ("B", MORE))
    ]
    told = compared(*cells)
    assert told.answer.verdict == "worse"
    assert [one.gated for cell in told.cells for one in cell.measures] == [True, False]


def test_a_condition_asks_no_baseline() -> None:
    """A condition that confirmed levels decide is not made open by a baseline of one trial: one answer everywhere."""
    steady = (100 * MS, 100.2 * MS, 99.8 * MS)
    cells = [
        side(
            name,
            source(
                [
                    cell(trials(name, steady), load="C=9"),
                    cell(trials(f"one {name}", steady[:1]), load="C=1", group="baseline"),
                ],
                path=name,
                promises=promises,
            ),
        )
        for promises in ((), (Statistic("e2e", "p95"),))
        for name in "AB"
    ]
    for a, b in (cells[:2], cells[2:]):
        for conditions in ((), (FailIf.parse("ttft p95 +5%"),)):
            told = compared(a, b, conditions=conditions)
            assert told.answer.verdict == "equal" and told.exit_code == 0, told.answer


def test_without_a_promise_the_headline_is_compared() -> None:
    """Where nothing was promised, waiting, reading and output are what it is about."""
    values = {"ttft p95": 1.0, "itl p95": 1.0, "output_rate": 1.0, "e2e p95": 1.0}
    sides = [
        side(name, source([cell([member(f"{name}{at}", values) for at in range(3)])], promises=(), path=name))
        for name in "AB"
    ]
    gated = [one.statistic for one in compared(*sides).cells[0].measures if one.gated]
    assert gated == ["ttft p95", "itl p95", "output_rate"]
    named = compared(*sides, gates=(Statistic("e2e", "p95"),)).cells[0].measures
    assert [one.statistic for one in named if one.gated] == ["e2e p95"]


def rated(name: str, passes: int | None, fails: int | None, status: str = "confirmed") -> Side:
    held = (rated_one(passes, fails, status),)
    return side(name, source([cell(trials(name, (1.0,)))], rated=held, path=name))


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (rated("A", 7, 8), rated("B", 6, 7), "worse"),
        (rated("A", 6, 7), rated("B", 7, 8), "better"),
        (rated("A", 7, 8), rated("B", 7, 8), "equal"),
        (rated("A", 7, 9, "noisy"), rated("B", 7, 8), "not known"),
        (rated("A", 7, 9, "noisy"), rated("B", 6, 7), "worse"),
        (rated("A", 64, None, "open_above"), rated("B", 64, None, "open_above"), "not known"),
        (rated("A", 0, 1), rated("B", 1, 2), "better"),
        (rated("A", None, 4, "open_below"), rated("B", 4, 5), "better"),
        (rated("A", 7, 8, "invalid"), rated("B", 1, 2), "not known"),
    ],
)
def test_rated_numbers(a: Side, b: Side, verdict: str) -> None:
    """A rated number is worse only where a level passed on one side that failed, or lies above one that failed, on the
    other."""
    (found,) = compare_rated(a, b)
    assert found.verdict == verdict


def test_definitions_decide_between_tools() -> None:
    """Between tools whose definitions differ each measure says why it is not compared."""
    vllm, summary = (read_side(name, (HERE / file,)) for name, file in (("A", VLLM), ("B", SUMMARY)))
    told = compared(vllm, summary)
    apart = {one.statistic: one.reasons for one in told.cells[0].not_compared}
    assert "ttft" in apart and any("first chunk" in reason for reason in apart["ttft"])
    assert not [one for one in told.cells[0].measures if one.statistic.startswith("ttft")]
    assert all(one.verdict == "not known" for one in told.cells[0].measures)


def test_models_of_other_tools_must_be_alike(tmp_path: Path) -> None:
    """A difference that the files themselves tell is refused, unless it is the point."""
    path = put(tmp_path, {**document(VLLM), "model_id": "other/model"})
    a, b = read_side("A", (HERE / VLLM,)), read_side("B", (path,))
    with pytest.raises(Refused, match=r"model\.name .* in A, other/model in B.*--vary model\.name"):
        compared(a, b)
    assert compared(a, b, vary=("model.*",)).cells


def test_of_aggregates_nothing_is_known() -> None:
    """One run a side has a difference and no interval, whatever number of requests stands behind it."""
    a, b = read_side("A", (HERE / DETAILED,)), read_side("B", (HERE / DETAILED,))
    told = compared(a, b)
    assert told.answer.verdict == "not known" and "1 trial a side" in told.answer.sentence
    assert all(one.p_value is None for one in told.cells[0].measures)


HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["<script>", "|", "\u202e", "\u2028", "@team", "`", "\x1b[2J"]
)


@settings(max_examples=25)
@given(HOSTILE, HOSTILE)
def test_names_from_elsewhere_do_no_harm(load: str, path: str) -> None:
    """Whatever loads and paths are called, a comparison is a document that can be written and read."""
    told = compared(
        plain("A", LIKE, load=load), side("B", source([cell(trials("b", MORE), load=load)], path=path))
    )
    try:
        data = encode_comparison(told)
    except UnicodeEncodeError:
        return
    assert msgspec.json.decode(data)["answer"]["verdict"] == "worse"
