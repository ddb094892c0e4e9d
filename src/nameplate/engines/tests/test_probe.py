"""Probes over fake servers: what works, what is missing, how to turn it on."""

from __future__ import annotations

import pytest

from nameplate.contract.errors import ServerError
from nameplate.engines.ask import ask
from nameplate.engines.capability import ProbeReport
from nameplate.engines.fakes import Answer, FakeTraits, ScriptedTransport, reply
from nameplate.engines.probe import OUTPUT_TOKENS, probe
from nameplate.engines.tests.helpers import detected, fake_adapter
from nameplate.wire.outcome import Outcome


def probed(traits: FakeTraits | None = None) -> ProbeReport:
    return probe(fake_adapter(traits)[0], "nonce")


def status(report: ProbeReport, name: str) -> str:
    found = report.capability(name)
    assert found is not None, name
    return found.status


def test_a_server_with_everything_on_has_everything() -> None:
    """Only facts that no API tells are missing."""
    report = probed()
    assert {one.name for one in report.missing} == {"portability", "running limit"}
    assert report.target.stream_usage and report.target.continuous_usage
    assert report.floor_tokens == 0 and report.reports_cached_tokens and report.dropped == ()
    assert report.flush is not None and report.flush.status == "proven"
    assert report.limit_field == "max_tokens"


def test_what_is_off_says_how_to_turn_it_on() -> None:
    """Flush, cached-token reports and metrics each come with this engine's switch."""
    report = probed(FakeTraits(flush="absent", reports_cached=False, metrics=False))
    hints = {one.name: one.how_to_enable for one in report.missing}
    assert "VLLM_SERVER_DEV_MODE=1" in hints["flush"]
    assert "--enable-prompt-tokens-details" in hints["cached-token reports"]
    assert hints["metrics"]
    assert report.reports_cached_tokens is False and report.floor_tokens is None


def test_a_strict_server_is_asked_again_without_the_fields_it_does_not_know() -> None:
    """The refused field alone is dropped where it is named, and recorded."""
    report = probed(FakeTraits(rejects=("continuous_usage_stats",)))
    assert report.dropped == ("continuous_usage_stats",)
    assert not report.target.continuous_usage and report.target.stream_usage
    assert status(report, "continuous usage") == "refused"
    assert status(report, "ignore_eos") == "yes"


def test_fields_are_refused_one_after_another() -> None:
    """Two unknown fields, named one at a time, both go."""
    report = probed(FakeTraits(rejects=("continuous_usage_stats", "ignore_eos")))
    assert set(report.dropped) == {"continuous_usage_stats", "ignore_eos"}
    assert status(report, "ignore_eos") == "refused"


def test_an_unnamed_refusal_drops_all_extensions() -> None:
    """Where the server does not say which field it means, none of the extensions is sent again."""
    report = probed(FakeTraits(rejects=("ignore_eos",), names_rejected=False))
    assert set(report.dropped) == {"continuous_usage_stats", "ignore_eos"}


def test_a_server_without_max_tokens_gets_the_newer_name() -> None:
    """All later requests then use `max_completion_tokens`."""
    report = probed(FakeTraits(rejects=("max_tokens",)))
    assert report.limit_field == "max_completion_tokens"
    assert report.flush is not None and report.flush.status == "proven"


def test_a_field_of_the_api_that_a_model_refuses_is_dropped_and_named() -> None:
    """Some models take no temperature or seed; all later requests of the probe go without."""
    report = probed(FakeTraits(rejects=("seed", "temperature")))
    assert set(report.dropped) == {"seed", "temperature"}
    assert (status(report, "seed"), status(report, "temperature")) == ("refused", "refused")
    assert report.flush is not None and report.flush.status == "proven"


def test_ignored_length_controls_are_named() -> None:
    """A server that stops all the same, or does not stop, is found out before any measurement."""
    assert status(probed(FakeTraits(honours_ignore_eos=False)), "ignore_eos") == "no"
    assert status(probed(FakeTraits(honours_limit=False, natural_tokens=99)), "max_tokens") == "no"


def test_missing_usage_is_unknown_and_not_zero() -> None:
    """Without usage nothing can be said about lengths."""
    report = probed(FakeTraits(reports_usage=False))
    assert status(report, "streaming usage") == "no"
    assert status(report, "ignore_eos") == "unknown"
    assert status(report, "max_tokens") == "unknown"


def test_probe_requests_are_few_tiny_and_recorded() -> None:
    """Each has a purpose, a digest and its own prompt; only the proof repeats one."""
    adapter, server = fake_adapter()
    report = probe(adapter, "nonce")
    assert len(report.requests) == len(server.bodies) == 7
    assert all(body.get("max_tokens", 3) <= OUTPUT_TOKENS for body in server.bodies)
    prompts = [request.prompt for request in report.requests]
    assert len(set(prompts)) == len(prompts) - 2
    heads = {prompt[:64] for prompt in prompts}
    assert len(heads) == len(set(prompts))


def test_probes_of_two_nonces_share_no_prompt() -> None:
    """A second probe of the same server is as cold as the first."""
    one, two = (probe(fake_adapter()[0], nonce) for nonce in ("a", "b"))
    assert not {r.prompt for r in one.requests} & {r.prompt for r in two.requests}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply({"error": {"message": "no such model"}}, 404), "--model"),
        (reply({"error": {"message": "key"}}, 401), "--api-key-env"),
        (reply({"error": {"message": "broken"}}, 500), "broken"),
        (reply("<html>hello</html>", content_type="text/html"), "HTML"),
        ("timeout", "finished loading"),
        (reply({"error": {"message": "nothing is right"}}, 400), "nothing is right"),
    ],
)
def test_a_server_that_serves_no_request_cannot_be_measured(answer: Answer, words: str) -> None:
    """The failure is the server's, with its own words."""
    script: dict[str, Answer | list[Answer]] = {
        "GET /v1/models": reply({"data": [{"id": "toy", "owned_by": "vllm"}]}),
        "POST /v1/chat/completions": answer,
    }
    with pytest.raises(ServerError) as caught:
        probe(detected(ScriptedTransport(script)), "nonce")
    assert words in str(caught.value)


def test_ask_names_what_happened() -> None:
    """No answer, an error in a stream, and a good answer are three outcomes."""
    path = "/v1/chat/completions"
    stream = b'data: {"error": {"message": "out of memory"}}\n\ndata: [DONE]\n\n'
    good = (
        b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\ndata: [DONE]\n\n'
    )
    answers: tuple[tuple[Answer, Outcome], ...] = (
        ("refused", Outcome.connect_failed),
        ("timeout", Outcome.timed_out_total),
        (reply(stream, content_type="text/event-stream"), Outcome.stream_error),
        (reply(good, content_type="text/event-stream"), Outcome.ok),
    )
    for answer, outcome in answers:
        assert ask(ScriptedTransport({f"POST {path}": answer}), b"{}", path).outcome is outcome
    found = ask(ScriptedTransport({f"POST {path}": answers[-1][0]}), b"{}", path)
    assert (found.text, found.prompt_tokens, found.cached_tokens, found.streamed) == ("Hi", 5, None, True)
