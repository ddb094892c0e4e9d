"""The KV pool: blocks with reference counts, and a prefix cache of those that nobody uses (LRU)."""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from struct import Struct

from nameplate.sim.parameters import EngineParameters

_CHAIN = 0x9E3779B97F4A7C15  # golden ratio: an arbitrary, fixed start of every hash chain


def block_hashes(tokens: Sequence[int], block_tokens: int) -> list[int]:
    """Hash each full block together with all that stands before it, so equal hashes mean equal prefixes."""
    packed = tokens if isinstance(tokens, array) else array("Q", tokens)
    blocks = Struct(f"{block_tokens}{packed.typecode}")
    whole = len(packed) // block_tokens * blocks.size
    chain = _CHAIN
    hashes: list[int] = []
    for block in blocks.iter_unpack(memoryview(packed).cast("B")[:whole]):
        # A tuple of integers hashes alike in every process, unlike one of strings.
        chain = hash((chain, block))
        hashes.append(chain)
    return hashes


class Holding:
    """Keep what one request holds of the pool: shared blocks by hash, private ones by number."""

    __slots__ = ("private", "shared")

    def __init__(self) -> None:
        self.shared: list[int] = []
        self.private = 0

    @property
    def blocks(self) -> int:
        """Count the blocks held."""
        return len(self.shared) + self.private


class BlockPool:
    """Allocate blocks; a released block that carries a hash stays cached until its room is needed."""

    def __init__(self, parameters: EngineParameters) -> None:
        self.total = parameters.blocks
        self.used = 0
        self._caching = parameters.prefix_cache
        self._references: dict[int, int] = {}
        # Insertion order is age: the first is the least recently used. A plain dict would do, but finds its first entry
        # by passing all that were deleted before it: in a full pool each new block evicts one, and costs more and more.
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def cached_idle(self) -> int:
        """Count cached blocks that no request uses."""
        return len(self._idle)

    def match(self, hashes: Sequence[int]) -> int:
        """Count the leading blocks that are cached."""
        if not self._caching:
            return 0
        count = 0
        for key in hashes:
            if key not in self._references:
                break
            count += 1
        return count

    def admit(self, holding: Holding, hashes: Sequence[int], blocks: int) -> int | None:
        """Take `blocks`, those that begin with `hashes` by reference where they are cached, the rest private.

        Return how many were cached; None, with nothing changed, if there is no room.
        """
        references = self._references
        matched = self.match(hashes)
        found = hashes[:matched]
        idle = [key for key in found if not references[key]]
        if self.used + len(idle) + blocks - matched > self.total:
            return None
        for key in idle:
            del self._idle[key]
        self.used += len(idle)
        for key in found:
            references[key] += 1
        holding.shared.extend(found)
        self.allocate(holding, blocks - matched)
        return matched

    def allocate(self, holding: Holding, count: int) -> bool:
        """Take `count` private blocks, evicting the oldest cached ones; take none and say False if too few."""
        if self.used + count > self.total:
            return False
        self.used += count
        holding.private += count
        excess = self.used + len(self._idle) - self.total
        for _ in range(excess):
            del self._references[self._idle.popitem(last=False)[0]]
        return True

    def publish(self, holding: Holding, keys: Sequence[int]) -> None:
        """Let others find private blocks by their hashes; a second copy of the same content stays private."""
        if not self._caching:
            return
        references, shared = self._references, holding.shared
        before = len(shared)
        for key in keys:
            if key not in references:
                references[key] = 1
                shared.append(key)
        holding.private -= len(shared) - before

    def release(self, holding: Holding) -> None:
        """Give everything back; the end of a prompt is evicted before its head."""
        references, idle = self._references, self._idle
        before = len(idle)
        for key in reversed(holding.shared):
            count = references[key] - 1
            references[key] = count
            if not count:
                idle[key] = None
        self.used -= holding.private + len(idle) - before
        holding.shared.clear()
        holding.private = 0

    def flush(self) -> bool:
        """Forget every cached block; refuse (False) while any block is in use."""
        if self.used:
            return False
        self._references.clear()
        self._idle.clear()
        return True
