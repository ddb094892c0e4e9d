"""Find out what a server is and what works on it, with a handful of tiny requests before any measurement."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from msgspec import structs

from nameplate.contract.errors import ServerError
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.sampling import Sampling
from nameplate.contract.target import Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.ask import TIMEOUT_S, Asked, ask
from nameplate.engines.capability import HINTS, Capability, ProbeReport, ProbeRequest, Status
from nameplate.engines.flush import CacheReading, FlushProof, prove_flush, read_cache
from nameplate.engines.identify import identify
from nameplate.engines.idle import SECOND_NS
from nameplate.engines.state import ServerState
from nameplate.prompts.body import BodyOptions, build_body, user_text_of
from nameplate.prompts.text import PromptKey, compose

# Enough for a finish by end-of-text to show, where the model would have stopped after a word.
OUTPUT_TOKENS = 12
# A prompt shorter than a cache block is never cached. Hybrid models have blocks of about a thousand tokens, so an
# unknown block is taken to be large; texts have at least one token a word.
_BLOCK_TOKENS_UNKNOWN = 256
_BLOCKS = 3
_SHORT_WORDS = 24
_STOP_AT_ONCE = "\n\nSet the words above aside and answer with the single word yes."
# Not part of OpenAI's API: a strict vendor refuses them.
_EXTENSIONS = ("continuous_usage_stats", "ignore_eos")
# Part of it, and refused by some models and older servers all the same.
_OPTIONAL = ("stream_options", "seed", "temperature", "max_tokens")
_RETRIES = 2
_PROOF_PURPOSES = ("flush, P again", "flush, P after it")


LimitField = Literal["max_tokens", "max_completion_tokens"]


class Probe:
    """Run one probe; the prompts are a function of the nonce and belong to the phase `probe`."""

    def __init__(
        self,
        adapter: Adapter,
        nonce: str,
        sampling: Sampling | None = None,
        *,
        idle_limit_ns: int = 60 * SECOND_NS,
        patience_s: float = TIMEOUT_S,
    ) -> None:
        self.adapter = adapter
        self._nonce = nonce
        self._sampling = sampling or Sampling()
        self._idle_limit_ns = idle_limit_ns
        self._patience_s = patience_s
        self._requests: list[ProbeRequest] = []
        self._found: list[Capability] = []
        self._texts = 0
        self._plain = Sampling(self._sampling.temperature, ignore_eos=False)

    def run(
        self, log: Mapping[str, Fact] | None = None, given: Mapping[str, Fact] | None = None
    ) -> ProbeReport:
        """Return the report; ServerError only where not even one plain request is served."""
        adapter = self.adapter
        identified = identify(adapter, log, given)
        identity = identified.identity
        state = adapter.state()
        self._say("model list", "yes" if adapter.served_models() else "no", adapter.target.model)
        self._metrics(state)
        self._identity(identity)
        target, dropped = self._streaming()
        limit_field = self._limit_field()
        floor, proof, reports = self._cache(identity, limit_field)
        self._tokenise()
        return ProbeReport(
            adapter.name,
            adapter.detected_by,
            target,
            identity,
            tuple(self._found),
            tuple(self._requests),
            dropped,
            floor,
            proof,
            limit_field,
            reports,
            identified.conflicts,
        )

    # -- one group of capabilities each

    def _metrics(self, state: ServerState) -> None:
        if state.error is None:
            missing = f"; not told: {', '.join(state.missing)}" if state.missing else ""
            self._say("metrics", "yes", f"{self.adapter.metrics_path}{missing}")
        else:
            self._say("metrics", "no" if self.adapter.table else "unknown", state.error)
        idle = {True: "idle now", False: f"{state.running} running, {state.waiting} waiting now", None: ""}
        self._say("idle test", "unknown" if state.idle is None else "yes", idle[state.idle])

    def _identity(self, identity: Identity) -> None:
        engine, version = identity.text("engine"), identity.text("version")
        known = f"{engine or 'engine unknown'} {version or 'version unknown'}"
        self._say("identity", "yes" if engine and version else "unknown", known)
        missing = ", ".join(identity.missing)
        self._say("portability", "no" if missing else "yes", f"not known: {missing}" if missing else "")
        for name, fact in (
            ("context limit", "context_limit_tokens"),
            ("KV tokens", "kv_tokens"),
            ("running limit", "running_limit_effective"),
        ):
            value = identity.integer(fact)
            source = identity.facts[fact].source if fact in identity.facts else ""
            self._say(name, "unknown" if value is None else "yes", f"{value} ({source})" if value else "")

    def _streaming(self) -> tuple[Target, tuple[str, ...]]:
        target = self.adapter.target
        text = self._text(_SHORT_WORDS) + _STOP_AT_ONCE
        dropped: tuple[str, ...] = ()
        answer = self._ask("streaming, all fields", self._full_body(target, text, dropped))
        for _ in range(_RETRIES):
            if answer.status not in (400, 422):
                break
            refusal = answer.error or ""
            named = [key for key in (*_EXTENSIONS, *_OPTIONAL) if key in refusal and key not in dropped]
            # Strict vendors name the field they do not know; where they do not, all extensions go.
            more = named or [key for key in _EXTENSIONS if key not in dropped]
            if not more:
                break
            dropped = (*dropped, *more)
            answer = self._ask(
                f"streaming, without {' and '.join(dropped)}", self._full_body(target, text, dropped)
            )
            self._say("unknown fields", "refused", f"dropped: {', '.join(more)} ({refusal[:200]})")
        if not answer.ok:
            raise refused_plain_request(target, answer)
        if "temperature" in dropped:
            self._plain = Sampling(None, ignore_eos=False)
        self._stream_facts(answer, dropped)
        self._stop_facts(answer, dropped)
        accepted = structs.replace(
            target,
            stream_usage=answer.has_usage,
            continuous_usage=answer.counts_along and "continuous_usage_stats" not in dropped,
        )
        self.adapter.target = accepted
        return accepted, dropped

    def _full_body(self, target: Target, text: str, dropped: tuple[str, ...]) -> bytes:
        sampling = structs.replace(
            self._sampling,
            seed_per_request="seed" not in dropped,
            ignore_eos="ignore_eos" not in dropped,
            temperature=None if "temperature" in dropped else self._sampling.temperature,
        )
        options = structs.replace(
            BodyOptions.of(target, sampling),
            usage="stream_options" not in dropped,
            continuous_usage=not {"stream_options", "continuous_usage_stats"} & set(dropped),
            limit_field="max_completion_tokens" if "max_tokens" in dropped else "max_tokens",
        )
        return build_body(options, text, OUTPUT_TOKENS, seed=1)

    def _stream_facts(self, answer: Asked, dropped: tuple[str, ...]) -> None:
        events = f"{answer.output_events} events"
        self._say(
            "streaming", "yes" if answer.streamed else "no", events if answer.streamed else "one answer"
        )
        self._say("streaming usage", "yes" if answer.has_usage else "no", self._counts(answer))
        if "continuous_usage_stats" in dropped:
            self._say("continuous usage", "refused", "continuous_usage_stats is not accepted")
        else:
            self._say("continuous usage", "yes" if answer.counts_along else "no", events)
        for field in ("seed", "temperature"):
            status: Status = "refused" if field in dropped else "yes"
            self._say(
                field, status, "accepted; whether it is honoured is not tested" if status == "yes" else ""
            )

    def _stop_facts(self, answer: Asked, dropped: tuple[str, ...]) -> None:
        exact = answer.completion_tokens == OUTPUT_TOKENS and answer.finish_reason == "length"
        if "ignore_eos" in dropped:
            self._say("ignore_eos", "refused", "the field is not accepted: output lengths vary")
        elif answer.completion_tokens is None:
            self._say("ignore_eos", "unknown", "no usage tells the output's length")
        else:
            self._say("ignore_eos", "yes" if exact else "no", self._counts(answer))

    def _limit_field(self) -> LimitField:
        """Return the output limit's name that is honoured; `max_tokens` is known everywhere, the other is newer."""
        found = {}
        fields: tuple[tuple[int, LimitField], ...] = ((2, "max_tokens"), (3, "max_completion_tokens"))
        for number, field in fields:
            options = BodyOptions(
                self.adapter.target.api,
                self.adapter.target.model,
                self._plain,
                stream=False,
                limit_field=field,
                extra=self.adapter.target.extra_body,
            )
            answer = self._ask(f"{field} of {number}", build_body(options, self._text(_SHORT_WORDS), number))
            counted = answer.completion_tokens
            honoured = counted is not None and counted <= number
            status: Status = "yes" if honoured else "unknown" if answer.ok and counted is None else "no"
            if not answer.ok:
                status = "refused"
            found[field] = status
            self._say(field, status, answer.error or self._counts(answer, number))
        return (
            "max_completion_tokens"
            if found["max_tokens"] in ("no", "refused") and found["max_completion_tokens"] == "yes"
            else "max_tokens"
        )

    def _cache(
        self, identity: Identity, limit_field: LimitField
    ) -> tuple[int | None, FlushProof, bool | None]:
        block = identity.integer("block_size_tokens") or _BLOCK_TOKENS_UNKNOWN
        words = _BLOCKS * block
        context = identity.integer("context_limit_tokens")
        if context is not None:
            words = max(_SHORT_WORDS, min(words, context // 3))
        options = structs.replace(BodyOptions.of(self.adapter.target, self._plain), limit_field=limit_field)
        other, repeated = (build_body(options, self._text(words), 1) for _ in range(2))
        first = read_cache(self.adapter, other, limit_ns=self._idle_limit_ns)
        self._keep("template floor, first", other, first.asked)
        second = read_cache(self.adapter, repeated, limit_ns=self._idle_limit_ns)
        self._keep("template floor, second", repeated, second.asked)
        floor = second.usage_tokens if second.usage_tokens is not None else second.counter_tokens
        proof = prove_flush(
            self.adapter, repeated, first=second, floor_tokens=floor or 0, limit_ns=self._idle_limit_ns
        )
        for purpose, reading in zip(_PROOF_PURPOSES, proof.readings[1:], strict=False):
            self._keep(purpose, repeated, reading.asked)
        reports = self._cache_facts(floor, (first, *proof.readings))
        flush: Mapping[str, Status] = {
            "proven": "yes",
            "accepted_unproven": "unknown",
            "refused": "refused",
            "unsupported": "no",
            "unknown": "unknown",
        }
        self._say("flush", flush[proof.status], f"{proof.status.replace('_', ', ')}: {proof.detail}")
        return floor, proof, reports

    def _cache_facts(self, floor: int | None, readings: tuple[CacheReading, ...]) -> bool | None:
        answered = [reading for reading in readings if reading.asked.ok]
        reports = any(reading.usage_tokens is not None for reading in answered) if answered else None
        counted = any(reading.counter_tokens is not None for reading in answered)
        status: Status = "unknown" if reports is None else "yes" if reports else "no"
        told = "in each answer's usage" if reports else "not in the answers' usage"
        self._say(
            "cached-token reports",
            status,
            told + (", and by a counter between idle moments" if counted else ""),
        )
        detail = "" if floor is None else f"{floor} cached tokens in the second of two unlike prompts"
        self._say("template floor", "unknown" if floor is None else "yes", detail)
        return reports

    def _tokenise(self) -> None:
        count = self.adapter.tokenize(self._text(_SHORT_WORDS))
        if count is None:
            self._say("tokenise", "no", "lengths are calibrated by the usage of tiny requests")
        else:
            template = "with" if count.templated else "without"
            self._say("tokenise", "yes", f"counts {template} the chat template")

    # -- helpers

    def _text(self, words: int) -> str:
        self._texts += 1
        return compose(PromptKey(self._nonce, "probe", 0, self._texts, "probe"), words)

    def _ask(self, purpose: str, body: bytes) -> Asked:
        streaming = b'"stream":true' in body
        path = self.adapter.target.generate_path
        answer = ask(self.adapter.transport, body, path, streaming=streaming, timeout_s=self._patience_s)
        self._keep(purpose, body, answer)
        return answer

    def _keep(self, purpose: str, body: bytes, answer: Asked) -> None:
        self._requests.append(
            ProbeRequest(
                purpose,
                hashlib.sha256(body).hexdigest(),
                user_text_of(body),
                answer.status,
                answer.outcome.value,
                answer.prompt_tokens,
                answer.cached_tokens,
                answer.completion_tokens,
                answer.error,
            )
        )

    def _say(self, name: str, status: Status, detail: str = "") -> None:
        hint = "" if status == "yes" else self.adapter.how_to_enable.get(name) or HINTS.get(name, "")
        self._found.append(Capability(name, status, detail, hint))

    @staticmethod
    def _counts(answer: Asked, asked: int = OUTPUT_TOKENS) -> str:
        if answer.completion_tokens is None:
            return "no usage"
        return f"{answer.completion_tokens} of {asked} tokens, finish reason {answer.finish_reason}"


def probe(
    adapter: Adapter,
    nonce: str,
    sampling: Sampling | None = None,
    *,
    log: Mapping[str, Fact] | None = None,
    given: Mapping[str, Fact] | None = None,
    idle_limit_ns: int = 60 * SECOND_NS,
    patience_s: float = TIMEOUT_S,
) -> ProbeReport:
    """Probe one server; see `Probe.run`. `log` and `given` are facts from `--server-log` and `--fact`."""
    return Probe(adapter, nonce, sampling, idle_limit_ns=idle_limit_ns, patience_s=patience_s).run(log, given)


def refused_plain_request(target: Target, answer: Asked) -> ServerError:
    """Word the failure of the simplest request: nothing can be measured."""
    said = answer.error or f"it ended as {answer.outcome.value}"
    if answer.status in (401, 403):
        hint = "Name the environment variable that holds its key with --api-key-env, or a file with --api-key-file."
    elif answer.status == 404:
        hint = "Check the model's name (--model), and --api completions for a server without chat."
    elif answer.status is None:
        hint = "Is the server up, and has it finished loading?"
    else:
        hint = "See the server's log; --api completions uses the other endpoint."
    return ServerError(
        f"{target.url}{target.generate_path.removeprefix(target.base_path)} does not serve even a tiny request: {said}",
        why="Nothing can be measured.",
        hint=hint,
    )
