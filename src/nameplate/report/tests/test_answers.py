"""Probe, check, verify, show and errors: what each says, absent values, hostile strings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.errors import ClientError, Interrupted, NameplateError, ServerError
from nameplate.contract.identity import IdentityChange
from nameplate.contract.target import Target
from nameplate.engines.capability import Capability, ProbeReport
from nameplate.measure.replay import ReplayedRequest, TimedEvent
from nameplate.measure.tests.trials import MS, S, identity, ok_row
from nameplate.report.check import check_summary
from nameplate.report.error import error_paragraph
from nameplate.report.probe import probe_table
from nameplate.report.request import request_view
from nameplate.report.tests.rendering import hold_golden, studied, text_of
from nameplate.report.verify import verify_table
from nameplate.verify.check import Check, Counts, Report
from nameplate.verify.names import Name
from nameplate.wire.events import Channel, Done, Finish, Output, StreamError, Usage
from nameplate.wire.loop import Loop

HOSTILE = "\x1b[2J[red]x[/]\u202e\r\n"


def probe(name: str = "m", detail: str = "12 events") -> ProbeReport:
    return ProbeReport(
        engine="vllm",
        detected_by="/version",
        target=Target("http", "127.0.0.1", 8000, model=name),
        identity=identity(engine="vllm", version=name, kv_tokens=65536),
        capabilities=(
            Capability("streaming", "yes", detail),
            Capability(
                "cached-token reports", "no", "absent", "Start it with --enable-prompt-tokens-details."
            ),
            Capability("ignore_eos", "unknown", detail),
        ),
        requests=(),
        dropped=("seed",),
        conflicts=(f"the log says {name}, the API says 2",),
    )


def test_a_probe_reads_as_agreed() -> None:
    """What works, what is missing with how to get it, identity with sources."""
    hold_golden("probe_80", text_of(probe_table(probe())))


def test_a_plate_that_holds_and_one_that_does_not() -> None:
    """The first line answers; the table names each fact before and now."""
    plate = studied()[0]
    assert text_of(check_summary((), plate)).startswith(
        "The plate holds: the server is the one that was rated."
    )
    lost = IdentityChange("kv_tokens", "unverified", 65536, None)
    assert text_of(check_summary((lost,), plate)).startswith("The plate holds as far as can be read.")
    changed = IdentityChange("version", "changed", "0.11.0", HOSTILE)
    text = text_of(check_summary((lost, changed), plate))
    assert text.startswith("The plate no longer holds: version changed.") and "\\x1b[2J[red]x[/]" in text


def checks(status: str) -> tuple[Check, ...]:
    names = list(Name)
    return (
        Check(name=names[0], status="pass", detail="8 files as sealed", counted=8),
        Check(name=names[1], status=status, detail=HOSTILE, counted=1),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("status", "first"),
    [
        ("pass", "All 2 checks hold for the trial in runs/t; its verdict recomputes to pass."),
        ("unverified", "Nothing contradicts the trial in runs/t"),
        ("fail", "Not what it claims to be: 1 check of 2 failed in the trial in runs/t"),
    ],
)
def test_a_verification_answers_first(status: str, first: str) -> None:
    """One sentence, then a line a check, then what was counted."""
    report = Report(
        directory="runs/t", kind="trial", checks=checks(status), counts=Counts(streams=64), verdict="pass"
    )
    text = text_of(verify_table(report), 120)
    assert text.startswith(first) and "8 files as sealed" in text
    assert "64 streams" in text and "\x1b" not in text


def test_a_study_names_what_is_wrong_in_which_trial() -> None:
    """A line a trial, and the checks that do not pass under its name."""
    trials = tuple(
        Report(
            directory=f"runs/s/trials/t{n}",
            kind="trial",
            checks=checks(status),
            counts=Counts(),
            verdict=None,
        )
        for n, status in enumerate(("pass", "fail"))
    )
    report = Report(directory="runs/s", kind="study", checks=(), counts=Counts(), trials=trials)
    text = text_of(verify_table(report), 120)
    assert text.splitlines()[-5:] and "\nt1\n" in text and "\nt0\n" not in text


EVENTS = (
    TimedEvent(S + 100 * MS, Output(Channel.reasoning, "think\x1b[2J", 1)),
    TimedEvent(S + 100 * MS, Usage(1000, 1)),
    *(TimedEvent(S + (110 + n) * MS, Output(Channel.content, f"w{n} ")) for n in range(80)),
    TimedEvent(S + 200 * MS, Output(Channel.content, HOSTILE)),
    TimedEvent(S + 200 * MS, Finish(HOSTILE)),
    TimedEvent(S + 201 * MS, StreamError("bad\x1b", "kind", "")),
    TimedEvent(S + 201 * MS, Done()),
)


def request(**more: object) -> ReplayedRequest:
    row = ok_row(7, S, error=HOSTILE, warnings=(HOSTILE,), **more)  # type: ignore[arg-type]
    return ReplayedRequest(row, EVENTS, 5, True, ((HOSTILE, HOSTILE),))


def test_a_request_is_bounded_and_harmless() -> None:
    """The first 40 and last 10 lines, then the text of each channel; nothing in it controls the terminal."""
    text = text_of(request_view(request()), 100)
    assert "more lines; --all prints them" in text
    assert not any(c in text for c in "\x1b\r\u202e")
    assert "think\\x1b[2J" in text and "Text (reasoning)" in text and "Text (content)" in text
    assert '"w0 "' in text and '"w60 "' not in text
    everything = text_of(request_view(request(), True), 100)
    assert '"w60 "' in everything and "--all" not in everything


def test_a_request_of_which_nothing_is_known_is_shown() -> None:
    """Absent is a dash, and why there are no events is said."""
    names = (
        "body_sent_ns first_output_ns first_answer_ns last_output_ns finish_ns end_ns http_status "
        "finish_reason prompt_tokens cached_tokens output_tokens output_tokens_source longest_gap_ns output_sha256 slot"
    )
    row = ok_row(7, S, outcome="unfinished", **dict.fromkeys(names.split()))  # type: ignore[arg-type]
    row = structs.replace(row, sent_ns=None)
    text = text_of(request_view(ReplayedRequest(row, (), 0, False, ())))
    assert "unfinished, first output after -, - in -" in text
    assert "none to show: nothing was read." in text


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"longest_channel_chars": None}, "not looked for"),
        ({"longest_channel_chars": 4095}, "too short to judge: 4,095 characters, it takes 4,096"),
        ({"longest_channel_chars": 4096}, "none in 4,096 characters"),
        (
            {"longest_channel_chars": 9000, "loop": Loop(Channel.reasoning, 24, 8999)},
            "reasoning ends in one: the same 24 characters over and over, 8,999 in all",
        ),
        (
            {"longest_channel_chars": 200_000, "loop": Loop(Channel.tool_call, 1, 131_072)},
            "tool call ends in one: the same 1 character over and over, 131,072 in all",
        ),
    ],
)
def test_a_request_says_whether_it_looped(told: dict[str, Any], said: str) -> None:
    """A loop, none, and too short to judge are three different things."""
    text = " ".join(text_of(request_view(request(**told)), 100).split())
    assert said in text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ServerError("No answer from http://h.", why="It must run.", hint="Start it."),
            "Error: No answer from http://h. It must run. Start it. The server is at fault.\n",
        ),
        (
            ClientError("The disk is full."),
            "Error: The disk is full. This machine is at fault, not the server.\n",
        ),
        (Interrupted("Interrupted.", hint="It is on disk."), "Interrupted. It is on disk.\n"),
        (NameplateError("Odd."), "Error: Odd.\n"),
        (ServerError(HOSTILE), "Error: \\x1b[2J[red]x[/]\\u202e\\r\\n The server is at fault.\n"),
    ],
)
def test_an_error_is_one_paragraph(error: NameplateError, said: str) -> None:
    """What happened, why it matters, what to try, whose fault; a server's words are harmless."""
    assert text_of(error_paragraph(error), 200) == said
