"""A server that goes away, comes back, or is another process: what is written down of it, and when."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.identity import Fact, Identity
from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.trial.server_watch import REREAD_EVERY_NS, ServerWatch

S = 10**9


def identity(start_s: float | None) -> Identity:
    facts = {"model": Fact("m", "/v1/models")}
    if start_s is not None:
        facts["process_start_time_s"] = Fact(start_s, "/metrics")
    return Identity(facts)


def row(end_s: float, outcome: str = "reset", status: int | None = None) -> RequestRow:
    """Return the row of a request that failed."""
    return RequestRow(
        index=7,
        phase="steady",
        class_="64/8",
        slot=0,
        scheduled_ns=0,
        end_ns=round(end_s * S),
        outcome=outcome,
        http_status=status,
        asked_output_tokens=8,
        prompt_sha256="",
        prompt_head_sha256="",
    )


def sample(t_s: float, start_s: float | None = 100.0, **values: Any) -> ServerSample:
    return structs.replace(
        ServerSample(t_ns=round(t_s * S), process_start_time_s=start_s, output_tokens_total=50), **values
    )


class Watched:
    """Drive a watch by the second; `up` and `start_s` are the server's state."""

    def __init__(self, start_s: float | None = 100.0) -> None:
        self.up, self.start_s = True, start_s
        self.notes: list[tuple[float, str, dict[str, Any]]] = []
        self.asked = self.identified = 0
        self.watch = ServerWatch(self._healthy, self._identify, self._note, identity(start_s))

    def _healthy(self) -> bool:
        self.asked += 1
        return self.up

    def _identify(self) -> Identity:
        self.identified += 1
        return identity(self.start_s)

    def _note(self, t_ns: int, what: str, detail: dict[str, Any]) -> None:
        self.notes.append((t_ns / S, what, detail))

    def look(self, t_s: float, *rows: RequestRow, samples: tuple[ServerSample, ...] = ()) -> None:
        self.watch.look(round(t_s * S), rows, samples)

    @property
    def told(self) -> list[tuple[float, str]]:
        return [(t_s, what) for t_s, what, _ in self.notes]


def test_a_loss_begins_with_its_first_sign_and_ends_with_an_answer() -> None:
    """The first request that failed dates the loss; health is asked once a second; identity is read anew."""
    world = Watched()
    world.look(10)
    world.up, world.start_s = False, 130.0
    world.look(20.2, row(20.1), row(20.05))
    assert world.told == [(20.05, "server_lost")] and world.watch.lost
    for tenth in range(204, 300, 2):
        world.look(tenth / 10, row(tenth / 10, "connect_failed"))
    assert world.asked <= 11
    world.up = True
    world.look(31)
    assert world.told == [(20.05, "server_lost"), (31, "server_back")]
    back = world.notes[-1][2]
    assert back["lost_ns"] == round(20.05 * S) and back["restarted"] is True
    assert back["identity"]["facts"]["process_start_time_s"]["value"] == 130.0
    # A request that failed before and is told after is no second loss.
    world.look(31.2, row(30.9, "connect_failed"))
    world.look(40)
    assert len(world.notes) == 2


def test_a_server_that_hung_is_the_same_process_when_it_is_back() -> None:
    """It was lost, and it did not restart: its start time says so, in the identity and in samples."""
    world = Watched()
    world.up = False
    world.look(5, row(4.9, "http_error", 503), samples=(sample(4.5),))
    world.up = True
    world.look(9, samples=(sample(8.5),))
    assert world.told == [(4.9, "server_lost"), (9, "server_back")]
    assert world.notes[-1][2]["restarted"] is False


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (sample(3), sample(4, 104.0), "start time"),
        (sample(3, None), sample(4, None, output_tokens_total=3), "output_tokens_total fell"),
    ],
    ids=["start time", "counters"],
)
def test_a_restart_in_which_nothing_failed_shows_in_the_samples(
    before: ServerSample, after: ServerSample, said: str
) -> None:
    """Another start time, or counters that fell: lost between the two samples, back at once, restarted."""
    world = Watched(before.process_start_time_s)
    world.look(3.1, samples=(before,))
    world.start_s = after.process_start_time_s
    world.look(4.1, samples=(after,))
    assert world.told == [(3, "server_lost"), (4.1, "server_back")]
    assert world.notes[0][2]["sign"] == "restart" and said in world.notes[0][2]["detail"]
    assert world.notes[1][2]["restarted"] is True
    world.look(5.1, samples=(sample(5, after.process_start_time_s, output_tokens_total=4),))
    assert len(world.notes) == 2


def test_an_engine_without_metrics_is_known_by_failures_and_health() -> None:
    """A request that could not connect is proof, however well the server is a moment later."""
    world = Watched(None)
    world.look(10.2, row(10, "connect_failed"))
    assert world.told == [(10, "server_lost"), (10.2, "server_back")]
    assert world.notes[-1][2]["restarted"] is None


def test_one_broken_stream_is_no_loss() -> None:
    """A healthy server that cut a stream has its identity read, not too often, and nothing is noted."""
    world = Watched()
    for second in range(100, 160):
        world.look(second, row(second - 0.1))
    assert not world.notes
    assert 1 <= world.identified <= 60 * S // REREAD_EVERY_NS + 1


def test_failed_scrapes_alone_are_a_sign() -> None:
    """While long requests are queued, a page that cannot be read is the first that is seen of a loss."""
    world = Watched()
    world.up = False
    world.look(12.1, samples=(sample(10), ServerSample(t_ns=12 * S, error="refused")))
    assert world.told == [(12, "server_lost")] and world.notes[0][2]["sign"] == "scrapes"


def test_each_loss_is_told() -> None:
    """A server that is lost again, as a third process, has two pairs of entries."""
    world = Watched()
    for begin, start_s in ((10, 112.0), (50, 152.0)):
        world.up = False
        world.look(begin + 1, row(begin))
        world.up, world.start_s = True, start_s
        world.look(begin + 3)
        world.look(begin + 4, samples=(sample(begin + 3.5, start_s, output_tokens_total=1),))
    assert [what for _, what in world.told] == ["server_lost", "server_back"] * 2
    assert all(detail["restarted"] for _, what, detail in world.notes if what == "server_back")
