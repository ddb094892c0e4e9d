"""What a confidence adds to a result, in words."""

from __future__ import annotations

from msgspec import UnsetType

from nameplate.contract.contract import Contract
from nameplate.contract.rules import Rules
from nameplate.measure.plate import PlateShape
from nameplate.report import numbers
from nameplate.statistics.binomial import MOST_REQUESTS
from nameplate.verdict.certify import Certified


def percent(confidence: float) -> str:
    """Write a confidence: `95%`, `99.5%`, `99.9875%`."""
    return f"{confidence * 100:.8g}%"


def carried_by(rules: Rules) -> str:
    """Say what carries a pass and a fail: trials, and a confidence where one was asked for."""
    trials = f"{rules.confirmations} of {rules.confirmations} independent trials each"
    if rules.confidence is None:
        return trials
    return f"certified at {percent(rules.confidence)}; {rules.confirmations} of {rules.confirmations} trials failed"


def certified_means(passing: str, failing: str, rules: Rules) -> str:
    """Say what a confirmed boundary means under a confidence."""
    return (
        f"{passing} passed in all of its trials, which certify it, and {failing} failed in all "
        f"{rules.confirmations}, each with a load process, prompts and evidence of its own."
    )


def doubt_at(levels: str, rules: Rules) -> str:
    """Say what stands between a pass and a fail."""
    if rules.confidence is None:
        return f"at {levels} the trials disagree, and noise is not rounded upwards"
    return f"{levels} cannot be certified at {percent(rules.confidence)}, and doubt is not rounded upwards"


def doubt_means(rules: Rules) -> str:
    """Say what a noisy boundary means and what can be done about it."""
    if rules.confidence is None:
        return (
            "Trials of the same level disagree. --extra-confirmations or more --requests may settle it; "
            "until then the level below the noise is the number."
        )
    return (
        "Trials disagree there, or too many requests are over the limit for this confidence: no fail, and no pass to "
        "rely on. More --requests tell levels apart that lie closer together."
    )


def standing_line(shape: PlateShape, contract: Contract) -> str | None:
    """Say what is certified of the rated level under the contract's confidence; None where none was asked for."""
    asked = contract.rules.confidence
    if asked is None:
        return None
    if not shape.certified:
        return f"nothing, at {percent(asked)}"
    trials = shape.certified[0].trials
    shares = (
        f"{one.whole.over:,} of {one.whole.n:,} requests over {numbers.promise(one.slo)}"
        for one in shape.certified
    )
    return f"at {percent(asked)}: {trials} of {trials} trials pass, {'; '.join(shares)}"


def sample_certificate(one: Certified) -> str | None:
    """Say how many more requests would decide what is not certified; None where it is, or it is not known."""
    share, further = one.whole.share, one.further_requests
    if one.holds or share is None or isinstance(further, UnsetType):
        return None
    if further is None:
        return f"No sample of up to {MOST_REQUESTS:,} requests would decide it at this share."
    does = "certify" if share < one.claim else "refute"
    if further == 0:
        return "These requests refute it."
    return f"At this share some {_rounded_up(further):,} more requests would {does} it."


def _rounded_up(count: int) -> int:
    """Round a count up to two digits: the share it rests on is not known better."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step


def trials_certificate(one: Certified) -> str | None:
    """Say what the trials certify beside their requests; None where no confidence was asked for."""
    if one.trials_bound is None:
        return None
    said = (
        f"{one.trials:,} of {one.trials:,} trials passed, so with {percent(one.confidence)} confidence more than "
        f"{numbers.share(one.trials_bound, 0)} of such trials do"
    )
    if one.further_ns is None or one.slo.limit_ns is None:
        return f"{said}, whatever happens within a trial."
    further = numbers.against(one.further_ns, one.slo.limit_ns)
    return (
        f"{said}, and if they are alike a further one stays below {further}, whatever happens within a trial."
    )
