"""Prompts of a trace: as long as each row says, and sharing their beginnings exactly as its blocks do."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations, takewhile
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nameplate.contract.errors import CallerError, PromptRefused
from nameplate.contract.trace import TraceRow
from nameplate.prompts.calibration import Ask
from nameplate.prompts.lengths import Lengths, count_lengths
from nameplate.prompts.replay import BlockText, ReplayText, count_blocks
from nameplate.prompts.tests.tokens import Counter, additive
from nameplate.prompts.text import PromptKey
from nameplate.verdict.tolerances import prompt_length

TEMPLATE = 21
T = TypeVar("T")
BIG, SMALL = additive("big"), additive("small", 1, 3)


def settle(asking: Generator[Ask, int | None, T], count: Counter) -> tuple[T, list[str]]:
    """Answer every ask with a server's count; return the result and the texts that were asked."""
    asked = []
    try:
        ask = next(asking)
        while True:
            asked.append(ask.text)
            ask = asking.send(count(ask.text))
    except StopIteration as stop:
        result: T = stop.value
        return result, asked


def served(count: Counter) -> Counter:
    return lambda text: count(text) + TEMPLATE


def replay(count: Counter, block_tokens: int | None = 64, most: int = 6000, nonce: str = "n") -> ReplayText:
    counted, _ = settle(count_lengths(most, nonce=nonce), served(count))
    words, _ = settle(count_blocks(block_tokens, nonce=nonce), served(count)) if block_tokens else ((), [])
    return ReplayText(nonce, Lengths(counted), block_tokens, words)


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many elements two sequences begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


TEXTS = {"big": replay(BIG), "small": replay(SMALL)}


def key(index: int) -> PromptKey:
    return PromptKey("n", "t", 0, index)


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.one_of(st.integers(60, 400), st.integers(400, 20_000)),
    blocks=st.lists(st.integers(0, 9), max_size=40),
    vocabulary=st.sampled_from(["big", "small"]),
)
def test_every_prompt_is_as_long_as_its_row_says(tokens: int, blocks: list[int], vocabulary: str) -> None:
    """With blocks or without: within the tolerance, and near it where a vocabulary splits most words."""
    row = TraceRow(0, tokens, 8, "", tuple(blocks[: -(-tokens // 64)]))
    text = TEXTS[vocabulary].text(row, key(0))
    counted = served(BIG if vocabulary == "big" else SMALL)(text)
    judged = prompt_length(tokens, counted)
    if vocabulary == "big":
        assert judged == "ok", (tokens, counted)
    else:
        # Where words cost one token to three, and a row names many blocks or is cut within one.
        assert judged != "wrong" or abs(counted - tokens) <= max(14, 0.03 * tokens), (tokens, counted)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(30, 900), st.lists(st.integers(0, 2), max_size=8)), min_size=2, max_size=6
    )
)
def test_prompts_share_what_their_blocks_say_and_nothing_else(rows: list[tuple[int, list[int]]]) -> None:
    """Two prompts begin with the same text as far as their rows begin with the same blocks, to the letter; behind it
    they differ within the next few words."""
    made = []
    for index, (tokens, blocks) in enumerate(rows):
        row = TraceRow(0, tokens, 8, "", tuple(blocks[: -(-tokens // 64)]))
        made.append((row, TEXTS["big"].text(row, key(index))))
    for (one, text), (other, second) in combinations(made, 2):
        common = alike(one.blocks, other.blocks)
        same = BIG(text[: alike(text, second)])
        shortest = min(one.input_tokens, other.input_tokens) - TEMPLATE
        shared = min(64 * common, shortest)
        assert same >= shared - 4, (one, other)
        # Where a block is cut the rest of it is not sent; where one is another's, words agree by chance alone.
        if 64 * common < shortest - 16:
            assert same <= shared + 6, (one, other)


def test_a_real_vocabulary_s_prompts_are_as_long_as_they_should(bpe: Tokenizer) -> None:
    """Also where most words cost two tokens or three."""

    def count(text: str) -> int:
        return len(bpe.encode(text, add_special_tokens=False).ids)

    text = replay(count, 128, 4000)
    for number, tokens in enumerate((90, 130, 250, 400, 600, 900, 1500, 2500, 4000, 9000)):
        for blocks in ((), (1, 2), tuple(range(tokens // 128))):
            row = TraceRow(0, tokens, 8, "", blocks[: -(-tokens // 128)])
            counted = served(count)(text.text(row, key(number)))
            assert prompt_length(tokens, counted) != "wrong", (tokens, blocks, counted)


def test_a_block_s_text_is_the_nonce_s() -> None:
    """Another study's blocks are other texts: its prompts meet no cache of this one's."""
    row = TraceRow(0, 400, 8, "", (1, 2, 3))
    first = replay(BIG, nonce="one").text(row, key(0))
    second = replay(BIG, nonce="two").text(row, key(0))
    assert alike(first, second) < 16


def test_the_same_blocks_in_another_order_are_another_beginning() -> None:
    """A prefix cache finds nothing where the first block differs."""
    rows = [TraceRow(0, 256, 8, "", blocks) for blocks in ((1, 2, 3), (2, 1, 3))]
    first, second = (TEXTS["big"].text(row, key(0)) for row in rows)
    assert alike(first, second) < 16


def test_no_ask_is_repeated() -> None:
    """Everything that is asked while counting is unlike all else, so that no cache answers for it."""
    _, lengths = settle(count_lengths(20_000, nonce="n"), served(BIG))
    _, blocks = settle(count_blocks(16, nonce="n"), served(BIG))
    heads = [text[:40] for text in (*lengths, *blocks)]
    assert len(set(heads)) == len(heads)
    assert len(lengths) <= 17 and len(blocks) <= 12


def test_short_prompts_need_few_counts() -> None:
    """No more is asked than the longest prompt needs."""
    counted, asked = settle(count_lengths(100, nonce="n"), served(BIG))
    assert counted[-1][1] >= 100 and len(asked) < 8 and max(map(len, asked)) < 1000


def test_a_server_that_counts_nothing_leaves_what_is_usual() -> None:
    """Without counts the lengths are assumed, and said to be."""
    counted, asked = settle(count_lengths(4000, nonce="n"), lambda _: 0)
    assert counted == () and len(asked) == 1 and not Lengths(counted).counted
    words, _ = settle(count_blocks(64, nonce="n"), lambda _: 0)
    text = ReplayText("n", Lengths(counted), 64, words).text(TraceRow(0, 1000, 8, "", (1, 2)), key(0))
    assert abs(BIG(text) + 16 - 1000) < 40


@pytest.mark.parametrize("count", [lambda _: 50, lambda text: max(1, 4000 - len(text))])
def test_counts_that_do_not_grow_are_refused(count: Counter) -> None:
    """A server that cuts prompts short, or counts something else, cannot be asked for lengths."""
    with pytest.raises(PromptRefused, match="do not grow"):
        settle(count_lengths(4000, nonce="n"), count)
    with pytest.raises(PromptRefused, match="do not grow"):
        settle(count_blocks(64, nonce="n"), count)


def test_blocks_too_short_to_differ_are_refused() -> None:
    """Of a block of four tokens two could have the same text, and prompts would share more than the trace says."""
    with pytest.raises(CallerError, match="too few to tell two blocks apart"):
        settle(count_blocks(4, nonce="n"), served(BIG))
    settle(count_blocks(8, nonce="n"), served(BIG))


@settings(max_examples=30, deadline=None)
@given(tokens=st.integers(0, 600), size=st.integers(8, 100), blocks=st.lists(st.integers(0, 3), max_size=6))
def test_a_cut_row_of_blocks_begins_the_whole_one(tokens: int, size: int, blocks: list[int]) -> None:
    """However far a row of blocks is written, what stands there is the beginning of all of it."""
    made = BlockText("n", size, ((max(6, size - 3), size - 0.4), (max(7, size - 2), size + 0.7)))
    assert made.text(tuple(blocks), 1e9).startswith(made.text(tuple(blocks), tokens))
