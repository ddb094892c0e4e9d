"""GPUs are read from the words of hosts, people and engines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.identity import Fact, Identity
from nameplate.pages.catalogue.machine import gpus_of, machine


@pytest.mark.parametrize(
    ("words", "name", "count"),
    [
        (None, None, None),
        ("4 x NVIDIA H200", "NVIDIA H200", 4),
        ("4x B70", "B70", 4),
        ("1 × H200 NVL", "H200 NVL", 1),
        ("1 x A, 2 x B", "A, B", 3),
        ("GPU 0: NVIDIA H200 GPU 1: NVIDIA H200", "NVIDIA H200", 2),
        ("GPU 0: NVIDIA L4 (UUID: GPU-12) GPU 1: NVIDIA L40", "NVIDIA L4, NVIDIA L40", 2),
        ("NVIDIA GB200 NVL72", "NVIDIA GB200 NVL72", None),
        ("AMD EPYC 9654, 96 CPUs, no GPU reported", None, None),
        ("Xeon, 8 threads; no tool lists a GPU", None, None),
        ("none: a model of an engine", None, None),
    ],
)
def test_name_and_count_are_told_apart(words: str | None, name: str | None, count: int | None) -> None:
    """A machine without GPUs has neither; a count that nobody gave is not one."""
    assert gpus_of(words) == (name, count)


@settings(max_examples=60)
@given(st.text("0123 xX×,GPU:ab\n\x00\u202e", max_size=40))
def test_any_words_give_a_name_or_none(words: str) -> None:
    """Nothing that a server calls its hardware is in the way, and a count is never below one."""
    name, count = gpus_of(words)
    assert count is None or (name is not None and count >= 0)


def test_what_is_not_stated_is_null() -> None:
    """The asked model stands where the server tells none; hostile text is made harmless and short."""
    known = machine(Identity(), "asked/model")
    assert (known.model, known.gpu, known.engine, known.quantisation) == ("asked/model", None, None, None)
    hostile = machine(Identity({"model": Fact("a\u202e" + "x" * 10**6, "it")}))
    assert hostile.model is not None and "\u202e" not in hostile.model and len(hostile.model) < 300
