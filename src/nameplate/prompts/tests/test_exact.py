"""With a local tokenizer the user text has exactly the tokens that were asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from nameplate.contract.errors import CallerError
from nameplate.prompts.exact import LocalTokenizer
from nameplate.prompts.text import PromptKey


def key_of(index: int) -> PromptKey:
    return PromptKey("n", "t", 0, index)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.integers(150, 1_500), index=st.integers(0, 1_000))
def test_the_count_is_exact(bpe_file: Path, tokens: int, index: int) -> None:
    """The text has the asked number of tokens to the last, for any key."""
    tokenizer = LocalTokenizer.open(bpe_file)
    assert tokenizer.count(tokenizer.compose(key_of(index), tokens)) == tokens


def test_many_prompts_of_one_length_are_exact_and_unique(bpe_file: Path) -> None:
    """What was learned from one prompt serves the next, and each still begins differently."""
    tokenizer = LocalTokenizer.open(bpe_file)
    texts = [tokenizer.compose(key_of(index), 700) for index in range(20)]
    assert {tokenizer.count(text) for text in texts} == {700}
    assert len({text[:64] for text in texts}) == 20


def test_bytes_are_exact_too() -> None:
    """Where every byte is a token, odd and even lengths are met alike."""
    alphabet = {token: number for number, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = LocalTokenizer(raw)
    for tokens in (250, 251, 1_000, 1_001):
        assert {tokenizer.count(tokenizer.compose(key_of(index), tokens)) for index in range(5)} == {tokens}


def test_too_short_is_refused_with_the_least_possible(bpe_file: Path) -> None:
    """Fewer tokens than a unique prompt needs are refused."""
    tokenizer = LocalTokenizer.open(bpe_file)
    with pytest.raises(CallerError, match=r"exactly 3 tokens.*shortest"):
        tokenizer.compose(key_of(0), 3)


def test_a_missing_package_names_the_extra(bpe_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the message says what to install."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CallerError, match=r"pip install 'nameplate\[tokenizer\]'"):
        LocalTokenizer.open(bpe_file)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1,2]"])
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, content: bytes) -> None:
    """Another file is refused by name; so is a path where nothing lies."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(CallerError, match=r"tokenizer\.json"):
        LocalTokenizer.open(path)
    with pytest.raises(CallerError, match="cannot be read"):
        LocalTokenizer.open(tmp_path / "none.json")


def test_importing_the_room_does_not_load_the_package() -> None:
    """The package is loaded only when a tokenizer is opened, so that a start stays fast."""
    import subprocess

    code = "import sys, nameplate.prompts.exact; sys.exit('tokenizers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
