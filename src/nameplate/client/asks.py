"""What is asked of prompts that are written while the load runs: read from the notes beside their bodies."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nameplate.client.order import Ask
from nameplate.prompts.store import PromptStore


class _Note(Struct, frozen=True, array_like=True):
    class_name: str
    output_tokens: int
    prompt_sha256: bytes
    head_sha256: bytes


def pack_ask(ask: Ask) -> bytes:
    """Encode an ask as a store's note, msgpack with the hashes as bytes; ValueError where they are not hexadecimal."""
    sha256, head = bytes.fromhex(ask.prompt_sha256), bytes.fromhex(ask.head_sha256)
    return msgspec.msgpack.encode(_Note(ask.class_name, ask.output_tokens, sha256, head))


class StoredAsks:
    """Look up asks in a store that grows; nothing of them stays in memory."""

    def __init__(self, store: PromptStore) -> None:
        self._store = store
        self._decoder = msgspec.msgpack.Decoder(_Note)

    def __call__(self, index: int) -> Ask:
        """Return the ask of a prompt; KeyError where none is written, which is looked at anew."""
        if index not in self._store:
            self._store.refresh()
        note = self._decoder.decode(self._store.note(index))
        return Ask(note.class_name, note.output_tokens, note.prompt_sha256.hex(), note.head_sha256.hex())
