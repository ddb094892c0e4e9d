"""The pages on which a simulated server says what it is."""

import msgspec
from msgspec import structs

from nameplate import __version__
from nameplate.sim.preset import Preset


def models_page(model: str, preset: str, created: int, context_tokens: int) -> bytes:
    """Return the list of models, as a vLLM server has it."""
    entry = {
        "id": model,
        "object": "model",
        "created": created,
        "owned_by": "nameplate-sim",
        "root": f"sim:{preset}",
        "parent": None,
        "max_model_len": context_tokens,
    }
    return msgspec.json.encode({"object": "list", "data": [entry]})


def facts_page(preset: Preset, seed: int) -> bytes:
    """Say of the simulated server what a real one tells in its log: this page is the simulator's own."""
    engine = preset.engine
    return msgspec.json.encode(
        {
            "engine": "nameplate-sim",
            "version": __version__,
            "preset": preset.name,
            "seed": seed,
            "template_tokens": preset.template_tokens,
            # A server that claims more than it has does so everywhere.
            "parameters": structs.replace(
                engine, kv_tokens=engine.kv_claim_tokens or engine.kv_tokens, kv_claim_tokens=None
            ),
        }
    )
