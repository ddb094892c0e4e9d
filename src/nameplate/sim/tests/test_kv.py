"""Blocks are neither lost nor used twice."""

from array import array

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nameplate.sim.kv import BlockPool, Holding, block_hashes
from nameplate.sim.parameters import EngineParameters

PARAMETERS = EngineParameters(kv_tokens=40, block_tokens=4, context_tokens=40)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 9), st.data())
def test_hashes_agree_exactly_as_far_as_the_prompts_do(
    tokens: list[int], block: int, data: st.DataObject
) -> None:
    """Changing one token changes the hash of its block and of all later ones, and no earlier one."""
    hashes = block_hashes(tokens, block)
    assert len(hashes) == len(tokens) // block
    if tokens:
        where = data.draw(st.integers(0, len(tokens) - 1))
        changed = [*tokens[:where], tokens[where] + 1, *tokens[where + 1 :]]
        same = where // block
        other = block_hashes(changed, block)
        assert other[:same] == hashes[:same]
        assert all(a != b for a, b in zip(other[same:], hashes[same:], strict=True))


def test_the_least_recently_used_block_is_evicted_first() -> None:
    """When room is needed the oldest unused blocks go, the end of a prompt before its head."""
    pool = BlockPool(PARAMETERS)
    for key in (1, 2):
        holding = Holding()
        assert pool.allocate(holding, 4)
        pool.publish(holding, [key * 10 + part for part in range(4)])
        pool.release(holding)
    assert pool.used == 0 and pool.cached_idle == 8
    large = Holding()
    assert pool.allocate(large, 5)
    assert pool.match([10, 11, 12, 13]) == 1
    assert pool.match([20, 21, 22, 23]) == 4


def test_a_shared_block_is_freed_by_its_last_user() -> None:
    """Two requests on one prefix hold its blocks once, until both are gone."""
    pool = BlockPool(PARAMETERS)
    first, second = Holding(), Holding()
    pool.allocate(first, 2)
    pool.publish(first, [1, 2])
    assert pool.admit(second, [1, 2], 2) == 2
    assert pool.used == 2
    pool.release(first)
    assert pool.used == 2
    assert not pool.flush()
    pool.release(second)
    assert pool.used == 0
    assert pool.flush() and pool.match([1, 2]) == 0


def test_who_finds_no_room_changes_nothing() -> None:
    """Cached blocks that nobody uses count as room only once: taking them leaves less for the rest of the prompt."""
    pool = BlockPool(PARAMETERS)
    first, second = Holding(), Holding()
    pool.allocate(first, 4)
    pool.publish(first, [1, 2, 3, 4])
    pool.release(first)
    assert pool.admit(second, [1, 2, 3, 4], 11) is None
    assert (pool.used, pool.cached_idle, second.blocks) == (0, 4, 0)
    assert pool.admit(second, [1, 2, 5], 10) == 2
    assert (pool.used, pool.cached_idle, second.blocks) == (10, 0, 10)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 9))
def test_hashes_are_of_the_numbers_however_they_are_kept(tokens: list[int], block: int) -> None:
    """A list and a packed array of the same tokens are the same prompt."""
    assert block_hashes(array("I", tokens), block) == block_hashes(tokens, block)


def test_too_large_a_wish_takes_nothing() -> None:
    """An allocation that does not fit leaves the pool as it was."""
    pool = BlockPool(PARAMETERS)
    holding = Holding()
    assert not pool.allocate(holding, 11)
    assert (pool.used, holding.blocks) == (0, 0)


def test_without_a_prefix_cache_nothing_is_found() -> None:
    """Caching that is off neither keeps nor finds."""
    pool = BlockPool(msgspec.structs.replace(PARAMETERS, prefix_cache=False))
    holding = Holding()
    pool.allocate(holding, 1)
    pool.publish(holding, [1])
    pool.release(holding)
    assert pool.match([1]) == 0
