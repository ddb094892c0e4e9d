"""The prompts: bodies as sent against rows and contract, and no prompt used twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.measure.from_disk import prompt_facts
from nameplate.measure.rebuild import PromptFacts
from nameplate.prompts.body import BodyOptions, build_body, prompt_hashes, user_text_of
from nameplate.prompts.keys import prompt_key
from nameplate.prompts.lengths import Lengths
from nameplate.prompts.replay import ReplayText
from nameplate.prompts.store import PromptStore
from nameplate.schedule.stage import Requests
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name
from nameplate.verify.rows import listed


class Bodies(Struct):
    """Hold what the kept bodies tell: their facts by index, and where one is not what the contract makes of it."""

    kept: bool = False
    facts: dict[int, PromptFacts] = field(default_factory=dict)
    departures: list[str] = field(default_factory=list)


def read_bodies(reader: TrialReader, header: TrialHeader, prefix: str, ledger: Ledger) -> Bodies:
    """Read every kept body once; damage goes to the ledger."""
    path = reader.path(layout.PROMPTS)
    if not path.exists():
        if header.keeping.prompts:
            ledger.unverified(Name.prompts_as_sent, f"{layout.PROMPTS} is not there")
        return Bodies()
    bodies = Bodies(kept=True)
    try:
        with PromptStore.open(path) as store:
            if store.torn:
                ledger.fail(Name.files, f"{layout.PROMPTS}: {store.torn}")
            if store.repeated:
                ledger.fail(Name.prompts_as_sent, f"{store.repeated} indices have two bodies")
            expected = Expected(header)
            for index in store.indices():
                body = store.body(index)
                bodies.facts[index] = prompt_facts(body, len(prefix), header.contract.target.limit_field)
                departure = expected.departure(index, body, bodies.facts[index].output_tokens, prefix)
                if departure is not None:
                    bodies.departures.append(f"the body of request {index} {departure}")
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        ledger.fail(Name.files, f"{layout.PROMPTS}: {error}")
    return bodies


class Expected:
    """Make each body again from the contract and its own text, and say where it departs."""

    def __init__(self, header: TrialHeader) -> None:
        self._header = header
        self._requests = Requests(header.plan)
        self._options = BodyOptions.of(header.contract.target, header.contract.sampling)
        self._replay = _replay_of(header)

    def departure(self, index: int, body: bytes, output_tokens: int, prefix: str) -> str | None:
        contract, plan = self._header.contract, self._header.plan
        try:
            shape = self._requests.shape(index)
        except KeyError:
            return "is of no request of the plan"
        if contract.dataset is None and output_tokens != shape.output_tokens:
            return f"asks for {output_tokens} tokens, the shape for {shape.output_tokens}"
        key = prompt_key(contract.nonce, plan, self._requests, index)
        text = user_text_of(body)
        row = self._requests.row(index)
        if row is not None and self._replay is not None and text != self._replay.text(row, key):
            return "is not the prompt that the trace's blocks and lengths make"
        if self._requests.phase(index) != "arrival" and not text.startswith(prefix):
            return "does not begin with the shared prefix"
        made = build_body(self._options, text, output_tokens, seed=key.seed())
        if made == body:
            return None
        ours, sent = _fields(made), _fields(body)
        if contract.dataset is not None:
            for fields in (ours, sent):
                fields.pop("messages", None)
        different = sorted(name for name in ours.keys() | sent.keys() if ours.get(name) != sent.get(name))
        return f"differs from the contract in {', '.join(different)}" if different else None


def _replay_of(header: TrialHeader) -> ReplayText | None:
    """Return what makes the prompts of a trace; None where none is repeated."""
    trace = header.plan.arrivals.trace if header.plan.arrivals is not None else None
    if trace is None or trace.rows is None:
        return None
    length = header.prompt_length
    return ReplayText(
        header.contract.nonce,
        Lengths(length.counted),
        trace.rows.block_tokens,
        length.block_costs,
    )


def _fields(body: bytes) -> dict[str, Any]:
    fields = msgspec.json.decode(body)
    if not isinstance(fields, dict):
        raise EvidenceError("A kept prompt is not a JSON object.")
    return fields


def check_bodies(plan: TrialPlan, bodies: Bodies, rows: Mapping[int, RequestRow], ledger: Ledger) -> None:
    """Hold each row's prompt against its kept body."""
    name, requests = Name.prompts_as_sent, Requests(plan)
    for departure in bodies.departures:
        ledger.fail(name, departure)
    if not bodies.kept:
        ledger.unverified(name, "prompts were not kept")
    for index, row in rows.items():
        try:
            facts = bodies.facts.get(requests.prompt(index))
        except KeyError:
            continue  # The plan has no such request, and the count of records says so.
        if facts is None:
            if bodies.kept:
                ledger.fail(name, f"request {index} has no body")
            continue
        check_body(row, facts, ledger)
    ledger.close(name, f"{len(rows)} rows name their bodies", len(rows))


def check_body(row: RequestRow, facts: PromptFacts, ledger: Ledger) -> None:
    """Hold one row's prompt against its kept body."""
    name = Name.prompts_as_sent
    if row.prompt_sha256 != facts.sha256:
        ledger.fail(name, f"request {row.index}: its row names another prompt than its body holds")
    elif row.prompt_head_sha256 != facts.head_sha256:
        ledger.fail(name, f"request {row.index}: its row names another head than its body has")
    elif row.asked_output_tokens != facts.output_tokens:
        ledger.fail(
            name,
            f"request {row.index}: its row asks for {row.asked_output_tokens} tokens, its body for "
            f"{facts.output_tokens}",
        )


def check_disjoint(
    header: TrialHeader,
    prefix: str,
    rows: Sequence[RequestRow],
    journal: Iterable[JournalEntry],
    bodies: Bodies,
    admitted: bool,
    ledger: Ledger,
) -> None:
    """Hold that no prompt occurs twice, whatever its phase; heads too where prompts are cold and our own."""
    name = Name.prompts_disjoint
    requests = Requests(header.plan)
    own = [row for row in rows if not requests.repeats(row.index)]
    found = repeated(own, heads_differ=heads_differ(header))
    asked = hashes_of_journal(journal, prefix)
    found += [
        f"request {row.index} repeats a prompt of the probe or the calibration"
        for row in rows
        if row.prompt_sha256 in asked
    ]
    for said in found:
        (ledger.admit if admitted else ledger.fail)(name, said)
    if not bodies.kept:
        ledger.unverified(name, "prompts were not kept: by the recorded digests alone none occurs twice")
    ledger.close(name, f"{len(rows)} prompts, none twice", len(rows))


def heads_differ(header: TrialHeader) -> bool:
    """Say whether no two prompts of a trial may begin alike."""
    trace = header.plan.arrivals.trace if header.plan.arrivals is not None else None
    shares = trace is not None and trace.block_tokens is not None
    return header.contract.cache.cold and header.contract.dataset is None and not shares


def repeated(rows: Sequence[RequestRow], *, heads_differ: bool) -> list[str]:
    """Say of each row whose prompt, or head, an earlier one had."""
    prompts: dict[str, int] = {}
    heads: dict[str, int] = {}
    found = []
    for row in rows:
        first = prompts.setdefault(row.prompt_sha256, row.index)
        head = heads.setdefault(row.prompt_head_sha256, row.index)
        if first != row.index:
            found.append(f"requests {listed([first, row.index])} have the same prompt")
        elif heads_differ and head != row.index:
            found.append(f"requests {listed([head, row.index])} begin alike")
    return found


def hashes_of_journal(journal: Iterable[JournalEntry], prefix: str = "") -> set[str]:
    """Return the digests of the prompts that a journal's probe and calibration sent."""
    found = set()
    for entry in journal:
        prompt = entry.detail.get("prompt")
        if isinstance(prompt, str):
            found.add(prompt_hashes(prompt, len(prefix)).sha256)
    return found
