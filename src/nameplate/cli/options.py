"""The options that several commands share, by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nameplate.contract.arrivals import OUTSTANDING_LIMIT
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules

F = TypeVar("F", bound=Callable[..., Any])
_RULES = Rules()


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def boundary_options(told: str = "") -> Callable[[F], F]:
    """Add what a boundary is sought for, and an interrupted study to go on with; `told` is said of the promise."""
    return _all(
        click.option("--shape", "shapes", multiple=True, metavar="IN/OUT",
                     help="Tokens in and out: 8k/1k. May repeat."),
        click.option("--slo", "slos", multiple=True, metavar="SLO",
                     help=f'Promise: "ttft p95 < 10s"{told}. May repeat; all hold.'),
        click.option("--expect", metavar="PLATE|FIGURES",
                     help="Baseline to hold it against: plate.json, or ttft=2.1s,decode=104."),
        click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path),
                     help="Go on with an interrupted study."),
    )  # fmt: skip


def arrival_options(limited: str) -> Callable[[F], F]:
    """Add how the arrivals of a rate are spread, and how many may be unanswered; `limited` is what more of them do."""
    return _all(
        click.option("--arrivals", default="poisson", show_default=True, metavar="poisson|constant|gamma:SHAPE",
                     help="With --rate: how arrivals are spread."),
        click.option("--outstanding-limit", type=click.IntRange(min=1), default=OUTSTANDING_LIMIT, show_default=True,
                     help=f"With --rate: so many unanswered requests {limited}."),
    )  # fmt: skip


def server_options(command: F) -> F:
    """Add what reaches a server: keys, TLS, dialect, and facts that its API does not tell."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return _all(
        click.option("--model", help="The model to ask for.  [default: the only one served]"),
        click.option(
            "--api", type=click.Choice(["chat", "completions"]), help="Which endpoint.  [default: chat]"
        ),
        click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the API key."),
        click.option("--api-key-file", type=file, help="File that holds the API key."),
        click.option(
            "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Extra request header."
        ),
        click.option(
            "--body", "extra_body", multiple=True, metavar="NAME=JSON", help="Extra request body field."
        ),
        click.option("--ca-file", type=file, help="Certificate authorities to trust."),
        click.option("--insecure", is_flag=True, help="Do not verify the server's certificate."),
        click.option("--server-log", type=file, help="The server's log: facts its API does not tell."),
        click.option(
            "--fact", "facts", multiple=True, metavar="NAME=VALUE", help="A fact you know of the server."
        ),
        click.option("--kv-tokens", type=int, help="KV pool in tokens, where you know better than the API."),
        click.option(
            "--live", is_flag=True, help="With sim:PRESET: serve it on loopback and measure it for real."
        ),
        click.option(
            "--fault", "faults", multiple=True, metavar="NAME[:ARG][@N]", help="With sim:PRESET: a fault."
        ),
    )(command)


def sampling_options(temperature: str = "0") -> Callable[[F], F]:
    """Add how the model is asked to generate, with this default of the temperature."""
    return _all(
        click.option(
            "--temperature",
            default=temperature,
            show_default=True,
            help="Sampling temperature, or none to not send it.",
        ),
        click.option("--top-p", type=float, help="Sent as top_p."),
        click.option("--top-k", type=int, help="Sent as top_k."),
        click.option(
            "--request-seeds/--no-request-seeds",
            default=None,
            help="Send a seed with each request, a function of its prompt.  [default: unless temperature is 0]",
        ),
        click.option("--natural-stops", is_flag=True, help="Let answers stop by themselves: no ignore_eos."),
    )


def contract_options(command: F) -> F:
    """Add prompts, cache and start policy."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return _all(
        click.option("--cache", default="cold", show_default=True, metavar="cold|warm:PREFIX", help="Cache policy."),
        click.option(
            "--flush", type=click.Choice(["auto", "never", "require"]), default="auto", show_default=True,
            help="Flush the prefix cache before each trial.",
        ),
        click.option(
            "--start", type=click.Choice(["burst", "staggered", "handover"]), default=_RULES.start, show_default=True,
            help="How the slots of a closed loop begin.",
        ),
        click.option("--seed", type=int, default=42, show_default=True, help="Fixes schedule and lengths."),
        click.option("--tokenizer", type=file, help="A local tokenizer.json, for exact prompt lengths."),
        click.option("--dataset", type=file, help="Prompts and lengths from a JSONL file."),
        click.option("--repeat-dataset", is_flag=True, help="Allow a data set's prompts to be used again."),
        click.option(
            "--deadline", "deadlines", multiple=True, metavar="NAME=DURATION",
            help="connect, first_output, silence or total, e.g. first_output=15m.",
        ),
    )(command)  # fmt: skip


def evidence_options(command: F) -> F:
    """Add where results go and what of the raw evidence is kept."""
    return _all(
        click.option("--out", type=click.Path(path_type=Path), help="Results directory.  [default: runs/NAME-TIME]"),
        click.option("--raw", default="all", show_default=True, metavar="all|none|sample:N", help="Raw reads to keep."),
        click.option("--no-raw", is_flag=True, help="Keep no raw reads: --raw none."),
        click.option("--no-prompts", is_flag=True, help="Do not keep request bodies: coldness is then unverified."),
        click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Load processes."),
        click.option(
            "--connections", type=click.Choice(["reuse", "new"]), default="reuse", show_default=True,
            help="Reuse connections, or open a new one for each request.",
        ),
        click.option("--ordinary-scheduling", is_flag=True, help="Do not ask for real-time scheduling of the load."),
        click.option("--no-report", is_flag=True, help="Write no page and no plate beside the evidence."),
        click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output."),
        click.option("--quiet-terminal", is_flag=True, help="No progress on standard error."),
    )(command)  # fmt: skip


def concurrency_options(command: F) -> F:
    """Add which concurrencies may be tried."""
    positive = click.IntRange(min=1)
    return _all(
        click.option("--min", "min_concurrency", type=positive, default=_RULES.min_concurrency, show_default=True,
                     help="Lowest level."),
        click.option("--max", "max_concurrency", type=positive, default=_RULES.max_concurrency, show_default=True,
                     help="Highest level."),
        click.option("--guess", type=positive, help="Where the locator starts."),
    )(command)  # fmt: skip


def rate_options(command: F) -> F:
    """Add which rates may be tried, how far apart, and how requests arrive."""
    rules = RateRules()
    return _all(
        click.option("--min", "min_rate", type=float, default=rules.min_per_s, show_default=True, metavar="RATE",
                     help="Lowest rate, in requests a second."),
        click.option("--max", "max_rate", type=float, default=rules.max_per_s, show_default=True, metavar="RATE",
                     help="Highest rate."),
        click.option("--guess", type=float, metavar="RATE",
                     help="Where the locator starts.  [default: 1 / E2E alone]"),
        click.option("--resolution", default=f"{rules.resolution * 100:g}%", show_default=True, metavar="SHARE",
                     help="How far neighbouring rates are apart at most."),
        click.option("--arrivals", default=rules.kind, show_default=True, metavar="poisson|constant|gamma:SHAPE",
                     help="How arrivals are spread."),
        click.option("--outstanding-limit", type=click.IntRange(min=1), default=rules.outstanding_limit,
                     show_default=True, help="So many unanswered requests end a trial, which fails."),
    )(command)  # fmt: skip


def protocol_options(requests: str = "[default: max(64, 4C, 3/(1-p))]") -> Callable[[F], F]:
    """Add every other constant of the protocol, with its value as default; `requests` says how many make a trial."""
    positive, whole = click.IntRange(min=1), click.IntRange(min=0)
    return _all(
        click.option("--confirmations", type=positive, default=_RULES.confirmations, show_default=True,
                     help="Valid trials for each side of the boundary."),
        click.option("--extra-confirmations", type=whole, default=_RULES.extra_confirmations, show_default=True,
                     help="Trials that may be spent on a noisy level."),
        click.option("--tolerance", type=whole, default=_RULES.tolerance, show_default=True,
                     help="Trials of an extended level that may disagree."),
        click.option("--confidence", metavar="P",
                     help="Certify the rated level at this confidence, e.g. 95%: more trials, see docs/verdict.md."),
        click.option("--loop-limit", default="5%", show_default=True,
                     help="Answers that may end in a loop, where none of the baseline's did."),
        click.option("--requests", type=positive, help=f"Measured requests a trial.  {requests}"),
        click.option("--warmup", type=whole, default=_RULES.warmup, show_default=True,
                     help="Serial warm-up requests of a confirmation."),
        click.option("--quiet", "quiet_s", default="15s",
                     help="Quiet interval before each confirmation.  [default: 15s; none in virtual time]"),
        click.option("--max-trials", type=positive,
                     help=f"Trials a shape may use.  [default: {_RULES.max_trials}, and what --confidence adds]"),
        click.option("--max-time", help="Time the study may take, e.g. 2h."),
        click.option("--operate-below", type=whole, default=_RULES.operate_below, show_default=True,
                     help="Operating policy: so many steps below the rated number."),
    )  # fmt: skip
