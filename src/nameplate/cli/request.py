"""From options to values: the one place where the command line's words are read."""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.cache import CachePolicy
from nameplate.contract.contract import Contract
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.errors import CallerError
from nameplate.contract.identity import Fact
from nameplate.contract.quantity import parse_duration_ns, parse_ratio
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.target import Credentials, Target
from nameplate.evidence.header import Keeping
from nameplate.schedule.stage import process_of

Options = Mapping[str, Any]

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class Address(Struct, frozen=True):
    """Hold where a command's target is: a server, or a preset of the built-in engine."""

    target: Target
    preset: str | None = None
    live: bool = False
    faults: tuple[str, ...] = ()

    @property
    def virtual(self) -> bool:
        return self.preset is not None and not self.live


def read_address(text: str, options: Options) -> Address:
    """Read TARGET and the options that reach it; CallerError where they contradict each other."""
    faults, live = tuple(options["faults"]), bool(options["live"])
    if text.startswith("sim:"):
        preset = text.removeprefix("sim:")
        return Address(_dialect(Target("http", "sim", 80), options), preset, live, faults)
    if live or faults:
        raise CallerError(
            "--live and --fault belong to sim:PRESET.", hint="Leave them out for a server of your own."
        )
    target = _dialect(Target.parse(text), options)
    if target.scheme == "http" and (target.ca_file or target.insecure):
        raise CallerError("--ca-file and --insecure belong to https.", hint="Write https:// in the URL.")
    return Address(target)


def read_address_again(text: str | None, options: Options, stored: Target) -> Address:
    """Read where a study that goes on finds its server, `stored` without a word; CallerError for another server."""
    if text is None and stored.host == "sim":
        raise CallerError("The study ran on the built-in engine.", hint="Name it again: sim:PRESET.")
    address = Address(stored) if text is None else read_address(text, options)
    if address.preset is None and address.target.url != stored.url:
        raise CallerError(
            f"The study belongs to {stored.url}, not to {address.target.url}.", hint="Begin a new study."
        )
    return address


def _dialect(target: Target, options: Options) -> Target:
    return structs.replace(
        target,
        api=options["api"] or target.api,
        model=options["model"] or "",
        ca_file=str(options["ca_file"]) if options["ca_file"] else None,
        insecure=options["insecure"],
        extra_body=_extra_body(options["extra_body"]),
    )


def _extra_body(texts: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CallerError(f"--body {text!r} is not NAME=JSON.", hint="For example --body top_logprobs=2.")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    return fields


def read_credentials(options: Options) -> Credentials:
    """Read keys and extra headers; CallerError where one is missing or malformed."""
    headers: list[tuple[str, str]] = []
    key = _key(options["api_key_env"], options["api_key_file"])
    if key is not None:
        headers.append(("Authorization", f"Bearer {key}"))
    for text in options["headers"]:
        name, colon, value = text.partition(":")
        if not colon or not _HEADER.fullmatch(name.strip()) or "\n" in value or "\r" in value:
            raise CallerError(
                "A --header is not 'NAME: VALUE'.", hint="For example --header 'X-Team: search'."
            )
        if name.strip().lower() in ("host", "content-length", "transfer-encoding", "connection"):
            raise CallerError(f"The header {name.strip()} is nameplate's own.", hint="Leave it out.")
        headers.append((name.strip(), value.strip()))
    return Credentials(tuple(headers))


def _key(env: str | None, file: Path | None) -> str | None:
    if env is not None and file is not None:
        raise CallerError("--api-key-env and --api-key-file are both given.", hint="Give one.")
    if env is not None:
        key = os.environ.get(env, "").strip()
        if not key:
            raise CallerError(
                f"The environment variable {env} is not set.", hint="Export it, or use --api-key-file."
            )
    elif file is not None:
        key = file.read_text(encoding="utf-8", errors="replace").strip()
        if not key:
            raise CallerError(f"The key file {file} is empty.")
    else:
        return None
    if not key.isascii() or any(character.isspace() for character in key):
        raise CallerError("The API key has spaces or characters outside ASCII.", hint="Is it the right file?")
    return key


def read_facts(options: Options) -> tuple[dict[str, Fact], dict[str, Fact]]:
    """Read the facts of a server log, and those that a person gives."""
    from nameplate.engines.given import kv_tokens_fact, parse_facts
    from nameplate.engines.serverlog import read_server_log

    log = read_server_log(options["server_log"]) if options["server_log"] else {}
    given = parse_facts(options["facts"])
    if options["kv_tokens"] is not None:
        given |= kv_tokens_fact(options["kv_tokens"])
    return dict(log), given


def read_sampling(options: Options) -> Sampling:
    """Read how the model is asked to generate."""
    text = options["temperature"].strip().lower()
    try:
        temperature = None if text == "none" else float(text)
    except ValueError:
        raise CallerError(
            f"--temperature {text!r} is not a number.", hint="Give a number, or none."
        ) from None
    if temperature is not None and not 0 <= temperature <= 100:
        raise CallerError(f"--temperature {text} is out of range.")
    seeds = options["request_seeds"]
    return Sampling(
        temperature=temperature,
        top_p=options["top_p"],
        top_k=options["top_k"],
        seed_per_request=seeds if seeds is not None else temperature not in (None, 0.0),
        ignore_eos=not options["natural_stops"],
    )


def read_keeping(options: Options) -> Keeping:
    """Read what of the raw evidence is kept."""
    raw = "none" if options["no_raw"] else options["raw"]
    prompts = not options["no_prompts"]
    if raw == "all":
        return Keeping("all", 1, prompts)
    if raw == "none":
        return Keeping("none", 1, prompts)
    kind, colon, every = raw.partition(":")
    if kind != "sample" or not colon or not every.isdigit() or int(every) < 1:
        raise CallerError(
            f"--raw {raw!r} is not all, none or sample:N.", hint="sample:10 keeps one request in ten."
        )
    return Keeping("sample", int(every), prompts)


def read_deadlines(
    options: Options,
    slos: tuple[Slo, ...],
    usual: Deadlines = Deadlines(),  # noqa: B008 - frozen
) -> Deadlines:
    """Read the client's deadlines, `usual` without any; CallerError for one that is not above an SLO's limit."""
    given: dict[str, int] = {}
    for text in options["deadlines"]:
        name, equals, value = text.partition("=")
        field = f"{name.strip().replace('-', '_')}_ns"
        if not equals or field not in Deadlines.__struct_fields__:
            raise CallerError(
                f"--deadline {text!r} is not NAME=DURATION.",
                hint="Names: connect, first_output, silence, total; for example first_output=15m.",
            )
        given[field] = parse_duration_ns(value)
        if given[field] == 0:
            raise CallerError(f"--deadline {text!r} leaves no time at all.", hint="Give one above 0.")
    if given:
        return Deadlines.for_slos(slos, structs.replace(usual, **given))
    first_output_ns = max(usual.first_output_ns, Deadlines.for_slos(slos).first_output_ns)
    return structs.replace(usual, first_output_ns=first_output_ns)


def read_contract(
    address: Address,
    options: Options,
    shapes: Sequence[str],
    slos: Sequence[str],
    rules: Rules,
    rate: RateRules | None = None,
    deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
) -> Contract:
    """Put a contract together, with `deadlines` where none are given; its nonce is fresh."""
    read_slos = tuple(Slo.parse(text) for text in slos)
    return Contract(
        target=address.target,
        shapes=tuple(dict.fromkeys(Shape.parse(text) for text in shapes)),
        slos=read_slos,
        nonce=secrets.token_hex(8),
        sampling=read_sampling(options),
        cache=CachePolicy.parse(options["cache"], options["flush"]),
        deadlines=read_deadlines(options, read_slos, deadlines),
        rules=rules,
        seed=options["seed"],
        header_names=tuple(name for name, _ in read_credentials(options).headers),
        dataset=str(options["dataset"]) if options["dataset"] else None,
        rate=rate,
    )


def read_rates(options: Options) -> RateRules:
    """Read which rates a study may try; CallerError where there are none, or what belongs to a closed loop is given."""
    if options["start"] != Rules().start:
        raise CallerError(
            "--start belongs to a closed loop.", hint="Leave it out: an open loop has no slots to begin."
        )
    if options["outstanding_limit"] < options["workers"]:
        raise CallerError(
            f"{options['workers']} workers cannot share {options['outstanding_limit']} outstanding requests.",
            hint="Raise --outstanding-limit, or ask for fewer --workers.",
        )
    arrivals = ArrivalPlan.parse(1.0, options["arrivals"], options["seed"], options["outstanding_limit"])
    rates = RateRules(
        kind=arrivals.kind,
        burstiness=arrivals.burstiness,
        resolution=parse_ratio(options["resolution"]),
        min_per_s=options["min_rate"],
        max_per_s=options["max_rate"],
        guess_per_s=options["guess"],
        outstanding_limit=options["outstanding_limit"],
    )
    rates.require()
    # Refuses gaps that cannot be drawn, before the server is asked anything.
    process_of(arrivals)
    return rates


def redacted_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line as it may be stored: header values hold keys, so they are left out."""
    shown: list[str] = ["nameplate"]
    hide = False
    for argument in arguments:
        if hide:
            shown.append(argument.partition(":")[0] + ": <redacted>")
            hide = False
        elif argument.startswith("--header="):
            shown.append(argument.partition(":")[0] + ": <redacted>")
        else:
            shown.append(argument)
            hide = argument == "--header"
    return tuple(shown)


def client_host() -> dict[str, str | int]:
    """Describe the machine that sends the load; it is never taken for the server's."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count() or 0,
        "python": platform.python_version(),
    }


def default_directory(study: str) -> Path:
    """Name a results directory of the moment."""
    return Path("runs") / f"{study}-{time.strftime('%Y%m%d-%H%M%S')}"


def proxy_notice() -> str | None:
    """Say that proxy variables are not obeyed, where any is set."""
    found = [name for name in _PROXIES if os.environ.get(name)]
    return (
        f"{', '.join(found)} set and ignored: a proxy would be measured with the server." if found else None
    )
