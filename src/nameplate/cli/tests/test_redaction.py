"""What people paste may hold keys: none of them is stored, and what is no key stays as it was."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.cli.redaction import HIDDEN, redacted

KEY = "Zq7-very_Secret9x"
FORMS = (
    "vllm serve m --api-key {} --port 8000",
    "vllm serve m --api-key={} --port 8000",
    "vllm serve m --api-key '{}' --port 8000",
    'vllm serve m --api-key "{}" --port 8000',
    "vllm serve m --api_key {}",
    "HF_TOKEN={} vllm serve m",
    "export HF_TOKEN='{}'; vllm serve m",
    "setenv HF_TOKEN {}",
    "docker run -e HUGGING_FACE_HUB_TOKEN={} image",
    "docker run --env=OPENAI_API_KEY={} image",
    'docker run --env "VLLM_API_KEY={}" image',
    "AWS_SECRET_ACCESS_KEY={} run",
    "server --hf-token {}",
    "server --token {}",
    "server --token={}",
    "server --auth-token {} --x",
    "server --password {}",
    "server --db-password={}",
    "server --client-secret {}",
    "server --key {}",
    "curl -H 'Authorization: Bearer {}' host",
    "curl -H 'Authorization: Basic {}' host",
    "curl -H 'x-api-key: {}' host",
    "authorization: bearer {}",
    "http://user:{}@host:8000/v1",
    "redis://:{}@cache/0",
    "https://host/v1?key={}&model=m",
    "https://host/v1?model=m&api_key={}",
    "https://host/v1?token={}",
    '{{"api_key": "{}", "model": "m"}}',
    '{{"model":"m","api_key":"{}"}}',
    "{{'accessToken': '{}'}}",
    '--config "{{\\"apiKey\\": \\"{}\\"}}"',
    "api_key: {}",
    "password: {}",
    "token: {}",
    'bash -c "vllm serve m --api-key {}"',
    "--api-key\n{}",
    "env = [OPENAI_API_KEY={}]",
    "['vllm', '--api-key', '{}']",
)
PLAIN = (
    "vllm serve m --max-num-batched-tokens 8192 --max-tokens=4096 --tokenizer mistral --tokenizer-mode auto",
    "--max-model-len 131072 --num-speculative-tokens 3 --speculative-config '{\"num_speculative_tokens\": 3}'",
    "--kv-tokens 1515055 --chunked-prefill-size=2048 --prefill-tokens 512 --max-total-tokens 99",
    "--skip-tokenizer-init --tokenizer-path /models/x --api-key-env NAME --api-key-file key.txt",
    "--pad-token 0 --image-token-id 5 --eos-token </s>",
    "time to first token: 12 ms, and the token rate was 50 tok/s; tokens: 8192",
    "every key of the keyboard; --keep-alive 5 --key-value-cache fp8 --ssl-keyfile /k.pem",
    "http://10.0.0.1:8000/v1 user@host git@github.com:a/b.git",
    "monkey=1 turkey: 2 passwordless --secretary bob",
    "pip install hf_transfer; HF_HUB_ENABLE_HF_TRANSFER=1 HF_HOME=/data sk-learn",
    "CUDA_VISIBLE_DEVICES=0,1 TOKENIZERS_PARALLELISM=false VLLM_USE_V1=1",
    "",
)  # fmt: skip
SHAPES = (
    "sk-" + "a1B2" * 5,
    "sk-proj-" + "a1B2" * 5,
    "hf_" + "AbCd" * 8,
    "ghp_" + "AbCd" * 9,
    "github_pat_" + "AbCd_" * 9,
    "xoxb-123456-abcdef",
    "nvapi-" + "AbCd" * 8,
    "AKIA" + "ABCD" * 4,
    "AIza" + "AbCd-" * 7,
    "eyJhbGciOiJI.eyJzdWIiOiIx.abcDEF123_-x",
)


@pytest.mark.parametrize("form", FORMS)
def test_keys_vanish_in_every_form(form: str) -> None:
    """A key given as an option, variable, header, field or in a URL is not in what is stored."""
    text = redacted(form.format(KEY))
    assert KEY not in text and HIDDEN in text


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_key_stays(text: str) -> None:
    """Options that count tokens or name files, plain URLs and prose are stored as they are."""
    assert redacted(text) == text


@pytest.mark.parametrize("key", SHAPES)
def test_known_shapes_vanish_anywhere(key: str) -> None:
    """A key of a well-known shape is left out whatever stands around it."""
    for form in ("{}", "I used {} for this", "x={}", '"{}"', "--whatever {} --more", "({})"):
        assert key not in redacted(form.format(key))


def test_what_stands_around_a_key_stays() -> None:
    """Only the key is left out: the options beside it, and the quotes around it, are what they were."""
    assert redacted("serve m --api-key 'k y' --port 80") == f"serve m --api-key '{HIDDEN}' --port 80"
    assert redacted('{"api_key":"x","model":"m"}') == f'{{"api_key":"{HIDDEN}","model":"m"}}'
    assert redacted("http://u:p@h/v1") == f"http://u:{HIDDEN}@h/v1"
    assert redacted("--api-key --port 80") == "--api-key --port 80"


@given(
    st.text(string.ascii_letters + string.digits + "+/=_.~%$#!*()[]{}<>?,-", min_size=9, max_size=80).filter(
        lambda key: not key.startswith("-")
    ),
    st.sampled_from(FORMS[:20]),
)
def test_no_key_survives(key: str, form: str) -> None:
    """Whatever characters a key has, none of the forms keeps it."""
    assert key not in redacted(form.format(key))


@given(st.text())
def test_redaction_never_fails_and_is_done_once(text: str) -> None:
    """Any text at all is taken, and redacting twice hides nothing more."""
    once = redacted(text)
    assert redacted(once) == once
    if HIDDEN not in once:
        assert once == text


@given(st.lists(st.sampled_from(PLAIN[:-1]), max_size=4), st.sampled_from(FORMS), st.sampled_from(PLAIN))
def test_a_key_vanishes_among_other_words(before: list[str], form: str, after: str) -> None:
    """What stands before and after hides no key, and is kept."""
    text = redacted(" ; ".join((*before, form.format(KEY), after)))
    assert KEY not in text
    assert all(plain in text for plain in before)
