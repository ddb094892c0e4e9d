"""What a report says was run: the load, and the engine as far as its own facts tell."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.exchange.llmd.statistics import known
from nameplate.exchange.redact import redact

# The newest revision of the schema's 0.2 line.
VERSION = "0.2.1"
ENGINE = "engine"


def document_of(run: dict[str, Any], scenario: dict[str, Any], results: dict[str, Any]) -> bytes:
    """Return a whole report as JSON, which is YAML as well."""
    report = {"version": VERSION, "run": run, "scenario": scenario, "results": results}
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def run_of(
    contract: Contract, key: str, begin_wall_ns: int, length_s: float, description: str
) -> dict[str, Any]:
    """Return when the run was, and which of which experiment."""
    return {
        "uid": hashlib.sha256(f"{contract.nonce}/{key}".encode()).hexdigest()[:32],
        "eid": contract.nonce,
        "time": {
            "start": wall(begin_wall_ns),
            "end": wall(begin_wall_ns + round(length_s * 1e9)),
            "duration": f"PT{length_s:.9f}S",
        },
        "description": description,
        "keywords": ["nameplate"],
    }


def scenario_of(
    contract: Contract,
    plan: TrialPlan,
    identity: Identity,
    tool_version: str,
    *,
    workers: int | None = None,
    stage: int | None = None,
) -> dict[str, Any]:
    """Return the load, and the engine where it says what it is."""
    return known(
        stack=stack_of(identity, contract.target.model),
        load=_load(contract, plan, tool_version, workers, stage),
    )


def stack_of(identity: Identity, model: str) -> list[dict[str, Any]] | None:
    """Return the engine as a component; None where its name or version is not known.

    It is a generic one: what an inference engine's component must have (accelerators and their parallelism, replicas)
    is told by few servers, and nothing is made up.
    """
    engine, version = identity.text("engine"), identity.text("version")
    if engine is None or version is None:
        return None
    facts = {name: fact.value for name, fact in sorted(identity.facts.items())}
    # A restart alone is no other configuration.
    lasting = {name: value for name, value in facts.items() if name != "process_start_time_s"}
    digest = hashlib.sha256(msgspec.json.encode(lasting, order="sorted")).hexdigest()
    return [
        {
            "metadata": {
                "label": ENGINE,
                "cfg_id": digest[:32],
                "description": "As the server itself tells.",
            },
            "standardized": {
                "kind": "generic",
                "tool": engine,
                "tool_version": version,
                "model": {"name": model},
            },
            "native": {"config": redact(facts)},
        }
    ]


def _load(
    contract: Contract, plan: TrialPlan, tool_version: str, workers: int | None, stage: int | None
) -> dict[str, Any]:
    arrivals = plan.arrivals
    trace = arrivals is not None and arrivals.trace is not None
    steady = arrivals is not None and not trace and arrivals.ramp is None and not arrivals.steps
    config = redact(msgspec.to_builtins({"plan": plan.as_written, "contract": contract}))
    native = msgspec.json.encode(config, order="sorted")
    return {
        "metadata": {"cfg_id": hashlib.sha256(native).hexdigest()[:32]},
        "standardized": known(
            tool="nameplate",
            tool_version=tool_version,
            parallelism=workers,
            source="unknown" if trace else "random" if contract.dataset is None else "sampled",
            stage=stage,
            input_seq_len=_length(plan.shape.input_tokens, trace),
            # Without it the model ends when it likes, and the length is a limit.
            output_seq_len=_length(plan.shape.output_tokens, trace) if contract.sampling.ignore_eos else None,
            rate_qps=arrivals.rate if arrivals is not None and steady else None,
            concurrency=plan.concurrency if arrivals is None else None,
        ),
        "native": {"config": config},
    }


def _length(tokens: int, trace: bool) -> dict[str, Any]:
    return {"distribution": "other" if trace else "fixed", "value": tokens}


def wall(ns: int) -> str:
    """Return wall time as text."""
    return datetime.fromtimestamp(ns // 1_000 / 1e6, UTC).isoformat(timespec="microseconds")
