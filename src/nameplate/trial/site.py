"""Getting ready: which server this is, what works on it, and how long its prompts must be."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct, structs

from nameplate.contract.cache import CachePolicy
from nameplate.contract.errors import CallerError, PromptRefused, ServerError
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.target import Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.ask import TIMEOUT_S, ask
from nameplate.engines.capability import ProbeReport
from nameplate.engines.detect import detect
from nameplate.engines.identify import identify
from nameplate.engines.probe import probe
from nameplate.evidence.header import PromptLength
from nameplate.prompts.body import BodyOptions, build_body
from nameplate.prompts.calibration import Ask, Calibrated, Calibration, calibrate, calibrate_prefix
from nameplate.prompts.dataset import Dataset
from nameplate.prompts.exact import LocalTokenizer
from nameplate.prompts.lengths import count_lengths
from nameplate.prompts.replay import count_blocks
from nameplate.prompts.text import PromptKey, shared_prefix
from nameplate.trial.corpus import Composed, Corpus, Exact, FromFile
from nameplate.trial.ground import Ground
from nameplate.verdict.gate import TOO_LONG
from nameplate.verdict.tolerances import UNKNOWN_BLOCK_TOKENS

T = TypeVar("T")
Note = Callable[..., None]

# The probe waits for an idle server several times; one that somebody else keeps busy should not take minutes to say so.
PROBE_IDLE_NS = 10 * 10**9


class Site(Struct, frozen=True):
    """Hold one server, ready to be measured: its adapter, its probe's report, and the facts told beside the API.

    `patience_s` is how long one answer that is asked for beside the load may take.
    """

    ground: Ground
    adapter: Adapter
    report: ProbeReport
    log: Mapping[str, Fact] = {}
    given: Mapping[str, Fact] = {}
    patience_s: float = TIMEOUT_S

    @property
    def target(self) -> Target:
        return self.report.target

    @property
    def block_tokens(self) -> int:
        return self.report.identity.integer("block_size_tokens") or UNKNOWN_BLOCK_TOKENS

    def identity(self) -> Identity:
        """Read the server's identity anew, with what the log and a person told."""
        return identify(self.adapter, self.log, self.given).identity


def survey(
    ground: Ground,
    target: Target,
    sampling: Sampling,
    nonce: str,
    note: Note,
    *,
    log: Mapping[str, Fact] | None = None,
    given: Mapping[str, Fact] | None = None,
    patience_s: float = TIMEOUT_S,
) -> Site:
    """Detect and probe a server; ServerError where it cannot be measured."""
    adapter = detect(ground.transport, target, ground.clock)
    report = probe(
        adapter,
        nonce,
        sampling,
        log=log,
        given=given,
        idle_limit_ns=PROBE_IDLE_NS,
        patience_s=patience_s,
    )
    accepted = structs.replace(report.target, limit_field=report.limit_field)
    report = structs.replace(report, target=accepted)
    adapter.target = accepted
    for request in report.requests:
        note("probe", **structs.asdict(request))
    return Site(ground, adapter, report, log or {}, given or {}, patience_s)


def require_contract_fields(report: ProbeReport, sampling: Sampling) -> None:
    """Refuse to measure a server that refuses or ignores what the contract asks of every request."""
    refused = [
        name
        for name, wanted in (
            ("temperature", sampling.temperature is not None),
            ("seed", sampling.seed_per_request),
            ("ignore_eos", sampling.ignore_eos),
        )
        if wanted and name in report.dropped
    ]
    if refused:
        raise ServerError(
            f"The server refuses the field{'s' * (len(refused) > 1)} {', '.join(refused)}.",
            why="Every request of the contract would send it.",
            hint="Leave it out of the contract: --temperature none, --no-request-seeds or --natural-stops.",
        )
    eos = report.capability("ignore_eos")
    if sampling.ignore_eos and eos is not None and eos.status == "no":
        raise ServerError(
            f"The server takes ignore_eos and does not honour it ({eos.detail}).",
            why="With answers of varying length a fixed shape is not what would be measured.",
            hint="Use --natural-stops: the output length is then an upper bound.",
        )
    streaming = report.capability("streaming")
    if streaming is not None and streaming.status == "no":
        raise ServerError(
            "The server does not stream its answers.",
            why="Without a stream there is no time to first token.",
            hint="Turn streaming on, or measure the server behind the gateway that buffers it.",
        )


def require_flush(report: ProbeReport, policy: CachePolicy) -> None:
    """Refuse to measure where the policy requires a proven flush and there is none."""
    if policy.flush != "require" or (report.flush is not None and report.flush.status == "proven"):
        return
    capability = report.capability("flush")
    detail = capability.detail if capability is not None else "unknown"
    raise ServerError(
        f"The prefix cache cannot be shown to be flushed: {detail}.",
        why="--flush require was given.",
        hint=(capability.how_to_enable if capability is not None and capability.how_to_enable else "")
        or "With --flush auto prompts are cold by construction: fresh in every trial.",
    )


def require_context(identity: Identity, shape: Shape) -> None:
    """Refuse a shape that does not fit the context; CallerError before any load."""
    limit = identity.integer("context_limit_tokens")
    total = shape.input_tokens + shape.output_tokens
    if limit is not None and total > limit:
        raise CallerError(
            f"The shape {shape} needs {total} tokens, and the server's context holds {limit}.",
            hint="Choose a shorter shape, or start the server with a longer context.",
        )


def build_corpus(
    site: Site,
    shape: Shape,
    policy: CachePolicy,
    nonce: str,
    note: Note,
    *,
    tokenizer: Path | None = None,
    dataset: Dataset | None = None,
    calibration_nonce: str | None = None,
    rows_taken: int = 0,
) -> Corpus:
    """Find how prompts of this shape are made, asking the server for its own counts where that is needed.

    The calibration's prompts have the study's nonce unless they are told apart by another one. `rows_taken` of the data
    set were used before.
    """
    study_nonce, nonce = nonce, calibration_nonce or nonce
    counter = _Counter(site, note)
    if dataset is not None:
        return FromFile(
            dataset,
            shape.output_tokens,
            lambda tokens: counter.settle(calibrate(tokens, nonce=nonce)),
            rows_taken,
        )
    if tokenizer is not None:
        return _exact(counter, LocalTokenizer.open(tokenizer), shape, nonce)
    prefix, prefix_length = "", None
    if not policy.cold:
        if policy.shared_prefix_tokens >= shape.input_tokens:
            raise CallerError(
                f"A shared prefix of {policy.shared_prefix_tokens} tokens leaves no room in {shape}."
            )
        prefix_length = counter.settle(
            calibrate_prefix(
                policy.shared_prefix_tokens, nonce=nonce, first_index=1000, block_tokens=site.block_tokens
            )
        )
        prefix = shared_prefix(study_nonce, prefix_length.words, prefix_length.letters)
    prefix_tokens = prefix_length.measured_tokens if prefix_length else None
    # The calibration's own prompts are told apart by the shape they are for.
    calibrated = counter.settle(
        calibrate(
            shape.input_tokens, nonce=nonce, trial=str(shape), prefix=prefix, prefix_tokens=prefix_tokens
        )
    )
    length = PromptLength(
        method=counter.method if calibrated.source == "counted" else "assumed",
        words=calibrated.words,
        letters=calibrated.letters,
        prefix_words=prefix_length.words if prefix_length else 0,
        prefix_letters=prefix_length.letters if prefix_length else 0,
        prefix_tokens=prefix_tokens,
        calibrated_tokens=calibrated.measured_tokens,
    )
    return Composed(study_nonce, length, shape.output_tokens)


def count_for_replay(
    site: Site, most_tokens: int, block_tokens: int | None, nonce: str, note: Note
) -> PromptLength:
    """Find how the prompts of a trace are made, which are of many lengths, up to `most_tokens`."""
    counter = _Counter(site, note)
    counted = counter.drive(count_lengths(most_tokens, nonce=nonce))
    return PromptLength(
        method=counter.method if counted else "assumed",
        counted=counted,
        block_costs=counter.drive(count_blocks(block_tokens, nonce=nonce)) if block_tokens else (),
    )


def _exact(counter: _Counter, tokenizer: LocalTokenizer, shape: Shape, nonce: str) -> Corpus:
    """Compose by a local tokenizer, less what the server's template adds to one such prompt."""
    text = tokenizer.compose(PromptKey(nonce, str(shape), 0, 0, "calibration"), shape.input_tokens)
    counted = counter.count(text)
    template = 0 if counted is None else counted - shape.input_tokens
    tokens = shape.input_tokens - template
    length = PromptLength(
        method="tokenizer.json", calibrated_tokens=None if counted is None else tokens + template
    )
    return Exact(tokenizer, length, tokens, shape.output_tokens)


class _Counter:
    """Count prompts as the server counts them: by /tokenize with its template, else by a one-token answer's usage."""

    def __init__(self, site: Site, note: Note) -> None:
        self._site = site
        self._note = note
        probed = site.adapter.tokenize("How many tokens is this?") if site.report.works("tokenise") else None
        self.method: Literal["tokenize", "usage"] = (
            "tokenize" if probed is not None and probed.templated else "usage"
        )

    def count(self, text: str) -> int | None:
        if self.method == "tokenize":
            counted = self._site.adapter.tokenize(text)
            return None if counted is None else counted.count
        target = self._site.target
        body = build_body(BodyOptions.of(target, Sampling(None, ignore_eos=False)), text, 1)
        patience_s = self._site.patience_s
        answer = ask(self._site.ground.transport, body, target.generate_path, timeout_s=patience_s)
        self._note(
            "calibration",
            prompt=text,
            status=answer.status,
            prompt_tokens=answer.prompt_tokens,
            error=answer.error,
        )
        if answer.status in TOO_LONG:
            raise PromptRefused(
                f"A prompt for calibrating the input length was refused: {answer.error}.",
                hint="Is it longer than the server's context?",
            )
        if not answer.ok:
            raise ServerError(
                f"A prompt for calibrating the input length was not served: {answer.error}.",
                hint="Something limits how many requests are taken: lift that, or measure behind it."
                if answer.status == 429
                else "See the server's log.",
            )
        return answer.prompt_tokens

    def settle(self, calibration: Calibration) -> Calibrated:
        """Drive a calibration to its end; its own error where the length cannot be reached."""
        result = self.drive(calibration)
        if isinstance(result, Calibrated):
            return result
        raise result.error()

    def drive(self, asking: Generator[Ask, int | None, T]) -> T:
        """Answer what is asked until it comes to a result."""
        try:
            asked = next(asking)
            while True:
                asked = asking.send(self.count(asked.text))
        except StopIteration as stop:
            result: T = stop.value
            return result
