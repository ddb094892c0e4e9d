"""The parent process watched over the time of a soak: its lines of `client.jsonl`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nameplate.client.self_sample import self_sample
from nameplate.evidence import manifest
from nameplate.evidence.client_sample import ClientSample


class ParentSamples:
    """Append a look at this process each interval; ClientError where the disk does not take a line."""

    def __init__(self, path: Path, interval_ns: int) -> None:
        self._path = path
        self._interval_ns = interval_ns
        self._next_ns = 0
        self._encode = msgspec.json.Encoder().encode

    def look(self, now_ns: int, wall_ns: int | None, prompts_ahead: int) -> None:
        """Sample this process if it is time to; `wall_ns` is the wall clock, None in simulated time."""
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + self._interval_ns
        own = self_sample()
        sample = ClientSample(
            t_ns=now_ns,
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
