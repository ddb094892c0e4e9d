"""Print what one ordinary read costs in each layer: ``python -m nameplate.wire.tests.bench_wire``.

CPU time, the best of many short rounds, because the machine has other work. A measurement, not a test.
"""

import time
from collections.abc import Callable

from nameplate.wire.http import ResponseReader
from nameplate.wire.sse import SseDecoder
from nameplate.wire.tally import Tally

READS = 5_000
ROUNDS = 60
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"chatcmpl-8f0c1a7c3f0a4f5a9d3b2e1c0d9f8a7b","object":"chat.completion.chunk","created":1732937362,'
    b'"model":"Qwen/Qwen3-30B-A3B","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,'
    b'"finish_reason":null,"token_ids":null}]}\n\n'
)
COUNTED = EVENT[:-3] + b',"usage":{"prompt_tokens":8192,"total_tokens":8195,"completion_tokens":3}}\n\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


def best_us(step: Callable[[], object]) -> float:
    """Return the CPU microseconds of one step."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(READS):
            step()
        best = min(best, (time.process_time_ns() - start) / READS / 1000)
    return best


def tally_of(data: bytes, keep_gaps: bool) -> Callable[[], object]:
    """Return the step that folds one read, after the first."""
    tally = Tally("chat", streaming=True, keep_gaps=keep_gaps)
    tally.headers(200, "text/event-stream", "")
    tally.body(0, data)
    return lambda: tally.body(1_000_000, data)


def main() -> None:
    """Measure and print each layer."""
    reader, decoder = ResponseReader(), SseDecoder()
    reader.feed(HEAD)
    decoder.feed(EVENT)
    steps: dict[str, Callable[[], object]] = {
        "ResponseReader.feed, one chunk": lambda: reader.feed(CHUNK),
        "SseDecoder.feed, one event": lambda: decoder.feed(EVENT),
        "Tally.body, one event": tally_of(EVENT, keep_gaps=False),
        "Tally.body, one event, gaps kept": tally_of(EVENT, keep_gaps=True),
        "Tally.body, one event with usage": tally_of(COUNTED, keep_gaps=True),
        "Tally.body, four events": tally_of(EVENT * 4, keep_gaps=True),
    }
    print(f"event of {len(EVENT)} bytes, CPU us a call, best of {ROUNDS} x {READS}")
    for name, step in steps.items():
        print(f"{name:36} {best_us(step):6.2f}")


if __name__ == "__main__":
    main()
