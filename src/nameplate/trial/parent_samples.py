"""The parent process watched over the time of a soak: its lines of `client.jsonl`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from nameplate.client.self_sample import self_sample
from nameplate.evidence import manifest
from nameplate.evidence.client_sample import ClientSample


class ParentSamples:
    """Append a look at this process each interval; ClientError where the disk does not take a line.

    `clocks` reads the monotonic and the wall clock together; None in simulated time, where there is no wall clock.
    """

    def __init__(
        self, path: Path, interval_ns: int, clocks: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self._path = path
        self._clocks = clocks
        self._interval_ns = interval_ns
        self._next_ns = 0
        self._encode = msgspec.json.Encoder().encode

    def look(self, now_ns: int, prompts_ahead: int) -> None:
        """Sample this process if it is time to."""
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + self._interval_ns
        own = self_sample()
        # A report is older than this moment.
        t_ns, wall_ns = (now_ns, None) if self._clocks is None else self._clocks()
        sample = ClientSample(
            t_ns=t_ns,
            wall_ns=wall_ns,
            process="parent",
            rss_bytes=own.rss_bytes,
            descriptors=own.descriptors,
            cpu_s=own.cpu_s,
            prompts_ahead=prompts_ahead,
        )
        try:
            # Appended in one piece: the load process writes to the same file.
            with self._path.open("ab", buffering=0) as file:
                file.write(self._encode(sample) + b"\n")
        except OSError as error:
            raise manifest.disk_fault(self._path, error) from None
