"""What every engine adapter offers, and how one that knows nothing answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from nameplate.contract.errors import ServerError
from nameplate.contract.identity import Fact, Identity
from nameplate.contract.target import Target
from nameplate.engines.answers import facts, json_object
from nameplate.engines.clock import Clock
from nameplate.engines.failures import TransportError
from nameplate.engines.metrics import TABLES, MetricsTable
from nameplate.engines.models import ServedModel, list_models, models_path
from nameplate.engines.page import read_state
from nameplate.engines.state import ServerState
from nameplate.engines.transport import Reply, Transport

# A flush waits for the engine's current step, and some engines for all that is in flight.
_ORDER_TIMEOUT_S = 60.0


class FlushReply(Struct, frozen=True):
    """Hold what the server said to a flush or an abort; None is unknown. Accepted is not yet proven."""

    supported: bool | None
    accepted: bool | None
    detail: str


class TokenCount(Struct, frozen=True):
    """Hold the server's own count; `templated` says whether the chat template is in it, as in usage."""

    count: int
    templated: bool


class Adapter:
    """Speak to one server whose engine is `name`; the base knows only what OpenAI's API tells.

    Nothing here raises for an answer that is missing, late or odd: it is unknown. Only `served_models` raises
    ServerError, in the words of `models.py`.
    """

    name: ClassVar[str] = "generic"
    flush_path: ClassVar[str | None] = None
    how_to_enable: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        transport: Transport,
        target: Target,
        clock: Clock,
        detected_by: str = "",
        metrics_path: str | None = None,
    ) -> None:
        self.transport = transport
        self.target = target
        self.clock = clock
        self.detected_by = detected_by
        self._metrics_path = metrics_path

    # -- what it is

    def served_models(self) -> tuple[ServedModel, ...]:
        """Return the model list; empty where the server has none; ServerError where it does not answer."""
        return list_models(self.transport, self.target) or ()

    def identity(self) -> Identity:
        """Return the facts that the API tells now, each with its source; absent is unknown."""
        return Identity({**self._model_facts(), **self._engine_facts(), **self._state_facts()})

    def _model_facts(self) -> dict[str, Fact]:
        path = models_path(self.target)
        try:
            models = self.served_models()
        except ServerError:
            return {}
        for model in models:
            if model.id == self.target.model or not self.target.model:
                return facts(
                    path,
                    model=model.id,
                    model_root=model.root,
                    context_limit_tokens=model.context_limit_tokens,
                )
        return facts("--model", model=self.target.model)

    def _engine_facts(self) -> dict[str, Fact]:
        """Return what only this engine tells."""
        return {}

    def _state_facts(self) -> dict[str, Fact]:
        if self.table is None:
            return {}
        state = self.state()
        return facts(
            self.metrics_path or "metrics",
            kv_tokens=state.kv_tokens,
            block_size_tokens=state.block_size_tokens,
            prefix_caching=state.prefix_caching,
            process_start_time_s=state.process_start_time_s,
        )

    # -- how it is

    @property
    def table(self) -> MetricsTable | None:
        return TABLES.get(self.name)

    @property
    def metrics_path(self) -> str | None:
        """Return the path on the wire of the page that answered `state`; None until one did."""
        return self._metrics_path

    def state(self) -> ServerState:
        """Scrape once; a state with `error` where the page is absent, odd or too late."""
        table = self.table
        if table is None:
            return ServerState(
                self.clock.now_ns(), error="this engine is not known, so its metrics page is not read"
            )
        paths = [self._metrics_path] if self._metrics_path else self._candidate_paths(table)
        state = ServerState(self.clock.now_ns(), error="no metrics page")
        for path in paths:
            try:
                reply = self.transport.fetch("GET", path)
            except TransportError as error:
                return ServerState(self.clock.now_ns(), error=error.what)
            state = read_state(reply, table, self.clock.now_ns())
            if state.error is None:
                self._metrics_path = path
                return state
        return state

    def _candidate_paths(self, table: MetricsTable) -> list[str]:
        """Return where the page may be: metrics are usually mounted at the root, even behind a prefix."""
        bases = dict.fromkeys((self.target.base_path, ""))
        return [base + path for path in table.paths for base in bases]

    def healthy(self, timeout_s: float = 10.0) -> bool:
        """Say whether the server answers `/health` (or lists its models, where it has no such path) within a time."""
        for path in ("/health", "/v1/models"):
            reply = self._try("GET", path, timeout_s=timeout_s)
            if reply is None:
                return False
            if reply.status not in (404, 405, 501):
                return reply.ok
        return False

    # -- what it can be asked to do

    def flush(self) -> FlushReply:
        """Ask the server to drop its prefix cache."""
        if self.flush_path is None:
            return FlushReply(
                None, None, "this engine is not known, so it is not known how to flush its cache"
            )
        return self._order(self.flush_path)

    def abort_all(self) -> FlushReply:
        """Ask the server to stop everything it works on, where it can be asked."""
        return FlushReply(False, None, "this engine has no such request")

    def tokenize(self, text: str) -> TokenCount | None:  # noqa: ARG002 - the base cannot count
        """Count the tokens of one user message, the chat template included where the server can; None if it cannot."""
        return None

    # -- for the engines

    def _try(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, timeout_s: float = 10.0
    ) -> Reply | None:
        """Fetch below the base path; None where no answer came."""
        data = None if body is None else msgspec.json.encode(body)
        try:
            return self.transport.fetch(method, self.target.base_path + path, data, timeout_s=timeout_s)
        except TransportError:
            return None

    def _object(self, *paths: str) -> tuple[Mapping[str, Any], str]:
        """Return the first of these paths that answers with a JSON object, and that path."""
        for path in paths:
            reply = self._try("GET", path)
            found = json_object(reply) if reply else {}
            if found:
                return found, self.target.base_path + path
        return {}, ""

    def _order(self, path: str, body: Mapping[str, Any] | None = None) -> FlushReply:
        reply = self._try("POST", path, body, _ORDER_TIMEOUT_S)
        if reply is None:
            return FlushReply(None, None, f"POST {path} got no answer")
        said = f"POST {path} answered HTTP {reply.status}"
        if reply.status in (404, 405, 501):
            return FlushReply(False, None, said)
        if reply.status in (401, 403):
            return FlushReply(None, False, f"{said}: a key with more rights is needed")
        success = json_object(reply).get("success")
        if isinstance(success, bool):
            return FlushReply(True, success, f"{said}, success {str(success).lower()}")
        detail = f": {reply.excerpt(120)}" if reply.body else ""
        return FlushReply(True, reply.ok, said + detail)
