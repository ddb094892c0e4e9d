"""What a load process is told: everything it needs, in one value."""

from __future__ import annotations

from msgspec import Struct

from nameplate.client.standing import Scheduling
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.soak import Soak
from nameplate.contract.target import Credentials, Target
from nameplate.evidence.header import Keeping
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.soak_events import RawKept
from nameplate.schedule.stage import Stage


class Ask(Struct, frozen=True, array_like=True):
    """Describe one prompt of the store: what its row says of it before an answer exists."""

    class_name: str
    output_tokens: int
    prompt_sha256: str
    head_sha256: str


class LoadOrder(Struct, frozen=True, kw_only=True):
    """Order one load: which stages, against which server, with which prompts, into which directory.

    `asks[i]` describes the body at index i of the prompt store; of a soak, whose prompts are written while it runs, the
    store's notes do. With several workers, worker `worker` of
    `workers` serves the slots s with s % workers == worker, and all take indices from the counter at
    `counter_path`. `new_connections` opens a fresh connection for every request.
    Where this worker has `outstanding_limit` requests unanswered, an open loop ends: a soak's by a drain, any other at
    once. With
    `raise_scheduling` the processes ask for real-time scheduling (`standing`).
    """

    target: Target
    credentials: Credentials
    deadlines: Deadlines
    stages: tuple[Stage, ...]
    asks: tuple[Ask, ...]
    directory: str
    prompts_path: str
    keeping: Keeping
    soak: Soak | None = None
    new_connections: bool = False
    outstanding_limit: int | None = None
    raise_scheduling: bool = True
    worker: int = 0
    workers: int = 1
    counter_path: str | None = None


class Progress(Struct, frozen=True, kw_only=True):
    """Report what happened since the last report; `first_outputs` holds (index, TTFT in ns) of measured requests.

    `stage` is the running stage's name, `started` and `ended` count its requests. It began at `began_ns`, and starts
    nothing more from `submitted_ns` on, once that is known; `overrun` says that too many unanswered requests ended it.
    `kept` are changes in what is kept of raw reads.
    """

    t_ns: int
    stage: str
    began_ns: int | None = None
    submitted_ns: int | None = None
    overrun: bool = False
    started: int
    ended: int
    in_flight: int
    rows: tuple[RequestRow, ...] = ()
    first_outputs: tuple[tuple[int, int], ...] = ()
    waiting_since: tuple[tuple[int, int], ...] = ()
    kept: tuple[RawKept, ...] = ()


class Finished(Struct, frozen=True, kw_only=True):
    """Close a load's reports: `failure` says why it ended early through a fault of this machine, or is None.

    `cpu_s` is the process's whole CPU time, `startup_cpu_s` what of it went before the load began. `major_faults`
    counts how often it had to wait for the disk to get its own code or data back.
    """

    cancelled: bool
    overrun: bool = False
    failure: str | None = None
    reads: int = 0
    cpu_s: float = 0.0
    startup_cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    major_faults: int = 0
    memory_locked: bool = False
    scheduling: Scheduling = "normal"
