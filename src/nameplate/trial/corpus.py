"""The prompts of one trial: composed, exact or from a file, written to the store before the first request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from nameplate.client.order import Ask
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.trace import TraceRow, TraceRows
from nameplate.engines.ask import TIMEOUT_S, Asked, ask
from nameplate.engines.transport import Transport
from nameplate.evidence.header import PromptLength
from nameplate.prompts.body import BodyOptions, Message, build_body, prompt_hashes
from nameplate.prompts.calibration import Calibrated
from nameplate.prompts.dataset import Dataset
from nameplate.prompts.exact import LocalTokenizer
from nameplate.prompts.keys import prompt_key
from nameplate.prompts.lengths import Lengths
from nameplate.prompts.replay import ReplayText
from nameplate.prompts.store import PromptWriter
from nameplate.prompts.text import PromptKey, compose, shared_prefix
from nameplate.schedule.stage import Requests, stages_of

PHASES = ("warmup", "measured", "ramp")


class Prompt(Struct, frozen=True):
    """Hold one prompt and what is asked of it."""

    content: str | Sequence[Message]
    user_text: str
    output_tokens: int


class Corpus(Protocol):
    """Supply prompts of one shape; a pure function of the key."""

    @property
    def length(self) -> PromptLength: ...

    @property
    def prefix(self) -> str: ...

    def prompt(self, key: PromptKey) -> Prompt: ...


class Composed:
    """Compose prompts of the calibrated number of words."""

    def __init__(self, nonce: str, length: PromptLength, output_tokens: int) -> None:
        self.length = length
        self.prefix = (
            shared_prefix(nonce, length.prefix_words, length.prefix_letters) if length.prefix_words else ""
        )
        self._output_tokens = output_tokens

    def prompt(self, key: PromptKey) -> Prompt:
        text = self.prefix + compose(key, self.length.words, self.length.letters)
        return Prompt(text, text, self._output_tokens)


class Exact:
    """Compose prompts of an exact count by a local tokenizer; `tokens` are of the user text alone."""

    def __init__(
        self, tokenizer: LocalTokenizer, length: PromptLength, tokens: int, output_tokens: int
    ) -> None:
        self.length = length
        self.prefix = ""
        self._tokenizer = tokenizer
        self._tokens = tokens
        self._output_tokens = output_tokens

    def prompt(self, key: PromptKey) -> Prompt:
        text = self._tokenizer.compose(key, self._tokens)
        return Prompt(text, text, self._output_tokens)


class FromFile:
    """Hand out the rows of a data set in order, each once in a study; rows that are lengths only are composed.

    `taken` rows were handed out before, by the study that goes on.
    """

    def __init__(
        self, dataset: Dataset, output_tokens: int, calibrated: Callable[[int], Calibrated], taken: int = 0
    ) -> None:
        self.length = PromptLength(method="dataset")
        self.prefix = ""
        self._dataset = dataset
        self._output_tokens = output_tokens
        self._calibrated = calibrated
        self._calibration: Calibrated | None = None
        self._taken = taken

    def prompt(self, key: PromptKey) -> Prompt:
        self._dataset.require(self._taken + 1)
        row = self._dataset.row(self._taken)
        self._taken += 1
        output_tokens = row.output_tokens or self._output_tokens
        content, text = row.content, row.user_text
        if content is None or text is None:
            assert row.input_tokens is not None
            if self._calibration is None:
                self._calibration = self._calibrated(row.input_tokens)
            text = compose(key, self._calibration.words_for(row.input_tokens))
            content = text
        return Prompt(content, text, output_tokens)


class Bodies:
    """Make the bodies of one trial's prompts, by the index under which they are stored.

    `arrival` supplies the prompt of a request that arrives beside held streams.
    """

    def __init__(
        self, contract: Contract, plan: TrialPlan, corpus: Corpus, arrival: Corpus | None = None
    ) -> None:
        self._nonce = contract.nonce
        self._plan = plan
        self._corpus = corpus
        self._arrival = arrival
        self._options = BodyOptions.of(contract.target, contract.sampling)
        self._requests = Requests(plan)

    def make(self, index: int) -> tuple[bytes, Ask]:
        """Return a body and what its request's row will say of it."""
        requests = self._requests
        key = prompt_key(self._nonce, self._plan, requests, index)
        arrives = self._arrival is not None and requests.phase(index) == "arrival"
        own = self._arrival if self._arrival is not None and arrives else self._corpus
        prompt = own.prompt(key)
        tokens = 1 if requests.warms(index) is not None else prompt.output_tokens
        body = build_body(self._options, prompt.content, tokens, seed=key.seed())
        hashes = prompt_hashes(prompt.user_text, len(own.prefix))
        return body, Ask(requests.class_name(index), tokens, hashes.sha256, hashes.head_sha256)


class Replayed:
    """Write the prompts of a trace's rows, from the request `first_index` on; those before have the plan's shape."""

    def __init__(
        self, nonce: str, length: PromptLength, rows: TraceRows, first_index: int, shape: Shape
    ) -> None:
        self.length = length
        self.prefix = ""
        self._text = ReplayText(nonce, Lengths(length.counted), rows.block_tokens, length.block_costs)
        self._rows = rows
        self._first_index = first_index
        self._other = TraceRow(0, shape.input_tokens, shape.output_tokens)

    def prompt(self, key: PromptKey) -> Prompt:
        row = self._rows.row(key.index - self._first_index) if key.phase == "measured" else self._other
        text = self._text.text(row, key)
        return Prompt(text, text, row.output_tokens)


def write_prompts(
    path: Path, contract: Contract, plan: TrialPlan, corpus: Corpus, arrival: Corpus | None = None
) -> tuple[Ask, ...]:
    """Write every body that the trial can send, by index, and return what their rows will say of them.

    `arrival` supplies the prompt of a request that arrives beside held streams.
    """
    bodies = Bodies(contract, plan, corpus, arrival)
    asks: dict[int, Ask] = {}
    with PromptWriter(path) as writer:
        for stage in stages_of(plan):
            for index in range(stage.first_index, stage.first_index + stage.schedule.prompts):
                body, asks[index] = bodies.make(index)
                writer.append(index, body, PHASES.index(stage.name))
    return tuple(asks[index] for index in sorted(asks))


def warm_prefix(transport: Transport, contract: Contract, plan: TrialPlan, corpus: Corpus) -> Asked:
    """Send the shared prefix once, with a tail of its own and one output token, so that it is in the cache."""
    key = PromptKey(contract.nonce, plan.name, plan.attempt, 0, "prefix warm-up")
    content = corpus.prompt(key).content
    body = build_body(BodyOptions.of(contract.target, contract.sampling), content, 1, seed=key.seed())
    patience_s = max(TIMEOUT_S, contract.deadlines.first_output_ns / 1e9)
    return ask(transport, body, contract.target.generate_path, timeout_s=patience_s)
