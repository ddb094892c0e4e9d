"""Replaying long histories on several processors: each process takes every n-th request, and all are joined."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.rows import RequestRow
from nameplate.measure.rebuild import PromptFacts
from nameplate.verify.history import History, Share, replay_share

# Some 120,000 chunks: below that, one process is done in the time that starting another and joining takes.
SHARED_FROM_BYTES = 2 << 20
# Every process decodes the whole file to find its own requests; beyond this many that is most of what they do.
MOST_PROCESSES = 4


def replay(
    directory: Path,
    header: TrialHeader,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
    processes: int | None = None,
) -> History:
    """Replay all raw reads on as many processes as pay, or on `processes`; the result is the same on any number."""
    if processes is None:
        processes = _worth(directory)
    if processes == 1:
        return replay_share(directory, header, prompts, recorded, Share())
    shares = [Share(share, processes) for share in range(processes)]
    # A fork shares prompts and rows without sending them; this process only waits and joins.
    fork = multiprocessing.get_context("fork")
    running = []
    for share in shares[1:]:
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(
            target=_work, args=(there, directory, header, prompts, recorded, share), daemon=True
        )
        child.start()
        there.close()
        running.append((child, here, share))
    histories = [replay_share(directory, header, prompts, recorded, shares[0])]
    for child, here, share in running:
        try:
            histories.append(here.recv())
        except (EOFError, OSError):
            # The child is gone (out of memory, or ended by somebody): its share is done here, so nothing is missing.
            histories.append(replay_share(directory, header, prompts, recorded, share))
        finally:
            here.close()
            child.join()
    return _joined(histories)


def _worth(directory: Path) -> int:
    size = sum(path.stat().st_size for path in layout.parts(directory, layout.READS))
    # A daemon of multiprocessing may have no children of its own.
    alone = sys.platform != "linux" or multiprocessing.current_process().daemon
    if size < SHARED_FROM_BYTES or alone:
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), MOST_PROCESSES))


def _work(
    there: Connection,
    directory: Path,
    header: TrialHeader,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
    share: Share,
) -> None:
    there.send(replay_share(directory, header, prompts, recorded, share))
    there.close()


def _joined(histories: Sequence[History]) -> History:
    """Join shares into one history; what every process saw of the file itself counts once."""
    whole = histories[0]
    for other in histories[1:]:
        whole.rows.update(other.rows)
        whole.timelines.update(other.timelines)
        whole.bare |= other.bare
        whole.totals.since_empty_ns.extend(other.totals.since_empty_ns)
        whole.totals.arrival_doubt_ns.extend(other.totals.arrival_doubt_ns)
        whole.totals.user_stamped += other.totals.user_stamped
        whole.totals.last_ns = max(whole.totals.last_ns, other.totals.last_ns)
        whole.given_up = whole.given_up or other.given_up
        for fault in other.faults:
            if fault not in whole.faults:
                whole.fault(fault)
    return whole
