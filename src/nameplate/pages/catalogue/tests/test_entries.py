"""Entries say what runs came to, and their numbers say what they may be ranked with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from nameplate.measure.plate import decode_plate
from nameplate.pages.catalogue.data import Choice, choice_of, data_of, note_of, said
from nameplate.pages.catalogue.entries import entry_of, slug_of
from nameplate.pages.catalogue.entry import Catalogue, Entry, Rating
from nameplate.pages.catalogue.tests.many import ENTRY
from nameplate.pages.gather import gather


def entry(run: Path) -> Entry:
    """Return the entry of a run."""
    trials = list(run.glob("trials/*"))
    subject = gather(trials[0] if run.name == "trial" else run)
    return entry_of(subject, run.name, "slug", "0" * 64, (str(run),))


def test_a_capacity_study_is_rated_by_shape_and_promise(made_runs: Path) -> None:
    """Its number is the plate's, with policy and certificate beside it, and the server's facts are the facets."""
    found = entry(made_runs / "capacity")
    shape = decode_plate((made_runs / "capacity/plate.json").read_bytes()).shapes[0]
    first = found.ratings[0]
    assert (first.measure, first.of, first.promise) == ("capacity", "64/8", "ttft p95 < 20 ms")
    assert (first.value, first.status, first.operate_at) == (shape.rated, shape.status, shape.operate_at)
    assert first.at_least is (shape.status == "open_above")
    assert "confirmations 1" in first.under and first.under.startswith("cold, chat")
    assert (found.gpu, found.gpus, found.quantisation) == ("NVIDIA H200", 4, "fp8")
    assert (found.time, found.status, found.digest is None) == ("simulated", shape.status, False)
    assert {one.measure for one in found.ratings[1:]} == {"decode", "prefill"}


@pytest.mark.parametrize(
    ("name", "status", "measures"),
    [
        ("rate", None, {"rate", "decode", "prefill"}),
        ("curve", "finished", {"knee", "best_output", "output"}),
        ("speed", "finished", {"best_decode", "best_output", "best_prefill", "output", "decode", "prefill"}),
        ("soak", "pass", {"soak_output"}),
        ("trial", "pass", {"output"}),
        ("import", "imported", {"output", "decode"}),
    ],
)
def test_each_kind_has_its_numbers(
    made_runs: Path, name: str, status: str | None, measures: set[str]
) -> None:
    """Every kind of run has an entry with its own measures, terms and an answer in words."""
    found = entry(made_runs / name)
    assert found.kind == name and found.terms
    assert status is None or found.status == status
    assert {one.measure for one in found.ratings} == measures
    assert all(one.of or one.measure.startswith("best_") for one in found.ratings)
    assert name in ("import", "trial") or found.answer


def test_a_best_number_names_its_cell_and_what_it_was_chosen_from(made_runs: Path) -> None:
    """The best of one matrix is not ranked with the best of another."""
    found = {
        one.measure: one for one in entry(made_runs / "speed").ratings if one.measure.startswith("best_")
    }
    assert found["best_output"].detail == "1K context x 2"
    assert found["best_output"].under.endswith("of 1K by 1/2")
    assert found["best_decode"].detail == "1K context"


def test_a_study_without_its_trials_does_not_say_that_it_was_live(runs: Callable[..., Path]) -> None:
    """Where nothing tells which clock it was, it is not stated."""
    folder = runs("capacity")
    for path in sorted((folder / "capacity/trials").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert entry(folder / "capacity").time is None


@pytest.mark.parametrize(
    "changed",
    [{"of": "512/65"}, {"promise": "ttft p95 < 251 ms"}, {"under": "warm:256, chat"}, {"measure": "rate"}],
)
def test_only_like_numbers_are_ranked_together(changed: dict[str, str]) -> None:
    """A number of another measure, shape, promise or condition is another choice; so is simulated time."""
    one = ENTRY.ratings[0]
    other = structs.replace(one, **changed)
    assert choice_of(one, "live") != choice_of(other, "live")
    assert choice_of(one, "live") != choice_of(one, "simulated")
    assert choice_of(one, "live") == choice_of(structs.replace(one, value=3.0, status="noisy"), "live")


def test_choices_keep_their_name_from_site_to_site() -> None:
    """A shared address finds its number in tomorrow's site: the name does not depend on what else is there."""
    other = structs.replace(ENTRY, ratings=(structs.replace(ENTRY.ratings[0], of="1k/1k"), *ENTRY.ratings))

    def named(*entries: Entry) -> set[str]:
        held = Catalogue(title="", entries=entries, unreadable=(), tool_version="")
        return {one.id for one in data_of(held).choices}

    assert named(ENTRY) < named(other, ENTRY)
    assert all(
        isinstance(one, Choice)
        for one in data_of(Catalogue(title="", entries=(ENTRY,), unreadable=(), tool_version="")).choices
    )


def test_numbers_are_written_with_what_goes_with_them() -> None:
    """A lower bound says so; nothing is written for what is absent."""
    one = ENTRY.ratings[0]
    assert said(one) == "9 concurrent"
    assert said(structs.replace(one, at_least=True)) == "at least 9 concurrent"
    assert said(structs.replace(one, value=None)) == ""
    assert said(Rating(measure="rate", of="", value=16.1, unit="req/s")) == "16.1 req/s"
    assert note_of(one) == "operate at 8; certified at 95%, at most 3.1% over"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Night run", "night-run-"),
        ("../../etc", "etc-"),
        ("\u202e<b>", "b-"),
        ("名", "run-"),
        ("x" * 900, "x" * 48 + "-"),
    ],
)
def test_slugs_are_safe_everywhere(name: str, slug: str) -> None:
    """A folder's name has lower-case letters, digits and hyphens, and is bounded."""
    assert slug_of(name, "abcdef0123456789") == slug + "abcdef012345"
