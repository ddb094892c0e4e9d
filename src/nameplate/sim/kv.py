"""The KV pool: blocks with reference counts, and a prefix cache of those that nobody uses (LRU)."""

from collections.abc import Sequence

from nameplate.sim.parameters import EngineParameters

_CHAIN = 0x9E3779B97F4A7C15  # golden ratio: an arbitrary, fixed start of every hash chain


def block_hashes(tokens: Sequence[int], block_tokens: int) -> list[int]:
    """Hash each full block together with all that stands before it, so equal hashes mean equal prefixes."""
    chain = _CHAIN
    hashes: list[int] = []
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        # A tuple of integers hashes alike in every process, unlike one of strings.
        chain = hash((chain, *tokens[start : start + block_tokens]))
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
        self._idle: dict[int, None] = {}  # insertion order is age: the first is the least recently used

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

    def share(self, holding: Holding, hashes: Sequence[int]) -> None:
        """Take references on blocks that `match` found."""
        for key in hashes:
            if self._references[key] == 0:
                del self._idle[key]
                self.used += 1
            self._references[key] += 1
            holding.shared.append(key)

    def allocate(self, holding: Holding, count: int) -> bool:
        """Take `count` private blocks, evicting the oldest cached ones; take none and say False if too few."""
        if self.used + count > self.total:
            return False
        self.used += count
        holding.private += count
        while self.used + len(self._idle) > self.total:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._references[oldest]
        return True

    def publish(self, holding: Holding, key: int) -> None:
        """Let others find a private block by its hash; a second copy of the same content stays private."""
        if self._caching and key not in self._references:
            self._references[key] = 1
            holding.private -= 1
            holding.shared.append(key)

    def release(self, holding: Holding) -> None:
        """Give everything back; the end of a prompt is evicted before its head."""
        for key in reversed(holding.shared):
            self._references[key] -= 1
            if self._references[key] == 0:
                self._idle[key] = None
                self.used -= 1
        self.used -= holding.private
        holding.shared.clear()
        holding.private = 0

    def flush(self) -> bool:
        """Forget every cached block; refuse (False) while any block is in use."""
        if self.used:
            return False
        self._references.clear()
        self._idle.clear()
        return True
