"""The two sides of a boundary, and the trials of a study folded within its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.pages.anchor import trial_anchor
from nameplate.pages.gather import gather
from nameplate.pages.report import report_page
from nameplate.pages.subject import RatedSubject
from nameplate.pages.trial.boundary import boundary_ecdf
from nameplate.pages.trial.list import BRIEF_TRIALS, WHOLE_TRIALS, forms_of, trial_list, with_events
from nameplate.verify.tests.making import make_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> RatedSubject:
    """Return a small capacity study that was confirmed."""
    directory = tmp_path_factory.mktemp("study") / "s"
    make_study(directory)
    found = gather(directory)
    assert isinstance(found, RatedSubject)
    return found


def test_each_valid_confirmation_at_the_boundary_has_its_curve(study: RatedSubject) -> None:
    """Every valid confirmation at the pass and the fail level is drawn, each once, with the limit."""
    shape = study.plate.shapes[0]
    page = str(boundary_ecdf(study, shape, study.plate.contract.slos[0]))
    sides = {shape.pass_level, shape.fail_level}
    wanted = [one.key for one in shape.confirmations if one.status != "invalid" and one.level in sides]
    assert wanted
    for key in wanted:
        # Once in each of two panels.
        assert page.count(f'"c":"{key}"') == 2
    assert "limit 15 ms" in page


def test_a_study_page_holds_every_trial(study: RatedSubject) -> None:
    """Each trial is folded away under its own name, with the sentence that its page begins with."""
    page = str(trial_list(study))
    for trial in study.trials:
        assert f'id="{trial_anchor(study.directory, trial.name)}"' in page
    assert page.count('<details class="trial"') == len(study.trials)


def test_events_are_read_within_a_budget_confirmations_first(study: RatedSubject) -> None:
    """Output events are read of confirmations first and never beyond the budget."""
    sizes = {
        trial.name: trial.result.measurement.correctness.output_events
        for trial in study.trials
        if trial.result is not None
    }
    confirming = {trial.name for trial in study.trials if trial.header.plan.role == "confirmation"}
    budget = sum(sizes[name] for name in confirming)
    assert with_events(study.trials, budget) == confirming
    assert with_events(study.trials, 0) <= {name for name, size in sizes.items() if size == 0}


def test_a_long_study_tells_its_confirmations_whole_and_the_rest_in_brief(study: RatedSubject) -> None:
    """Beyond the budget of a page confirmations come first, then trials in brief, then answers alone."""
    many = study.trials * (1 + 120 // len(study.trials))
    forms = forms_of(many)
    assert len(forms) == len(many)
    assert (forms.count("whole"), forms.count("brief")) == (WHOLE_TRIALS, BRIEF_TRIALS)
    confirming = [
        form for trial, form in zip(many, forms, strict=True) if trial.header.plan.role == "confirmation"
    ]
    assert confirming[:WHOLE_TRIALS] == ["whole"] * WHOLE_TRIALS
    assert set(forms_of(study.trials)) == {"whole"}


def test_the_page_of_a_single_trial_of_a_run_is_found(study: RatedSubject, tmp_path: Path) -> None:
    """A directory with one trial that no study decided by is that trial."""
    (tmp_path / "run" / "trials").mkdir(parents=True)
    (tmp_path / "run" / "trials" / "t").symlink_to(study.trials[0].directory)
    assert "Measured requests" in report_page([gather(tmp_path / "run")])
