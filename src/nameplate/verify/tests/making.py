"""Make real evidence in simulated time, and change it so that everything else stays consistent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from nameplate import zstd
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Credentials, Target
from nameplate.evidence import layout, manifest, timeline
from nameplate.evidence.frames import read_frames
from nameplate.evidence.header import Keeping
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import HEADER, Kind, Record, unpack
from nameplate.measure import from_disk
from nameplate.measure.rebuild import rebuild
from nameplate.measure.result import encode, evaluate
from nameplate.measure.trace_on_disk import read_header
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan
from nameplate.sim.presets import DEMO
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import Conditions, conduct, prepare
from nameplate.trial.ground import VirtualGround
from nameplate.trial.interruption import Interruption
from nameplate.trial.life import TrialSetup, Watch, run_trial
from nameplate.trial.site import Site, build_corpus, survey

SMALL = {
    "quiet_s": 0.0,
    "requests": 6,
    "warmup": 1,
    "locator_warmup": 1,
    "baseline_requests": 4,
    "confirmations": 2,
}


class Unwatched:
    """Watch nothing."""

    def tell(self, *_: object) -> None: ...

    def finished(self, *_: object, **__: object) -> None: ...

    def step(self, plan: object, what: str) -> None: ...

    def progress(self, *_: object) -> None: ...

    def estimate(self, *_: object) -> None: ...


def make_trial(
    directory: Path,
    *,
    shape: str = "64/8",
    concurrency: int = 2,
    requests: int = 6,
    warmup: int = 2,
    slo: str = "ttft p95 < 10s",
    keeping: Keeping | None = None,
    faults: FaultPlan | None = None,
    app: App | None = None,
    site: Site | None = None,
    name: str = "t",
    **plan: Any,
) -> None:
    """Run and seal one trial against the built-in engine in simulated time; `faults` begin with the trial.

    Without a `site` the engine (or `app`) is surveyed first; on one site each trial has a name of its own.
    """
    app = app or App(DEMO)
    site = site or surveyed(app)
    asked = Shape.parse(shape)
    contract = Contract(site.target, (asked,), (Slo.parse(slo),), "nonce")
    setup = TrialSetup(
        site=site,
        contract=contract,
        credentials=Credentials(),
        keeping=keeping or Keeping(),
        command=("nameplate", "trial"),
        client_host={},
        interruption=Interruption(),
        watch=Unwatched(),
    )
    corpus = build_corpus(site, asked, contract.cache, "nonce", _unnoted)
    if faults is not None:
        # Only now: a probe that meets them would refuse to measure.
        app._faults = faults
    run_trial(
        setup, TrialPlan(name, "single", asked, concurrency, requests, warmup, **plan), corpus, directory
    )


def surveyed(app: App) -> Site:
    """Survey an engine in simulated time."""
    return survey(VirtualGround(app), Target("http", "sim", 80), Sampling(), "nonce", _unnoted)


def wanted_rate(**rules: Any) -> Contract:
    """Return the contract of a small rate study."""
    rate = RateRules(resolution=0.5, guess_per_s=250.0)
    return structs.replace(
        wanted(**{"requests": 60, **rules}), slos=(Slo.parse("ttft p95 < 60ms"),), rate=rate
    )


def wanted(**rules: Any) -> Contract:
    """Return the contract of a small capacity study."""
    return Contract(
        Target("http", "sim", 80),
        (Shape(64, 8),),
        (Slo.parse("ttft p95 < 15ms"),),
        "nonce",
        rules=Rules(**{**SMALL, **rules}),
    )


def conditions(keeping: Keeping | None = None, watch: Watch | None = None) -> Conditions:
    """Return what surrounds a study on the built-in engine in simulated time."""
    return Conditions(
        ground=VirtualGround(App(DEMO)),
        credentials=Credentials(),
        keeping=keeping or Keeping(),
        command=("nameplate", "capacity"),
        client_host={},
        interruption=Interruption(),
        watch=watch or Unwatched(),
    )


def make_study(directory: Path, *, keeping: Keeping | None = None, **rules: Any) -> None:
    """Conduct a small capacity study against the built-in engine in simulated time."""
    conduct(prepare(conditions(keeping), wanted(**rules), StudyArchive.create(directory)))


def _unnoted(what: str, **_detail: object) -> None: ...


def seal_study(directory: Path) -> None:
    """Seal a study's directory again, and let its plate name the new manifest."""
    digest = StudyArchive.open(directory).seal()
    path = directory / layout.PLATE
    plate = msgspec.json.decode(path.read_bytes())
    plate["study_manifest_sha256"] = digest
    path.write_bytes(msgspec.json.encode(plate))


def edit_study(directory: Path, name: str, change: Callable[[Any], None]) -> None:
    """Change one JSON document of a study and seal again."""
    path = directory / name
    document = msgspec.json.decode(path.read_bytes())
    change(document)
    path.write_bytes(msgspec.json.encode(document))
    seal_study(directory)


# -- changing evidence ----------------------------------------------------------------------------------------------


def reseal(directory: Path) -> None:
    """Write the manifest of what is there now."""
    names = [path.name for path in directory.iterdir() if path.name != layout.MANIFEST]
    manifest.seal(directory, names)


def edit_json(directory: Path, name: str, change: Callable[[Any], None]) -> None:
    """Change one JSON document and seal again."""
    path = directory / name
    document = msgspec.json.decode(path.read_bytes())
    change(document)
    path.write_bytes(msgspec.json.encode(document))
    reseal(directory)


def edit_lines(directory: Path, name: str, change: Callable[[list[Any]], None]) -> None:
    """Change the entries of a JSON-lines file and seal again."""
    path = directory / name
    entries = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    change(entries)
    path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    reseal(directory)


def records_of(directory: Path) -> list[Record]:
    """Return all records of the wire's history."""
    return [record for frame in read_frames(directory / layout.READS) for record in unpack(frame)]


def write_records(directory: Path, records: Iterable[Record]) -> None:
    """Replace the wire's history and seal again."""
    write_frames(directory, layout.READS, [b"".join(map(packed, records))])


def packed(record: Record) -> bytes:
    """Pack one record as the client does."""
    return HEADER.pack(*record[:6]) + record.payload


def write_frames(directory: Path, name: str, frames: Sequence[bytes]) -> None:
    """Replace a file of frames and seal again."""
    options = {int(zstd.CompressionParameter.checksum_flag): 1}
    (directory / name).write_bytes(b"".join(zstd.compress(frame, options=options) for frame in frames))
    reseal(directory)


def edit_stream(directory: Path, index: int, old: bytes, new: bytes) -> None:
    """Replace text of equal length in one request's raw reads, and let rows and result follow."""
    assert len(old) == len(new)
    records = [
        record._replace(payload=record.payload.replace(old, new)) if record.request == index else record
        for record in records_of(directory)
    ]
    assert records != records_of(directory)
    write_records(directory, records)
    follow(directory)


def follow(directory: Path) -> None:
    """Make rows, timelines and result again from raw reads, as a client that saw them would have."""
    reader = TrialReader(directory)
    header = read_header(reader)
    rows = {row.index: row for row in reader.rows()}
    prompts = from_disk.read_prompts(reader, header)
    rebuilt = list(rebuild(reader.records(), header.plan, header.contract.target.api, prompts, rows))
    (directory / layout.REQUESTS).write_bytes(
        b"".join(msgspec.json.encode(one.row) + b"\n" for one in rebuilt)
    )
    write_frames(directory, layout.EVENTS, [b"".join(timeline.pack(one.timeline) for one in rebuilt)])
    (directory / layout.RESULT).write_bytes(encode(evaluate(from_disk.load_evidence(directory))))
    reseal(directory)


def record(kind: Kind, request: int, t_ns: int, payload: bytes = b"") -> Record:
    """Return one record that is no read."""
    return Record(int(kind), request, t_ns, 0, 0, len(payload), payload)
