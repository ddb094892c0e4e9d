"""A trial's evidence as values, read from its directory: what a trial seals by and what `verify` starts from."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Identity
from nameplate.engines.idle import IdleReport
from nameplate.engines.state import Histograms, ServerSample, ServerState
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind, Record
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.hosts.sample import GpuSample, read_samples
from nameplate.measure.held import held_of
from nameplate.measure.rebuild import PromptFacts, rebuild
from nameplate.measure.trace_on_disk import read_header
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.prompts.body import prompt_hashes, user_text_of
from nameplate.prompts.store import PromptStore
from nameplate.prompts.text import shared_prefix
from nameplate.schedule.stage import Requests

# Entries of a trial's journal that its result depends on.
STARTED, ENDED, INTERRUPTED = "trial_started", "trial_ended", "interrupted"
LOAD_ENDED = "load_ended"
IDLE, IDLE_WAIT, IDENTITY = "idle", "idle_wait", "identity"


def load_evidence(directory: Path) -> TrialEvidence:
    """Read a trial's files; EvidenceError where it is none.

    A request that was sent and has no row (the client was killed) gets the row that its raw reads give: unfinished.
    """
    reader = TrialReader(directory)
    header = read_header(reader)
    requests = Requests(header.plan)
    rows = {row.index: row for row in reader.rows()}
    journal = reader.journal()
    reads = _Reads(requests)
    try:
        for record in reader.records():
            reads.take(record)
    except ValueError as error:
        reader.torn.append(f"{layout.READS} is damaged: {error}")
    timelines = {timeline.index: timeline for timeline in _tolerant(reader)}
    orphans = sorted(reads.started - rows.keys())
    if orphans:
        prompts = read_prompts(reader, header, {requests.prompt(index) for index in orphans})
        wanted = set(orphans)
        records = (record for record in reader.records() if record.request in wanted)
        for rebuilt in rebuild(records, header.plan, header.contract.target.api, prompts, {}):
            rows[rebuilt.row.index] = rebuilt.row
            timelines[rebuilt.row.index] = rebuilt.timeline
    samples = reader.lines(layout.SERVER, ServerSample)
    gpus = read_gpu_samples(reader)
    held = [rows[index] for index in sorted(rows)], [timelines[index] for index in sorted(timelines)]
    return evidence_of(header, journal, samples, *held, reads.totals, reader.torn, gpus)


class ReadTotals(Struct):
    """Hold what the wire's history tells beside the rows: how late reads were, and when it ends.

    All but `last_ns` are of reads of measured requests.
    """

    since_empty_ns: array[int] = field(default_factory=lambda: array("q"))
    arrival_doubt_ns: array[int] = field(default_factory=lambda: array("q"))
    user_stamped: int = 0
    last_ns: int = 0


def evidence_of(
    header: TrialHeader,
    journal: list[JournalEntry],
    samples: Sequence[ServerSample],
    rows: Sequence[RequestRow],
    timelines: Sequence[Timeline],
    reads: ReadTotals,
    damage: Iterable[str],
    gpu_samples: Sequence[GpuSample] = (),
) -> TrialEvidence:
    """Put a trial's evidence together from what its files hold; rows and timelines by index."""
    return TrialEvidence(
        contract=header.contract,
        plan=header.plan,
        clock=header.clock,
        rows=rows,
        timelines=timelines,
        since_empty_ns=reads.since_empty_ns,
        arrival_doubt_ns=reads.arrival_doubt_ns,
        user_stamped_reads=reads.user_stamped,
        samples=samples,
        idle_before=_idle(journal, "before"),
        idle_after=_idle(journal, "after"),
        histograms_before=_histograms(journal, "before"),
        histograms_after=_histograms(journal, "after"),
        busy_before=_busy_before(journal),
        identity_before=header.identity,
        identity_after=_identity_after(journal),
        template_floor_tokens=header.template_floor_tokens,
        shared_prefix_tokens=header.prompt_length.prefix_tokens,
        held=held_of(journal),
        gpu_samples=gpu_samples,
        damage=tuple(dict.fromkeys(damage)),
        workers=header.workers,
        interrupted=any(entry.what == INTERRUPTED for entry in journal),
        overrun=any(entry.what == LOAD_ENDED and entry.detail.get("overrun") is True for entry in journal),
        started_ns=_moment(journal, STARTED, header.started.monotonic_ns),
        ended_ns=_moment(journal, ENDED, reads.last_ns or header.started.monotonic_ns),
    )


def read_gpu_samples(reader: TrialReader) -> list[GpuSample]:
    """Read what was sampled of the server's GPUs; empty where nothing was."""
    path = reader.path(layout.GPU)
    return read_samples(path)[0] if path.exists() else []


def read_prompts(
    reader: TrialReader, header: TrialHeader, indices: Iterable[int] | None = None
) -> dict[int, PromptFacts]:
    """Read what the kept bodies tell of their prompts; empty where none were kept."""
    path = reader.path(layout.PROMPTS)
    if not path.exists():
        return {}
    prefix_chars = len(prefix_of(header))
    facts: dict[int, PromptFacts] = {}
    with PromptStore.open(path) as store:
        if store.torn:
            reader.torn.append(f"{layout.PROMPTS}: {store.torn}")
        for index in store.indices() if indices is None else indices:
            if index in store:
                facts[index] = prompt_facts(
                    store.body(index), prefix_chars, header.contract.target.limit_field
                )
    return facts


def prompt_facts(body: bytes, prefix_chars: int, limit_field: str) -> PromptFacts:
    """Return a body's hashes and its asked output length; EvidenceError where it is no request body."""
    try:
        text = user_text_of(body)
        asked = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get(limit_field)
        tokens = msgspec.json.decode(asked, type=int) if asked is not None else 0
    except (ValueError, msgspec.MsgspecError) as error:
        raise EvidenceError(f"A kept prompt is not a request body: {error}.") from error
    hashes = prompt_hashes(text, prefix_chars)
    return PromptFacts(hashes.sha256, hashes.head_sha256, tokens)


def prefix_of(header: TrialHeader) -> str:
    """Return the text that all prompts of a trial begin with; empty for a cold contract."""
    length = header.prompt_length
    if not length.prefix_words:
        return ""
    return shared_prefix(header.contract.nonce, length.prefix_words, length.prefix_letters)


def arrival_doubt_ns(record: Record) -> int:
    """Return how much too late the stamp of this read's events may be, in nanoseconds.

    The kernel's stamp is that of a read's newest bytes: exact for one event, however late the read was. The events
    before it came at some time since the socket was last empty. Bytes that were not kept count as several events.
    """
    if record.delay_ns >= 0 and record.kind == Kind.READ and record.payload.count(b"data:") <= 1:
        return 0
    return record.since_empty_ns


class _Reads:
    """Collect from the wire's history what the rows do not hold: which requests began, and how late reads were."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._measured: dict[int, bool] = {}
        self.started: set[int] = set()
        self.totals = ReadTotals()

    def take(self, record: Record) -> None:
        kind, totals = record.kind, self.totals
        if kind in (Kind.READ, Kind.BARE):
            measured = self._measured.get(record.request)
            if measured is None:
                measured = self._measured[record.request] = self._requests.measured(record.request)
            if measured:
                totals.since_empty_ns.append(record.since_empty_ns)
                totals.arrival_doubt_ns.append(arrival_doubt_ns(record))
                if record.delay_ns < 0:
                    totals.user_stamped += 1
        elif kind == Kind.SENT:
            self.started.add(record.request)
        totals.last_ns = record.t_ns


def _tolerant(reader: TrialReader) -> Iterable[Timeline]:
    try:
        yield from reader.timelines()
    except ValueError as error:
        reader.torn.append(f"{layout.EVENTS} is damaged: {error}")


def _moment(journal: list[JournalEntry], what: str, otherwise_ns: int) -> int:
    return next((entry.t_ns for entry in journal if entry.what == what), otherwise_ns)


def _idle(journal: list[JournalEntry], moment: str) -> ServerSample | None:
    found = _of_idle(journal, moment, "sample")
    return None if found is None else msgspec.convert(found, ServerSample)


def _histograms(journal: list[JournalEntry], moment: str) -> Histograms | None:
    found = _of_idle(journal, moment, "histograms")
    return None if found is None else msgspec.convert(found, Histograms)


def _of_idle(journal: list[JournalEntry], moment: str, part: str) -> object:
    for entry in journal:
        if entry.what == IDLE and entry.detail.get("moment") == moment and part in entry.detail:
            return entry.detail[part]
    return None


def _busy_before(journal: list[JournalEntry]) -> int:
    """Return how many requests the server still held when the wait for it to become idle was given up."""
    for entry in journal:
        if entry.what == IDLE_WAIT:
            report = msgspec.convert(entry.detail, IdleReport)
            return (report.running or 0) + (report.waiting or 0) if report.status == "busy" else 0
    return 0


def _identity_after(journal: list[JournalEntry]) -> Identity | None:
    for entry in journal:
        if entry.what == IDENTITY and entry.detail.get("moment") == "after":
            return msgspec.convert(entry.detail["identity"], Identity)
    return None


def idle_detail(moment: str, state: ServerState) -> dict[str, object]:
    """Return the journal entry's detail for a reading of the idle server, its histograms' buckets included."""
    return {
        "moment": moment,
        "sample": structs.asdict(ServerSample.of(state)),
        "histograms": msgspec.to_builtins(state.histograms),
    }


def identity_detail(moment: str, identity: Identity) -> dict[str, object]:
    """Return the journal entry's detail for a reading of the server's identity."""
    return {"moment": moment, "identity": msgspec.to_builtins(identity)}
