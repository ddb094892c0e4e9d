"""What a cell should hold of the KV pool by that tool's arithmetic, and whether the server contradicts it."""

from __future__ import annotations

from msgspec import Struct

from nameplate.exchange.inference_bench.foreign import Cell, Setup
from nameplate.verdict.cell import FULL_POOL

# What ran holds this many times its own part of the claim: no rounding to blocks and no scrape of a bad moment
# explains a factor of two, while prompts that are not shared after all easily give more.
CONTRADICTION = 2.0


class Claim(Struct, frozen=True):
    """Hold tokens: the shared part of the prompts, the unique part and output of each stream, and the pool."""

    shared: int
    each: int
    streams: int
    pool: int

    @property
    def tokens(self) -> int:
        return self.of(self.streams)

    @property
    def fits(self) -> bool:
        return self.tokens < FULL_POOL * self.pool

    def of(self, streams: float) -> int:
        """Return what this many of the streams should hold."""
        return self.shared + round(streams * self.each)

    def __str__(self) -> str:
        return f"{self.tokens:,} of {self.pool:,} tokens"


def claim_of(cell: Cell, setup: Setup) -> Claim | None:
    """Work out a cell's claim; None where the file does not tell the pool, the output or the sharing."""
    if setup.pool_tokens is None or setup.max_tokens is None or setup.unique_percent is None:
        return None
    unique = round(cell.context * setup.unique_percent / 100)
    return Claim(cell.context - unique, unique + setup.max_tokens, cell.concurrency, setup.pool_tokens)


def contradicted(cell: Cell, claim: Claim | None) -> bool:
    """Say whether the pool was far fuller than the claim says of the requests that really ran.

    `server_utilization` is one scrape after the window, so that a factor decides and not a difference.
    """
    if claim is None or cell.utilisation is None or not cell.running_mean:
        return False
    running = min(cell.running_mean, float(cell.concurrency))
    return cell.utilisation * claim.pool >= CONTRADICTION * claim.of(running)


def contradiction(cell: Cell, claim: Claim) -> str:
    """Say the contradiction of a cell whose requests did not all run."""
    return (
        f"KV claim contradicted: all {cell.concurrency} should need {claim}, yet {_running(cell)} ran with the pool "
        f"{cell.utilisation or 0:.0%} full"
    )


def _running(cell: Cell) -> str:
    mean = cell.running_mean or 0.0
    return f"{mean:.0f}" if mean == round(mean) else f"{mean:.1f} on average"
