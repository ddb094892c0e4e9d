"""Rating plates whose every word is known, and texts that want to be more than text."""

from __future__ import annotations

from nameplate.ratingplate.model import Field, Rating, RatingPlate

DIGEST = "ab12" * 16
HOSTILE = (
    "<script>alert(1)</script>",
    "</title></desc></svg><script>",
    "a|b\n| x | y |\n\n# head",
    "![img](http://evil.example/x.png) [l](javascript:x) `code` **b** @user www.evil.example",
    "\x00\x1b[31m\ud800\ufffe\u2028\u202e\u2066abc\x7f",
    "שלום עולם مرحبا بالعالم",
    "模型名称很长" * 40,
    "e" + "\u0301" * 50,
    "👩‍👩‍👧‍👦" * 30,
    "\u200d",
    "1\ufe0f\u20e3 \u200da\u200c \ufe0f",
    "]]>&amp;&#0;<!--",
    "'\"><image href='http://evil.example/'/>",
    " \t\n ",
    "",
    "x" * 1_000_000,
)
LONG_NAME = (
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B-Instruct-AWQ-INT4-W4A16-marlin-gptq-snapshot-0123456789abcdef"
)


def field(name: str, text: str | None) -> Field:
    return Field(name, text)


def rated(value: str = "9", number: float = 9, subject: str = "512 tokens in, 64 out") -> Rating:
    """Return a rating with everything that a confirmed one has."""
    return Rating(
        subject=subject,
        number=number,
        value=value,
        unit="concurrent requests",
        notes=(
            Field("Operate at", "8"),
            Field("Confirmed", "9 held, 10 did not, in 3 of 3 trials of 64 requests each"),
            Field(
                "Certified", "no, 9 of 192 over the limit, so at most 8.0% with 95% confidence; 5% allowed"
            ),
        ),
    )


def not_rated(stamp: str, reason: str = "At C=9 the trials disagree.") -> Rating:
    """Return a rating whose status takes the place of its number."""
    return Rating(
        subject="512 tokens in, 64 out",
        number=None,
        value=None,
        unit="concurrent requests",
        stamp=stamp,
        reason=reason,
        notes=(Field("Held", "8 concurrent requests in 3 of 3 trials of 64 requests each, no rating"),),
    )


def plate(
    *ratings: Rating,
    model: str | None = "Qwen/Qwen3-32B",
    hardware: str | None = "4 x NVIDIA H200 141 GB",
    promise: str = "ttft p95 < 250 ms",
    stamps: tuple[str, ...] = (),
    date: str | None = "2026-11-30",
) -> RatingPlate:
    """Return a plate; without ratings one that is confirmed."""
    return RatingPlate(
        title="Rated capacity",
        machine=(
            Field("Model", model),
            Field("Hardware", hardware),
            Field("Engine", "vllm 0.11.2"),
            Field("Quantisation", None),
            Field("Context limit", "131,072 tokens"),
            Field("KV cache", "1,048,576 tokens"),
        ),
        terms=(Field("Promise", promise), Field("Load", "closed loop, start policy burst; cold prompts")),
        ratings=ratings or (rated(),),
        stamps=stamps,
        date=date,
        evidence_sha256=DIGEST,
        tool="nameplate 0.3.0",
    )


def filled(text: str) -> RatingPlate:
    """Return a plate on which every text that can come from elsewhere is the same one."""
    rating = Rating(
        subject=text,
        number=1,
        value="1",
        unit=text,
        contract=text,
        notes=(Field("Held", text), Field("Judged", text)),
    )
    return RatingPlate(
        title="Rated capacity",
        machine=tuple(
            Field(name, text)
            for name in ("Model", "Hardware", "Engine", "Quantisation", "Context limit", "KV cache")
        ),
        terms=(Field("Promise", text), Field("Load", text)),
        ratings=(rating, not_rated("NOISY", text)),
        date=text,
        evidence_sha256=text,
        tool=text,
    )
