"""A real byte-level BPE tokenizer, trained here on a few generated texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from nameplate.prompts.text import PromptKey, compose


@pytest.fixture(scope="session")
def bpe() -> Tokenizer:
    """Train a small vocabulary, in which many words cost two tokens or three."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    texts = [compose(PromptKey("training", "", 0, index), 3_000) for index in range(2)]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def bpe_file(bpe: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the tokenizer as a model directory has it."""
    path = tmp_path_factory.mktemp("model") / "tokenizer.json"
    bpe.save(str(path))
    return path
