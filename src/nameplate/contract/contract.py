"""The contract of a study: everything that is fixed before the first request."""

from __future__ import annotations

from msgspec import Struct, field

from nameplate.contract.cache import CachePolicy
from nameplate.contract.curve import CurvePlan
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.matrix import Matrix
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.soak_terms import SoakTerms
from nameplate.contract.target import Target


class Contract(Struct, frozen=True):
    """Fix what is asked of which server under which promise.

    `nonce` makes this study's prompts differ from every other study's; `seed` fixes schedules and lengths.
    `header_names` are the names of extra headers that are sent; their values are never kept.
    `speed` is the matrix of a speed study, which has no shapes and SLOs of its own; `soak` are
    the terms of a soak, whose one shape and SLOs are the contract's; `rate` is set where the levels of the study
    are rates; `curve` are the levels of a curve.
    """

    target: Target
    shapes: tuple[Shape, ...]
    slos: tuple[Slo, ...]
    nonce: str
    sampling: Sampling = field(default_factory=Sampling)
    cache: CachePolicy = field(default_factory=CachePolicy)
    deadlines: Deadlines = field(default_factory=Deadlines)
    rules: Rules = field(default_factory=Rules)
    seed: int = 42
    header_names: tuple[str, ...] = ()
    dataset: str | None = None
    speed: Matrix | None = None
    soak: SoakTerms | None = None
    rate: RateRules | None = None
    curve: CurvePlan | None = None
