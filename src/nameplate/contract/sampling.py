"""How the model is asked to generate: part of the contract, because output length decides residency."""

from __future__ import annotations

from msgspec import Struct


class Sampling(Struct, frozen=True):
    """Hold what is sent with every request; None means the field is not sent and the server's default rules.

    `seed_per_request` sends a seed that is a function of the request's prompt, so that a re-run repeats it.
    `ignore_eos` with a fixed output length keeps decode residency the same for every request; without it answers
    stop naturally and the requested length is only their upper bound.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed_per_request: bool = False
    ignore_eos: bool = True
