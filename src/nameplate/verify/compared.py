"""A segment's requests as they are rebuilt from raw reads, each held against its row and its body, then forgotten.

Whatever a segment's length, some forty bytes a request stay in memory: where its row begins, where its body lies, and
first bytes of the digests of its prompt, its prompt's head and its events' times.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise

from nameplate.contract.errors import EvidenceError
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.from_disk import prompt_facts
from nameplate.measure.rebuild import PromptFacts, Rebuilt
from nameplate.prompts.store import PromptStore
from nameplate.schedule.stage import Requests
from nameplate.verify.check import Counts
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name
from nameplate.verify.prompts import Expected, check_body
from nameplate.verify.rows import compare_row
from nameplate.wire.outcome import Outcome

_NOT_KEPT = (1 << 64) - 1


class BodyFile(Mapping[int, PromptFacts]):
    """Read the facts of kept bodies by index, one by one; a body that departs from the contract is a failure."""

    def __init__(self, store: PromptStore, header: TrialHeader, prefix: str, ledger: Ledger) -> None:
        self._store, self._ledger, self._prefix = store, ledger, prefix
        self._expected = Expected(header)
        self._limit_field = header.contract.target.limit_field
        self._last: tuple[int, PromptFacts] | None = None

    def __getitem__(self, index: int) -> PromptFacts:
        if self._last is not None and self._last[0] == index:
            return self._last[1]
        if index not in self._store:
            raise KeyError(index)
        body = self._store.body(index)
        facts = prompt_facts(body, len(self._prefix), self._limit_field)
        departure = self._expected.departure(index, body, facts.output_tokens, self._prefix)
        if departure is not None:
            self._ledger.fail(Name.prompts_as_sent, f"the body of request {index} {departure}")
        self._last = (index, facts)
        return facts

    def __iter__(self) -> Iterator[int]:
        return iter(self._store.indices())

    def __len__(self) -> int:
        return len(self._store)


class Compared:
    """Take rebuilt requests and hold them against what was recorded; see `verify.history.Ended`."""

    def __init__(
        self,
        header: TrialHeader,
        rows: Mapping[int, RequestRow],
        bodies: BodyFile | None,
        ledger: Ledger,
    ) -> None:
        self._rows, self._bodies, self._ledger = rows, bodies, ledger
        self._requests = Requests(header.plan)
        self._written_by = header.tool_version
        self._seen = bytearray()
        self._events = array("Q")
        self._count = 0
        self.prompts = array("Q")
        self.heads = array("Q")
        self.rowless = self.rowless_ended = 0
        self.bare = 0
        self.empty: list[int] = []
        self.counts = Counts()
        self._streams = self._output_events = self._output_tokens = self._output_bytes = 0

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and 0 <= index < len(self._seen) and bool(self._seen[index])

    def __len__(self) -> int:
        return self._count

    def take(self, rebuilt: Rebuilt) -> None:
        """Compare one request."""
        row, index = rebuilt.row, rebuilt.row.index
        self._note(index, rebuilt.timeline if rebuilt.whole else None)
        self.bare += not rebuilt.whole
        recorded = self._rows.get(index)
        if recorded is None:
            self.rowless += 1
            self.rowless_ended += row.outcome not in (Outcome.unfinished, Outcome.cancelled)
        elif recorded != row:
            compare_row(recorded, row, not rebuilt.whole, self._ledger, written_by=self._written_by)
        trusted = row if rebuilt.whole or recorded is None else recorded
        self.prompts.append(_head_of(trusted.prompt_sha256))
        self.heads.append(_head_of(trusted.prompt_head_sha256))
        self._body(row if recorded is None else recorded)
        self._sum(trusted)

    def _note(self, index: int, timeline: Timeline | None) -> None:
        if index >= len(self._seen):
            missing = index + 1 - len(self._seen)
            self._seen.extend(bytes(missing))
            self._events.extend([0] * missing)
        self._seen[index] = 1
        self._count += 1
        self._events[index] = _NOT_KEPT if timeline is None else _digest_of(timeline)

    def _body(self, row: RequestRow) -> None:
        if self._bodies is None:
            return
        facts = self._bodies.get(self._requests.prompt(row.index))
        if facts is None:
            self._ledger.fail(Name.prompts_as_sent, f"request {row.index} has no body")
        else:
            check_body(row, facts, self._ledger)

    def _sum(self, row: RequestRow) -> None:
        self._streams += row.output_events > 0
        self._output_events += row.output_events
        self._output_tokens += row.output_tokens or 0
        self._output_bytes += row.output_bytes
        if row.outcome == Outcome.ok and not (row.output_events and row.output_bytes):
            self.empty.append(row.index)

    def check_timelines(self, reader: TrialReader, ended: bool) -> None:
        """Hold the kept timelines against those that the raw reads gave."""
        name, ledger = Name.timelines, self._ledger
        seen = bytearray(len(self._seen))
        entries = 0
        try:
            for timeline in reader.timelines():
                index = timeline.index
                entries += 1
                if index not in self:
                    ledger.fail(name, f"request {index} has a timeline, and no raw reads")
                elif seen[index]:
                    ledger.fail(name, f"request {index} has two timelines")
                elif self._events[index] not in (_NOT_KEPT, _digest_of(timeline)):
                    ledger.fail(name, f"request {index}: its events are not those of the raw reads")
                if 0 <= index < len(seen):
                    seen[index] = 1
        except (EvidenceError, ValueError) as error:
            ledger.fail(name, str(error))
        missing = sum(1 for index in self._rows if index in self and not seen[index])
        if missing and ended:
            ledger.fail(name, f"{missing} requests have no timeline")
        elif missing:
            ledger.admit(
                name, f"{missing} requests have no timeline: the client was killed before it was written"
            )
        ledger.close(name, f"events of {entries} requests agree", entries)

    def counted(self, records: int, raw_bytes: int) -> Counts:
        """Return what was counted."""
        return Counts(
            requests=self._count,
            records=records,
            raw_bytes=raw_bytes,
            streams=self._streams,
            output_events=self._output_events,
            output_tokens=self._output_tokens,
            output_bytes=self._output_bytes,
            unique_prompts=len(self.prompts) - repeated_in(self.prompts),
        )


def _head_of(sha256: str) -> int:
    try:
        return int(sha256[:16] or "0", 16)
    except ValueError:
        return 0


def _digest_of(timeline: Timeline) -> int:
    digest = hashlib.blake2b(timeline.times_ns.tobytes(), digest_size=8)
    digest.update(b"" if timeline.tokens is None else timeline.tokens.tobytes())
    return int.from_bytes(digest.digest(), "little") % _NOT_KEPT


def repeated_in(digests: array[int]) -> int:
    """Count digests that occur more than once; by their first 64 bits, of which a million collide once in 10^7 runs."""
    ordered = sorted(digests)
    return sum(one == other for one, other in pairwise(ordered))
