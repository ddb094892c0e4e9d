"""Make the small model that the real-server tests serve; run by the vLLM environment's own Python.

Six layers, hidden size 256, context 32,768; the weights are dummies, so nothing but configuration and tokenizer is
written. 1,000 prompt tokens prefill in some 0.12 s on one core.
"""

import sys
import sysconfig
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{m.role}}\n{{m.content}}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main(out: Path) -> None:
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:200]
    texts = [path.read_text(errors="ignore")[:20_000] for path in sources]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=8000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        bos_token="<|endoftext|>",
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(out)
    Qwen2Config(
        vocab_size=len(fast),
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        bos_token_id=0,
        eos_token_id=2,
        tie_word_embeddings=True,
        architectures=["Qwen2ForCausalLM"],
    ).save_pretrained(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
