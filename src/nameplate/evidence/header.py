"""The header of a trial, written before its first request: `trial.json`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.layout import FORMAT_VERSION

Clock = Literal["live", "virtual"]


class ClockPair(Struct, frozen=True):
    """Tie the trial's monotonic clock to wall time, both in nanoseconds, read together."""

    monotonic_ns: int
    wall_ns: int


class PromptLength(Struct, frozen=True, kw_only=True):
    """State how the prompts' length was reached, and how they can be composed again.

    `method` is `tokenize` or `usage` (the server's own counts), `tokenizer.json`, `dataset` or `assumed`;
    `calibrated_tokens` is the server's count for prompts of this construction, template and prefix included.
    Of a trace, whose prompts differ in length, `counted` are (words, tokens) of composed prompts, template included,
    and those in `block_costs` of the text that stands for one of its blocks.
    """

    method: Literal["tokenize", "usage", "tokenizer.json", "dataset", "assumed"]
    words: int = 0
    letters: int = 0
    prefix_words: int = 0
    prefix_letters: int = 0
    prefix_tokens: int | None = None
    calibrated_tokens: int | None = None
    counted: tuple[tuple[int, int], ...] = ()
    block_costs: tuple[tuple[int, float], ...] = ()


class Keeping(Struct, frozen=True):
    """State what of the raw evidence is kept.

    `reads` is `all`, `none`, or `sample` with one request in `sample_every`, chosen by index; the times and
    sizes of reads are kept in every case, only their bytes are dropped.
    """

    reads: Literal["all", "none", "sample"] = "all"
    sample_every: int = 1
    prompts: bool = True

    def keeps(self, index: int) -> bool:
        """Tell whether the raw bytes of this request are kept."""
        return self.reads == "all" or (self.reads == "sample" and index % self.sample_every == 0)


class TrialHeader(Struct, frozen=True, kw_only=True):
    """Fix what a trial is before it begins.

    `command` is the command line with secrets redacted; `client_host` describes the machine that sends the
    load, never the server's. `template_floor_tokens` is how many tokens of any two prompts are shared by the
    chat template, as the cached-token counts of the probe tell; None where unknown.
    """

    version: int = FORMAT_VERSION
    contract: Contract
    plan: TrialPlan
    clock: Clock
    started: ClockPair
    command: tuple[str, ...]
    identity: Identity
    prompt_length: PromptLength
    template_floor_tokens: int | None = None
    keeping: Keeping = Keeping()
    tool_version: str = ""
    client_host: dict[str, str | int] = {}
    workers: int = 1
