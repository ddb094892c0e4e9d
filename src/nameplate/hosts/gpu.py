"""One GPU as it stands in the machine."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Vendor = Literal["nvidia", "amd", "intel"]


class Gpu(Struct, frozen=True, kw_only=True):
    """Hold what is known of one GPU; what its driver does not tell is None, never zero.

    `index` counts within one vendor. `power_limit_w` is the limit that the driver enforces. The link's current
    generation and width are those of the moment: an idle GPU lowers its link, so only the maximum tells what the slot
    allows.
    """

    index: int
    vendor: Vendor
    name: str | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    memory_total_bytes: int | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    power_limit_w: float | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    compute_mode: str | None = None
    ecc: bool | None = None
    persistence: bool | None = None
