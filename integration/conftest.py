"""One real server for all tests that can share it: vLLM takes most of a minute to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.vllm_cpu import serving

PORT = 8131


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """Serve four running sequences from a pool of 8,192 tokens, with dev mode (flush) and cached-token reports."""
    flags = [
        "--max-num-seqs", "4", "--max-model-len", "4096", "--block-size", "32", "--num-gpu-blocks-override", "256",
        "--enable-prompt-tokens-details",
        # A pool's whole content in one step: chunked prefill of a request with a seed of its own ends the CPU engine.
        "--max-num-batched-tokens", "8448",
    ]  # fmt: skip
    with serving(PORT, flags) as address:
        yield address
