"""Prompts are written ahead of what is started: enough, no more than that, and never beyond the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.client.asks import StoredAsks
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.soak import SOAK_REQUESTS, Soak
from nameplate.contract.target import Target
from nameplate.evidence.header import PromptLength
from nameplate.prompts.body import user_text_of
from nameplate.prompts.store import PromptStore
from nameplate.trial import feeding
from nameplate.trial.corpus import Composed
from nameplate.trial.feeding import Feeder

S = 10**9


@pytest.fixture(autouse=True)
def _small_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "STOCK", 200)


class Place:
    """Feed a soak into a store, and read it as its load would."""

    def __init__(
        self,
        directory: Path,
        *,
        words: int = 10,
        concurrency: int = 4,
        rate: float | None = None,
        kept: bool = True,
    ) -> None:
        self.now_ns = 0
        self.cost_ns = 0
        shape = Shape(64, 8)
        plan = TrialPlan(
            "soak.s1",
            "soak",
            shape,
            concurrency,
            SOAK_REQUESTS,
            2,
            soak=Soak(duration_ns=100 * S),
            arrivals=None if rate is None else ArrivalPlan(kind="constant", rate=rate),
        )
        path = directory / "prompts.zst"
        corpus = Composed("nonce", PromptLength(method="usage", words=words), 8)
        contract = Contract(Target("http", "sim", 80, model="m"), (shape,), (), "nonce")
        self.feeder = Feeder(path, contract, plan, corpus, self._clock, kept=kept)
        self.store = PromptStore.open(path)
        self.asks = StoredAsks(self.store)

    def _clock(self) -> int:
        self.now_ns += self.cost_ns
        return self.now_ns

    @property
    def written(self) -> int:
        """Count the measured prompts that a load would find."""
        self.store.refresh()
        return len(self.store) - 2


def test_the_stock_is_there_before_the_load_and_stays(tmp_path: Path) -> None:
    """Warm-up prompts come first, then a stock; what is started is replaced, and no more."""
    place = Place(tmp_path)
    assert place.written == place.feeder.ahead == feeding.STOCK
    place.feeder.feed(100, 60 * S)
    assert place.written == feeding.STOCK + 100 and place.feeder.ahead == feeding.STOCK
    place.feeder.feed(100, 61 * S)
    assert place.written == feeding.STOCK + 100


def test_what_is_written_is_what_is_asked(tmp_path: Path) -> None:
    """Each body has its ask beside it, all differ, and an index that is not written is none yet."""
    place = Place(tmp_path)
    asks = [place.asks(index) for index in range(40)]
    assert {(ask.class_name, ask.output_tokens) for ask in asks} == {("64/8", 8)}
    assert len({ask.prompt_sha256 for ask in asks}) == len({ask.head_sha256 for ask in asks}) == 40
    assert len({user_text_of(place.store.body(index)) for index in range(40)}) == 40
    with pytest.raises(KeyError):
        place.asks(2 + feeding.STOCK)
    place.feeder.feed(1, S)
    assert place.asks(2 + feeding.STOCK).output_tokens == 8


def test_long_prompts_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock has a size; but two rounds of a closed loop are always there."""
    monkeypatch.setattr(feeding, "STOCK_BYTES", 100_000)
    place = Place(tmp_path, words=1000)
    assert 10 < place.written < 30
    assert Place(tmp_path_of(tmp_path, "many"), words=1000, concurrency=40).written == 80


def tmp_path_of(path: Path, name: str) -> Path:
    (path / name).mkdir()
    return path / name


def test_a_fast_load_is_fed_for_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate lately, over some seconds, says how much is written ahead."""
    monkeypatch.setattr(feeding, "STOCK", 50)
    place = Place(tmp_path)
    for second in range(1, 6):
        place.feeder.feed(30 * second, second * S)
    assert place.feeder.ahead == pytest.approx(20 * 30, abs=60)


def test_an_open_loop_is_fed_by_its_plan_and_to_its_end(tmp_path: Path) -> None:
    """Of twelve a second for a hundred seconds, those of twenty come first; after the last none is written."""
    place = Place(tmp_path, rate=12.0)
    assert place.written == 240
    place.feeder.feed(1190, 99 * S)
    assert place.written == 1200


def test_a_report_is_not_kept_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where composing is slow, one report has a fraction of a second, and a second where the stock runs low."""
    monkeypatch.setattr(feeding, "STOCK", 50)
    place = Place(tmp_path)
    place.cost_ns = S // 100
    place.feeder.feed(30, S)
    assert 12 <= place.written - 50 <= 13
    place.feeder.feed(60, 2 * S)
    assert 155 <= place.written <= 163


@pytest.mark.parametrize("kept", [True, False])
def test_prompts_that_are_not_kept_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """What was started a minute ago gives its room back; what may still be asked for is all there."""
    monkeypatch.setattr(feeding, "STOCK", 20)
    monkeypatch.setattr(feeding, "FORGET_BYTES", 1 << 15)
    place = Place(tmp_path, words=400, kept=kept)
    used = []
    for second in range(10, 400, 10):
        place.feeder.feed(second, second * S)
        place.store.refresh()
        used.append((tmp_path / "prompts.zst").stat().st_blocks * 512)
    assert len(place.store.body(2 + 390)) > 1000 and place.asks(2 + 340).output_tokens == 8
    if kept:
        assert used[-1] > 4 * used[5]
    elif used[-1] > 4 * used[5]:
        pytest.skip("this file system has no holes")
    else:
        assert used[-1] < 2 * used[5]
