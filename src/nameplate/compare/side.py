"""What is compared: two sides, each of one or several results, with cells of trials under the same load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from nameplate.compare.measures import Statistic
from nameplate.contract.identity import Value
from nameplate.exchange.peers.run import Run

# A term is one fact of a contract, a load or an identity, by its dotted name; None is not known.
Terms = Mapping[str, Value | None]

Kind = Literal["trial", "capacity", "rate", "curve", "speed", "soak", "import"]


class Observed(Struct, frozen=True):
    """Hold one number of one trial.

    `value` is null where there is none: `infinite` where it reaches requests that failed, `open` where it reaches
    requests that were cut and may have ended well. `unsupported`: too few requests carry this percentile. Of an error
    rate `count` of `n` failed.
    """

    value: float | None
    n: int | None = None
    infinite: bool = False
    open: bool = False
    unsupported: bool = False
    count: int | None = None


class Member(Struct, frozen=True, kw_only=True):
    """Hold one valid trial: its key, what its prompts are a function of, and its numbers.

    `session` is when the server's process began, where it is known; `run` is the trial as a run of any tool, with the
    definitions of its measures. `meanings` are what measures of an imported matrix mean there; ours have none.
    """

    key: str
    nonce: str
    observed: Mapping[Statistic, Observed]
    session: str | None = None
    run: Run | None = None
    meanings: Mapping[str, str] = {}


class Cell(Struct, frozen=True, kw_only=True):
    """Hold the trials of one load.

    `group` keeps apart what is measured in different ways (`trial`, `baseline`, the kinds of a speed matrix), `load`
    is as people write it. `terms` are of the plan. `left_out` are trials that do not count, with the reason.
    """

    group: str
    shape: str
    load: str
    terms: Terms
    members: tuple[Member, ...]
    left_out: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """Name the cell with everything that tells it from others."""
        group = "" if self.group == "trial" else f"{self.group} "
        return f"{group}{self.shape}, {self.load}" if self.shape else f"{group}{self.load}"


class Rated(Struct, frozen=True, kw_only=True):
    """Hold a shape's rated number with the levels that hold it, as values: clients, or requests a second.

    `passes` is the highest level that passed below every other, `fails` the lowest that failed above it, and
    `below` the last level under that: as far as the boundary may reach.
    """

    shape: str
    unit: str
    rated: float | None
    passes: float | None
    fails: float | None
    below: float | None
    status: str
    levels: tuple[str, ...] = ()


class Source(Struct, frozen=True, kw_only=True):
    """Hold one result on disk: what it is, its terms, its cells and its rated numbers.

    `promises` are the SLOs as statistics. `tool` says whose numbers these are, `notes` what must be known of them.
    """

    path: str
    kind: Kind
    tool: str
    terms: Terms
    cells: tuple[Cell, ...]
    promises: tuple[Statistic, ...] = ()
    rated: tuple[Rated, ...] = ()
    notes: tuple[str, ...] = ()


class Side(Struct, frozen=True):
    """Hold one side, `A` or `B`: what its path holds, each result apart."""

    name: str
    path: str
    sources: tuple[Source, ...]

    @property
    def foreign(self) -> bool:
        """Say whether another tool measured any of it."""
        return any(source.kind == "import" for source in self.sources)
