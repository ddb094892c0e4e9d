"""Keys stay out of what is kept and of what is given on."""

from __future__ import annotations

import pytest

from nameplate.exchange.redact import REDACTED, has_secrets, redact


@pytest.mark.parametrize(
    "value",
    [
        {"api_key": "abc"},
        {"args": {"Authorization": "Bearer abcdefgh"}},
        {"note": "sk-abcdefghijkl in a text"},
        {"launch": "vllm serve --api-key hunter22 --port 1"},
        {"server": "http://user:word@host"},
        {"list": [{"hf_token": "x"}, "hf_abcdefghij"]},
        {"header": "authorization: Bearer abcdefgh"},
    ],
)
def test_keys_go(value: object) -> None:
    """Keys by their name and by how they look are replaced, however deep they are."""
    assert has_secrets(value) and REDACTED in str(redact(value))
    assert not any(secret in str(redact(value)) for secret in ("hunter22", "abcdefgh", "user:word", "'abc'"))


@pytest.mark.parametrize(
    "value",
    [{"max_tokens": "12"}, {"forced_token_id": 5}, {"server": "http://h:1/v1"}, {"keys": ["a"]}, None, 4.5],
)
def test_other_words_stay(value: object) -> None:
    """Names that only contain such a word are left alone."""
    assert redact(value) == value and not has_secrets(value)
