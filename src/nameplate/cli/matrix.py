"""From the options of `nameplate speed` to its matrix: profiles, lists of contexts, what the limits leave."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from nameplate.cli.request import Options
from nameplate.contract.errors import CallerError
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import (
    DEFAULT_CONCURRENCIES,
    DEFAULT_CONTEXTS,
    KI,
    Matrix,
    MixedRule,
    PrefillRule,
    limit_context,
    longest_context,
)
from nameplate.contract.quantity import parse_duration_ns, parse_ratio, parse_tokens
from nameplate.contract.shape import Shape

LEAST_STABLE_NS = 10**9
LONGEST, LIMIT = "longest", "limit"
# An arrival long enough to stall decoding on any server, and short enough for nearly all of them.
DEFAULT_ARRIVAL_TOKENS = 32 * KI


class Profile(Struct, frozen=True):
    """Hold what a profile fixes where the command line says nothing."""

    contexts: tuple[int, ...]
    concurrencies: tuple[int, ...]
    window: str
    prefill: PrefillRule = PrefillRule()
    extremes: bool = False


PROFILES: dict[str, Profile] = {
    "full": Profile(DEFAULT_CONTEXTS, DEFAULT_CONCURRENCIES, "30s", extremes=True),
    # The same on every machine, so that two results can stand side by side: no row depends on the server's limit.
    "standard": Profile((8 * KI, 32 * KI, 128 * KI), (1, 8, 32), "30s"),
    "quick": Profile((8 * KI, 32 * KI), (1, 4, 16), "10s", PrefillRule(least=2, most=4)),
}


class Wish(Struct, frozen=True, kw_only=True):
    """Hold the matrix as asked for, before the server's limits are known; None takes what the profile says."""

    profile: str
    contexts: tuple[str, ...] | None
    prefill_contexts: tuple[str, ...] | None
    matrix: Matrix
    decode: bool = True
    prefill: bool = True

    def settle(self, limits: ServerLimits) -> Matrix:
        """Settle the contexts by the server's limits; CallerError where a context needs a limit that is not known.

        Default contexts that do not fit are left out; those that were asked for by number stay, and get a status.
        """
        profile = PROFILES[self.profile]
        decode = self._contexts(self.contexts, profile, limits, LONGEST) if self.decode else ()
        prefill: tuple[int, ...] = ()
        if self.prefill:
            wanted = self.prefill_contexts
            if wanted is None and self.contexts is not None:
                wanted = tuple(LIMIT if word == LONGEST else word for word in self.contexts)
            prefill = self._contexts(wanted, profile, limits, LIMIT)
        mixed = self.matrix.mixed
        if mixed is not None and limits.context_tokens is not None and mixed.arrival_tokens == 0:
            mixed = structs.replace(
                mixed, arrival_tokens=min(DEFAULT_ARRIVAL_TOKENS, longest_context(limits.context_tokens, KI))
            )
        elif mixed is not None and mixed.arrival_tokens == 0:
            mixed = structs.replace(mixed, arrival_tokens=DEFAULT_ARRIVAL_TOKENS)
        return structs.replace(self.matrix, decode_contexts=decode, prefill_contexts=prefill, mixed=mixed)

    def _contexts(
        self, words: tuple[str, ...] | None, profile: Profile, limits: ServerLimits, extreme: str
    ) -> tuple[int, ...]:
        limit = limits.context_tokens
        if words is not None:
            return tuple(sorted({self._context(word, limit) for word in words}))
        if limit is None:
            return profile.contexts
        output = 1 if extreme == LIMIT else min(self.matrix.output_tokens, limit // 2)
        fitting = [context for context in profile.contexts if context + output <= limit]
        if profile.extremes or not fitting:
            fitting.append(self._context(extreme, limit))
        return tuple(sorted({context for context in fitting if context > 0}))

    def _context(self, word: str, limit: int | None) -> int:
        if word not in (LONGEST, LIMIT):
            tokens = parse_tokens(word)
            if tokens < 1:
                raise CallerError("A context of no tokens was given.", hint="For example --contexts 8k,32k.")
            return tokens
        if limit is None:
            raise CallerError(
                f"The context {word!r} needs the server's context limit, which it does not tell.",
                hint="Give it: --fact context_limit_tokens=131072.",
            )
        if word == LIMIT:
            return limit_context(limit)
        return longest_context(limit, min(self.matrix.output_tokens, limit // 2))


def read_wish(options: Options) -> Wish:
    """Read the matrix that the options ask for; CallerError where they contradict each other."""
    profile_name = "quick" if options["quick"] else options["profile"]
    if options["quick"] and options["profile"] != "full":
        raise CallerError("--quick and --profile are both given.", hint="Give one.")
    if options["prefill_only"] and options["no_prefill"]:
        raise CallerError("--prefill-only and --no-prefill leave nothing to measure.", hint="Give one.")
    if options["prefill_only"] and (
        options["burst"] or options["burst_requests"] or options["mixed"] or options["requests"]
    ):
        raise CallerError(
            "--prefill-only measures nothing else.",
            hint="Leave out --burst, --burst-requests, --mixed, --requests.",
        )
    profile = PROFILES[profile_name]
    concurrencies = (
        profile.concurrencies if options["concurrency"] is None else _numbers(options["concurrency"])
    )
    window_ns = _above_zero(profile.window if options["window"] is None else options["window"], "--window")
    timeout = options["ready_timeout"]
    budget = options["time_budget"]
    matrix = Matrix(
        concurrencies=concurrencies,
        window_ns=window_ns,
        stable_ns=_stable(options["stable"]),
        output_tokens=_tokens(options["output"], "--output"),
        unique_percent=100 * parse_ratio(options["unique_context"]),
        ready_timeout_ns=None if timeout is None else _above_zero(timeout, "--ready-timeout"),
        warm_streams=options["warm_streams"],
        loop_limit=parse_ratio(options["loop_limit"]),
        prefill=_prefill_rule(profile.prefill, options["prefill_samples"]),
        requests=options["requests"],
        burst=options["burst"] or options["burst_requests"] is not None,
        burst_requests=options["burst_requests"],
        mixed=_mixed(options) if options["mixed"] else None,
        time_budget_s=None if budget is None else _above_zero(budget, "--time-budget") / 1e9,
        profile=profile_name if _as_profiled(options) else "custom",
    )
    return Wish(
        profile=profile_name,
        contexts=_words(options["contexts"]),
        prefill_contexts=_words(options["prefill_contexts"]),
        matrix=matrix,
        decode=not options["prefill_only"],
        prefill=not options["no_prefill"],
    )


_OF_PROFILE = ("contexts", "prefill_contexts", "concurrency", "window", "prefill_samples", "requests")


def _as_profiled(options: Options) -> bool:
    """Say whether nothing was given that the profile fixes."""
    return not any(options[name] for name in _OF_PROFILE) and options["output"] == "4096"


def _stable(text: str) -> int:
    ns = _above_zero(text, "--stable")
    if ns < LEAST_STABLE_NS:
        raise CallerError(
            f"--stable {text} is too short to see anything in.",
            why="Readiness rests on several readings of the server's gauges, a few a second.",
            hint="Give at least 1s.",
        )
    return ns


def _mixed(options: Options) -> MixedRule:
    shape = Shape.parse(options["mixed_shape"])
    arrival: Any = options["mixed_arrival"]
    return MixedRule(
        arrival_tokens=0 if arrival is None else _tokens(arrival, "--mixed-arrival"),
        streams=options["mixed_streams"],
        stream_input_tokens=shape.input_tokens,
        stream_output_tokens=shape.output_tokens,
    )


def _prefill_rule(rule: PrefillRule, most: int | None) -> PrefillRule:
    if most is None:
        return rule
    return structs.replace(rule, most=most, least=min(rule.least, most))


def _words(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    words = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    if not words:
        raise CallerError("An empty list of contexts was given.", hint="For example --contexts 8k,32k.")
    return words


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(sorted({int(word) for word in text.split(",") if word.strip()}))
    except ValueError:
        numbers = ()
    if not numbers or numbers[0] < 1:
        raise CallerError(
            f"--concurrency {text!r} is not a list of whole numbers above 0.",
            hint="For example --concurrency 1,8,32.",
        )
    return numbers


def _above_zero(text: str, option: str) -> int:
    ns = parse_duration_ns(text)
    if ns <= 0:
        raise CallerError(f"{option} {text!r} leaves no time at all.", hint="Give one above 0, e.g. 30s.")
    return ns


def _tokens(text: str, option: str) -> int:
    tokens = parse_tokens(text)
    if tokens < 1:
        raise CallerError(f"{option} {text!r} is no token at all.", hint="Give at least 1.")
    return tokens
