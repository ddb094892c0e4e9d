"""Facts from a server's own log: what the API does not tell about limits, memory and arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from nameplate.contract.errors import CallerError
from nameplate.contract.identity import Fact
from nameplate.engines.answers import facts, whole
from nameplate.engines.sglang import server_info_facts

SOURCE = "server log"
# Engines state their configuration while they start, long before a log grows to this.
LIMIT_BYTES = 64 << 20
_LINE_LIMIT_BYTES = 1 << 18
_ARGUMENTS_LIMIT = 4_000

_SECRET_NAME = re.compile(
    r"(^|_)(api_?keys?|secret|password|passwd|credential|authorization|bearer|hf_token|auth_token|access_token"
    r"|token)$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(r"\b(hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|Bearer\s+\S+)")
_PLACES = frozenset({"host", "port", "nccl_port", "dist_init_addr", "ssl_keyfile_password"})


def read_server_log(path: Path) -> dict[str, Fact]:
    """Return the facts of the last start in the log; CallerError where it cannot be read or holds none."""
    try:
        with path.open("rb") as file:
            found = parse_server_log(_lines(file))
    except OSError as error:
        raise CallerError(
            f"The server log {path} cannot be read: {error.strerror}.", hint="Check --server-log."
        ) from None
    if not found:
        raise CallerError(
            f"The server log {path} holds nothing that is known of vLLM or SGLang.",
            why="Facts from it would be missing on the plate.",
            hint="Give the log from its first line on, or state facts with --fact name=value.",
        )
    return found


def parse_server_log(lines: Iterable[str]) -> dict[str, Fact]:
    """Return what the lines tell; what a later start says replaces what an earlier one said."""
    found: dict[str, Fact] = {}
    for line in lines:
        for mark, start in _STARTS:
            if mark in line:
                found = start(line)
                break
        else:
            for mark, read in _LINES:
                if mark in line:
                    found.update(read(line, found))
    return found


def _lines(file: BinaryIO) -> Iterable[str]:
    size = 0
    while size < LIMIT_BYTES and (raw := file.readline(_LINE_LIMIT_BYTES)):
        size += len(raw)
        yield raw.decode("utf-8", "replace").rstrip("\r\n")


def redacted(name: str, value: Any) -> Any:
    """Return a value that may be kept: keys and tokens by their name, and by how they look, are not."""
    if _SECRET_NAME.search(name):
        return None if value is None else "redacted"
    if isinstance(value, dict):
        return {key: redacted(str(key), inner) for key, inner in value.items()}
    return _SECRET_TEXT.sub("redacted", value) if isinstance(value, str) else value


def _arguments(values: Mapping[str, Any]) -> str:
    parts = []
    for name in sorted(values):
        value = redacted(name, values[name])
        if name not in _PLACES and value is not None:
            parts.append(f"{name}={value}")
    return _SECRET_TEXT.sub("redacted", " ".join(parts))[:_ARGUMENTS_LIMIT]


# -- vLLM


def _vllm_start(line: str) -> dict[str, Fact]:
    text = line.partition("non-default args:")[2].strip()
    values = _literal(text)
    return _vllm_arguments(values if isinstance(values, dict) else _loose_arguments(text))


def _old_vllm_start(line: str) -> dict[str, Fact]:
    """Read the whole namespace that versions before 0.8 wrote."""
    return _vllm_arguments(_call_arguments(line.partition("args: ")[2].strip()))


def _vllm_arguments(values: Mapping[str, Any]) -> dict[str, Fact]:
    dp = whole(values.get("data_parallel_size")) or 1
    limit = whole(values.get("max_num_seqs"))
    degrees = " ".join(
        f"{short}={size}"
        for short, key in (
            ("tp", "tensor_parallel_size"),
            ("pp", "pipeline_parallel_size"),
            ("dp", "data_parallel_size"),
        )
        if (size := whole(values.get(key)))
    )
    found = facts(
        SOURCE,
        engine="vllm",
        model_root=values.get("model"),
        model_snapshot=values.get("revision"),
        context_limit_tokens=whole(values.get("max_model_len")),
        running_limit_requested=None if limit is None else limit * dp,
        running_limit_effective=None if limit is None else limit * dp,
        block_size_tokens=whole(values.get("block_size")),
        quantisation=values.get("quantization"),
        dtype=values.get("dtype"),
        kv_dtype=values.get("kv_cache_dtype"),
        parallel_degrees=degrees,
        graph_policy="eager" if values.get("enforce_eager") is True else None,
        speculative=_speculative(values.get("speculative_config")),
    )
    # Not through `facts`, whose limit is for single values.
    if values:
        found["server_arguments"] = Fact(_arguments(values), SOURCE)
    return found


def _speculative(config: Any) -> str | None:
    if not isinstance(config, dict):
        return None
    return f"{config.get('method')} tokens={config.get('num_speculative_tokens')}"


def _vllm_config(line: str, _: Mapping[str, Fact]) -> dict[str, Fact]:
    """Read `Initializing a V1 LLM engine (vX) with config: ...`: resolved values, in Python's own writing."""

    def field(name: str) -> str | None:
        match = re.search(rf"[\s,(]{name}=('[^']*'|[^,)\s]+)", line)
        text = match.group(1).strip("'") if match else None
        return None if text in (None, "None") else text

    version = re.search(r"engine \(v([^)\s]+)\)", line)
    degrees = " ".join(
        f"{short}={size}"
        for short, name in (
            ("tp", "tensor_parallel_size"),
            ("pp", "pipeline_parallel_size"),
            ("dp", "data_parallel_size"),
        )
        if (size := field(name))
    )
    caching = {"True": True, "False": False}.get(field("enable_prefix_caching") or "")
    found = facts(
        SOURCE,
        engine="vllm",
        version=version.group(1) if version else None,
        model=field("served_model_name"),
        context_limit_tokens=_number(field("max_seq_len")),
        dtype=field("dtype"),
        kv_dtype=field("kv_cache_dtype"),
        quantisation=field("quantization") or ("none" if "quantization=None" in line else None),
        model_snapshot=field("revision"),
        parallel_degrees=degrees,
        prefix_caching=caching,
    )
    if field("enforce_eager") == "True":
        found.update(facts(SOURCE, graph_policy="eager"))
    if "speculative_config=None" in line:
        found.update(facts(SOURCE, speculative="none"))
    return found


def _vllm_pool(line: str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    match = re.search(r"KV cache size: ([\d,]+) tokens", line)
    tokens = _number(match.group(1)) if match else None
    # One line an engine: with data parallelism the pools add up, and each engine names itself.
    engine = re.search(r"EngineCore_(?:DP)?(\d+)", line)
    if tokens is None:
        return {}
    if engine is None or int(engine.group(1)) == 0 or "kv_tokens" not in known:
        return facts(SOURCE, kv_tokens=tokens)
    before = known["kv_tokens"].value
    return facts(SOURCE, kv_tokens=tokens + int(before) if isinstance(before, int) else tokens)


def _vllm_blocks(line: str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    match = re.search(r"# (?:GPU|CPU|cpu|gpu) blocks: ([\d,]+)", line)
    size = known.get("block_size_tokens")
    # Blocks x size is wrong for hybrid caches, so the engine's own count wins wherever it stands.
    if match is None or "kv_tokens" in known or size is None or not isinstance(size.value, int):
        return {}
    blocks = _number(match.group(1))
    return facts(f"{SOURCE} (blocks x size)", kv_tokens=None if blocks is None else blocks * size.value)


# -- SGLang


def _sglang_start(line: str) -> dict[str, Fact]:
    values = _call_arguments(line.partition("server_args=")[2].strip())
    found = facts(SOURCE, engine="sglang")
    found.update(server_info_facts(values, SOURCE))
    if values:
        found["server_arguments"] = Fact(_arguments(values), SOURCE)
    return found


def _sglang_pool(line: str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    def field(name: str) -> int | None:
        match = re.search(rf"\b{name}=(\d+)", line)
        return _number(match.group(1)) if match else None

    dp = _data_parallel(known)
    pool, limit = field("max_total_num_tokens"), field("max_running_requests")
    # Each rank writes this line; they all say the same of their own data-parallel engine.
    return facts(
        SOURCE,
        kv_tokens=None if pool is None else pool * dp,
        running_limit_effective=None if limit is None else limit * dp,
        context_limit_tokens=field("context_len"),
    )


def _sglang_reduced(line: str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    match = re.search(r"was reduced from the requested (\d+) to (\d+)", line)
    if match is None:
        return {}
    dp = _data_parallel(known) if "per dp worker" in line else 1
    return facts(
        SOURCE,
        running_limit_requested=int(match.group(1)) * dp,
        running_limit_effective=int(match.group(2)) * dp,
    )


def _data_parallel(known: Mapping[str, Fact]) -> int:
    degrees = known.get("parallel_degrees")
    match = re.search(r"\bdp=(\d+)", str(degrees.value)) if degrees else None
    return int(match.group(1)) if match else 1


# -- both


def _number(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _call_arguments(text: str) -> dict[str, Any]:
    """Read `ServerArgs(a='b', c=1, ...)`; arguments that are no literals are left out, and nothing is run."""
    try:
        call = ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _loose_arguments(text)
    if not isinstance(call, ast.Call):
        return {}
    found = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        try:
            found[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            continue
    return found


def _loose_arguments(text: str) -> dict[str, Any]:
    """Read what can be read where some value is not Python (`<Enum: 1>`) or the line was cut."""
    pairs = re.findall(r"\b(\w+)(?:=|': )('[^']*'|-?\d+(?:\.\d+)?|True|False|None)(?=[,)}])", text)
    return {name: _literal(value) for name, value in pairs}


_STARTS: tuple[tuple[str, Callable[[str], dict[str, Fact]]], ...] = (
    ("non-default args:", _vllm_start),
    (" args: Namespace(", _old_vllm_start),
    ("server_args=ServerArgs(", _sglang_start),
)
_LINES: tuple[tuple[str, Callable[[str, Mapping[str, Fact]], dict[str, Fact]]], ...] = (
    ("LLM engine (v", _vllm_config),
    ("KV cache size:", _vllm_pool),
    (" blocks:", _vllm_blocks),
    ("max_total_num_tokens=", _sglang_pool),
    ("max_running_requests was reduced", _sglang_reduced),
)
