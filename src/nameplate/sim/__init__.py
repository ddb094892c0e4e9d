"""Simulate a continuous-batching LLM server: a pure engine, its HTTP face, and a metronome for benchmarks.

Pure, in the order in which a request passes: `http` (what a request and an output are), `app` (routing, checks; it
owns all the rest), `body` (the JSON asked), `tokens` and `words` (tokenizer, template, answers), `engine` (what is
computed when) on `sequence` (one request within it), `parameters`, `kv`, `counters` and `histogram`, `stream` and
`replies` (the bytes that emissions become), `metrics_page`, `faults`.

What there is to simulate: `preset` (what a preset is), `presets` (all by name), `machines` (published ones),
`troubles` (a small server for speed matrices, and what can be wrong with one).

With sockets and a clock: `connection` and `sockets` (the transport), `server` (the app in real time), `truth` (the
log of what really happened), `metronome` (no engine at all, exact times), `process` (either in a process of its own).
`virtual` drives the app in simulated time.
"""
