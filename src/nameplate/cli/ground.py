"""Opening the ground that a command runs on: a real server, the engine on loopback, or simulated time."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from nameplate.cli.request import Address
from nameplate.contract.errors import CallerError, ClientError
from nameplate.contract.target import Credentials, Target
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.presets import find_preset
from nameplate.sim.process import running
from nameplate.trial.ground import Ground, LiveGround, VirtualGround

# Beside its streams a load holds files, pipes and the poller.
_OTHER_DESCRIPTORS = 32


@contextmanager
def open_ground(address: Address, credentials: Credentials) -> Iterator[tuple[Ground, Target]]:
    """Open the ground and give it with the target as it is reached there."""
    target = address.target
    if address.preset is None:
        yield LiveGround(target, credentials), target
        return
    try:
        preset = find_preset(address.preset)
        faults = FaultPlan(tuple(parse_fault(text) for text in address.faults))
    except ValueError as error:
        raise CallerError(f"{str(error).rstrip('.')}.", hint="See nameplate sim --help.") from None
    if not address.live:
        yield VirtualGround(App(preset, faults=faults)), target
        return
    arguments = [word for text in address.faults for word in ("--fault", text)]
    try:
        with running(preset.name, *arguments) as process:
            reached = Target.parse(process.url)
            target = structs.replace(target, scheme="http", host=reached.host, port=reached.port)
            yield LiveGround(target, credentials), target
    except RuntimeError as error:
        raise ClientError(f"The built-in engine could not be served: {error}.") from None


def require_descriptors(concurrency: int, workers: int) -> None:
    """Refuse a level that this machine has no descriptors for, before any load."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = -(-concurrency // workers) + _OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise CallerError(
            f"{concurrency} connections need {needed} open files a process, and this machine allows {hard}.",
            why="Requests beyond the limit would wait in the client and look like a slow server.",
            hint="Raise the limit (ulimit -Hn), lower --max or --outstanding-limit, or spread the load with --workers.",
        )
