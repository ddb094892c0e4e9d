"""Charts that resemble each other: what is written of the later ones gives them whole again."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nameplate.pages.chart import Alike, differences, shared

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text("ab", max_size=2))
PLAIN: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=12,
)
SPECS = st.dictionaries(st.sampled_from(["data", "layer", "mark"]), PLAIN, min_size=3, max_size=3)


def changed(first: Any, changes: list[tuple[Any, Any]]) -> Any:
    """Change a value as the page's script does."""
    whole = copy.deepcopy(first)
    for path, value in changes:
        *before, last = path
        at = whole
        for step in before:
            at = at[step]
        at[last] = value
    return whole


@given(first=SPECS, other=SPECS)
def test_the_differences_make_one_of_the_other(first: dict[str, Any], other: dict[str, Any]) -> None:
    """A later chart is the first one with its differences set, exactly, truth values and all."""
    made = changed(first, list(differences(first, other)))
    assert msgspec.json.encode(made) == msgspec.json.encode(other) or made == other
    assert [type(made[key]) for key in other] == [type(other[key]) for key in other]


def test_the_first_of_a_kind_is_whole_and_later_ones_refer_to_it() -> None:
    """Kinds are apart from each other, and each first one has the name that later ones give."""
    alike = Alike("x")
    assert 'id="x-bars"' in str(alike.script("bars", {"height": 1}))
    assert 'id="x-lines"' in str(alike.script("lines", {"height": 1}))
    later = str(alike.script("bars", {"height": 2}))
    assert '{"like":"x-bars","set":[[["height"],2]]}' in later


def test_shared_data_writes_each_word_once() -> None:
    """A column of few words holds their places, and the words stand beside it."""
    text = str(shared("d", ("phase", "n"), [("steady", 1), ("opening", 2), ("steady", 3)], ("phase",)))
    assert '"words":{"phase":["steady","opening"]}' in text and '"rows":[[0,1],[1,2],[0,3]]' in text
