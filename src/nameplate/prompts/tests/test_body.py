"""Bodies are the same for the same arguments, say what was asked for, and give their text back."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.contract.sampling import Sampling
from nameplate.contract.target import Target
from nameplate.prompts.body import BodyOptions, Message, build_body, prompt_hashes, user_text_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@given(texts, st.sampled_from(["chat", "completions"]), st.integers(1, 10**6))
def test_the_text_comes_back(text: str, api: Any, output_tokens: int) -> None:
    """What was put into a body is what is found in it, in both dialects."""
    body = build_body(BodyOptions(api=api, model="m"), text, output_tokens)
    assert user_text_of(body) == text
    assert json.loads(body)["max_tokens"] == output_tokens


@given(texts, st.randoms())
def test_key_order_and_spacing_do_not_matter(text: str, order: Any) -> None:
    """A body that something else has written anew still gives the same text."""
    fields = list(json.loads(build_body(BodyOptions(model="m"), text, 5)).items())
    order.shuffle(fields)
    assert user_text_of(json.dumps(dict(fields), indent=2).encode()) == text


def test_a_body_is_as_expected() -> None:
    """The fields of a streamed chat request stand in a fixed order, and nothing else is sent."""
    options = BodyOptions(model="m", sampling=Sampling(seed_per_request=True), continuous_usage=True)
    assert build_body(options, "hello", 9, seed=4) == (
        b'{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":9,"temperature":0.0,"seed":4,'
        b'"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}'
    )


def test_what_a_target_refuses_is_not_sent() -> None:
    """A server that takes no usage options, and defaults in sampling, gets the bare request."""
    target = Target("http", "h", 1, api="completions", model="m", stream_usage=False)
    sampling = Sampling(temperature=None, ignore_eos=False)
    body = build_body(BodyOptions.of(target, sampling), "p", 3, seed=1)
    assert json.loads(body) == {"model": "m", "prompt": "p", "max_tokens": 3, "stream": True}


def test_extra_fields_are_merged_in_a_fixed_order() -> None:
    """Extra fields come last, sorted, and go into nested objects field by field."""
    extra = {"z": 1, "a": {"y": 1, "b": None}, "stream_options": {"more": True}, "temperature": 0.7}
    again = dict(reversed(list(extra.items())))
    body = build_body(BodyOptions(model="m", extra=extra), "p", 3)
    assert body == build_body(BodyOptions(model="m", extra=again), "p", 3)
    fields = json.loads(body)
    assert fields["stream_options"] == {"include_usage": True, "more": True}
    assert fields["temperature"] == 0.7 and fields["a"] == {"b": None, "y": 1}


@pytest.mark.parametrize("name", ["model", "messages", "prompt", "stream", "n"])
def test_extra_fields_cannot_replace_what_is_measured(name: str) -> None:
    """Fields that decide what is measured are refused among the extra ones."""
    with pytest.raises(CallerError, match=name):
        build_body(BodyOptions(extra={name: 1}), "p", 3)


def test_messages_keep_their_roles() -> None:
    """Messages of a data set are sent as they are; the user text is that of the user's messages."""
    messages = [
        Message("system", "s"),
        Message("user", "one"),
        Message("assistant", "x"),
        Message("user", "two"),
    ]
    body = build_body(BodyOptions(), messages, 3)
    assert [m["role"] for m in json.loads(body)["messages"]] == ["system", "user", "assistant", "user"]
    assert user_text_of(body) == "one\ntwo"
    with pytest.raises(CallerError, match="completions"):
        build_body(BodyOptions(api="completions"), messages, 3)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            b'{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"},"b"]}]}',
            "ab",
        ),
        (b'{"messages":[{"role":"system","content":"only"}]}', "only"),
        (b'{"messages":[{"role":"user","content":null}, 7]}', ""),
        (b'{"prompt":["a","b"]}', "a\nb"),
        (b'{"prompt":[1,2]}', "1 2"),
        (b'{"prompt":[[1,2],[3]]}', "1 2\n3"),
    ],
)
def test_other_forms_are_read(body: bytes, text: str) -> None:
    """Content parts, token numbers and several prompts are read too."""
    assert user_text_of(body) == text


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | texts,
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["messages", "prompt", "role", "content", "text"]), x)
        ),
    ).map(lambda v: json.dumps(v).encode())
)
def test_any_bytes_give_a_text_or_a_value_error(body: bytes) -> None:
    """Damaged bodies raise ValueError and nothing else."""
    with contextlib.suppress(ValueError):
        assert isinstance(user_text_of(body), str)


@given(texts, texts)
def test_hashes_are_those_of_the_standard_library(shared: str, text: str) -> None:
    """The two hashes can be recomputed with hashlib alone, and a shared prefix is left out of the head."""
    hashes = prompt_hashes(shared + text, len(shared))
    assert hashes.sha256 == hashlib.sha256((shared + text).encode()).hexdigest()
    assert hashes.head_sha256 == hashlib.sha256(text[:64].encode()).hexdigest()


def test_a_lone_surrogate_is_hashed() -> None:
    """A text that is not valid Unicode does not stop a verification."""
    assert len(prompt_hashes("\ud800").sha256) == 64
