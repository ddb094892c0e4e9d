"""All machines that can be simulated, by name."""

from nameplate.sim.machines import B70X4, DSPARK, H200
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.preset import Neighbour, Preset
from nameplate.sim.troubles import MATRIX, TROUBLES

__all__ = ["B70X4", "DEMO", "DSPARK", "H200", "MATRIX", "PRESETS", "Neighbour", "Preset", "find_preset"]

DEMO = Preset(
    name="demo",
    about="a small fast server for demonstrations: its boundary is found live in about a minute",
    model="demo",
    # With blocks of 16 the head of 24 tokens (30 less the six around the message) fills one block that all prompts
    # share, as real templates do: the template floor is not zero.
    template_tokens=30,
    # Invented, so that 512/64 alone takes 0.2 s, and a p95 TTFT of 0.25 s lies midway between two levels, 9 and 10.
    # A step takes one such prompt and up to 48 decodes, and lasts some 40 ms with it: in an opening burst of C the
    # k-th first token comes after k x 40 ms, and of 64 requests the p95 is about that of k = C - 3.
    engine=EngineParameters(
        scheduler="mixed",
        step_ns=2_500_000,
        prefill_token_ns=67_500.0,
        decode_sequence_ns=100_000.0,
        resident_token_ns=20.0,
        chunk_tokens=560,
        kv_tokens=65_536,
        block_tokens=16,
        running_limit_requested=32,
        running_limit=32,
        context_tokens=8_192,
        noise=0.01,
    ),
)

PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (DEMO, B70X4, H200, DSPARK, MATRIX, *TROUBLES)
}


def find_preset(name: str) -> Preset:
    """Return the preset of that name; raise ValueError naming those that exist."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}") from None
