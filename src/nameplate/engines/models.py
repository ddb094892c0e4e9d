"""Which models a server offers, and which of them is meant."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.errors import CallerError, ServerError
from nameplate.contract.target import Target
from nameplate.engines.answers import child, json_object, json_value, whole
from nameplate.engines.transport import Reply, Transport

_MAX_MODELS = 1_000
_SHOWN = 12


class ServedModel(Struct, frozen=True):
    """Hold one entry of `/v1/models`; `parent` is set for adapters (LoRA) of another entry."""

    id: str
    root: str | None = None
    parent: str | None = None
    owned_by: str | None = None
    context_limit_tokens: int | None = None


def models_path(target: Target) -> str:
    return f"{target.base_path}/v1/models"


def list_models(transport: Transport, target: Target) -> tuple[ServedModel, ...] | None:
    """Return what is served, None where the server has no such list (404, 405, 501).

    ServerError, each with its own words: a key is needed, a web page, a redirect, something that is no such list.
    """
    reply = transport.fetch("GET", models_path(target))
    if reply.status in (404, 405, 501) and not _is_html(reply):
        return None
    check_openai(reply, target)
    entries = json_object(reply).get("data")
    if not isinstance(entries, list):
        raise ServerError(
            f"{target.url} is not an OpenAI-compatible API: /v1/models answered {reply.excerpt(80)!r}.",
            hint="Check the URL's path; the part before /v1 belongs to it.",
        )
    return tuple(_model(entry) for entry in entries[:_MAX_MODELS] if isinstance(child(entry, "id"), str))


def check_openai(reply: Reply, target: Target) -> None:
    """Raise a ServerError that names what answered instead of an OpenAI-compatible API."""
    if reply.status in (401, 403):
        raise ServerError(
            f"{target.url} asks for a key (HTTP {reply.status}).",
            why="Without it no request is served.",
            hint="Name the environment variable that holds it with --api-key-env, or a file with --api-key-file.",
        )
    if 300 <= reply.status < 400:
        raise ServerError(
            f"{target.url} redirects to {reply.header('location')[:200] or 'nowhere'}.",
            why="A redirect would be part of every measured latency.",
            hint="Give the address that it leads to.",
        )
    if _is_html(reply):
        raise ServerError(
            f"{target.url} is not an OpenAI-compatible API: it answered a web page (HTTP {reply.status}).",
            hint="Is this the port of the server itself, and not of a web interface or a login page?",
        )
    if reply.status == 503:
        raise ServerError(
            f"{target.url} is not ready (HTTP 503: {reply.excerpt(80)}).",
            hint="Wait until it has loaded its model.",
        )
    if not reply.ok:
        raise ServerError(
            f"{target.url} answered HTTP {reply.status} to its model list: {reply.excerpt(120)}",
            hint="See the server's log.",
        )
    if json_value(reply.body) is None:
        raise ServerError(
            f"{target.url} is not an OpenAI-compatible API: "
            f"it answered {reply.excerpt(60)!r} where JSON is due.",
            hint="Check host, port and path.",
        )


def choose_model(models: tuple[ServedModel, ...] | None, wanted: str, target: Target) -> str:
    """Return the model's name: the wanted one, or the only one served.

    Aliases of one root count as one model, and adapters do not count. The errors list what is served; CallerError
    where the caller must choose, ServerError where the server has not what is asked for.
    """
    if models is None:
        if wanted:
            return wanted
        raise ServerError(
            f"{target.url} does not list its models.",
            why="Requests must name one.",
            hint="Give its name with --model.",
        )
    ids = [model.id for model in models]
    if wanted:
        if wanted in ids:
            return wanted
        raise ServerError(
            f"{target.url} does not serve a model named {wanted!r}.",
            why=_served(ids),
            hint="Give one of these with --model." if ids else "Has it finished loading?",
        )
    bases = [model for model in models if model.parent is None]
    if not bases:
        raise ServerError(f"{target.url} serves no model.", hint="Has it finished loading?")
    roots = {model.root or model.id for model in bases}
    if len(roots) > 1:
        raise CallerError(
            f"{target.url} serves {len(bases)} models.",
            why=_served([model.id for model in bases]),
            hint="Choose one with --model.",
        )
    return bases[0].id


def _served(ids: list[str]) -> str:
    if not ids:
        return "It serves none."
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"It serves {', '.join(name[:120] for name in ids[:_SHOWN])}{more}."


def _model(entry: object) -> ServedModel:
    def text(key: str) -> str | None:
        value = child(entry, key)
        return value[:500] if isinstance(value, str) and value else None

    context = whole(child(entry, "max_model_len"))
    return ServedModel(text("id") or "", text("root"), text("parent"), text("owned_by"), context)


def _is_html(reply: Reply) -> bool:
    return reply.content_type == "text/html" or reply.body[:200].lstrip().lower().startswith(
        (b"<!doctype", b"<html")
    )
