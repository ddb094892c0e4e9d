"""NVIDIA's peer-to-peer settings."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nameplate.hosts.p2p import EXPECTED, Mismatch, of_texts, read_p2p

LINE = (
    'options nvidia NVreg_RegistryDwords="ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=2;'
    'GrdmaPciTopoCheckOverride=1;EnableResizableBar=1"'
)
PARAMS = """ResmanDebugLevel: 4294967295
EnableResizableBar: {bar}
DmaRemapPeerMmio: 1
GrdmaPciTopoCheckOverride: 1
RegistryDwords: "{dwords}"
RegistryDwordsPerDevice: ""
"""

# The fields of a published result file of llm-inference-bench 0.4.30.
FIELDS = [
    "effective", "configured", "params_path", "params_available", "modprobe_path", "modprobe_available", "runtime",
    "expected", "missing", "mismatched", "registry_dwords", "suggested_modprobe_line", "suggested_reload",
]  # fmt: skip


def test_no_driver_as_the_other_tool_writes_it() -> None:
    """Without the driver everything expected is missing, in the field names and order of the other tool's file."""
    built = msgspec.to_builtins(of_texts(None, None))
    assert [name for name in built if name != "caution"] == FIELDS
    assert built["runtime"] == dict.fromkeys([*EXPECTED, "DmaRemapPeerMmio"], "")
    assert built["missing"] == tuple(EXPECTED) and built["mismatched"] == {}
    assert not (built["effective"] or built["configured"])
    assert not (built["params_available"] or built["modprobe_available"])
    assert built["suggested_modprobe_line"] == LINE


def test_effective_and_configured() -> None:
    """A driver that runs with all of them is effective; the suggested line in the file is configured."""
    dwords = "ForceP2P=17; RMForceP2PType=1;RMPcieP2PType=0x2;EnableResizableBar=1;"
    override = of_texts(PARAMS.format(bar=0, dwords=dwords), f"# a note\n{LINE}\n")
    assert override.effective and override.configured
    assert override.missing == () and override.mismatched == {}
    # The registry's value wins over the plain one of the same name; the plain ones fill.
    assert override.runtime["EnableResizableBar"] == "1"
    assert override.runtime["GrdmaPciTopoCheckOverride"] == "1"
    assert override.runtime["DmaRemapPeerMmio"] == "1"
    assert override.registry_dwords == dwords


def test_mismatched_and_missing() -> None:
    """Another value is mismatched with both values told, an absent one is missing, and neither is effective."""
    override = of_texts(
        PARAMS.format(bar=0, dwords="ForceP2P=0x11;RMForceP2PType=2"), "options nvidia NVreg_X=1"
    )
    assert override.missing == ("RMPcieP2PType",)
    assert override.mismatched == {
        "RMForceP2PType": Mismatch("1", "2"),
        "EnableResizableBar": Mismatch("1", "0"),
    }
    assert not override.effective and not override.configured and override.modprobe_available


def test_commented_line_configures_nothing() -> None:
    """A line that is commented out, or for another module, is no configuration."""
    assert not of_texts(None, f"#{LINE}\n").configured
    assert not of_texts(None, LINE.replace("options nvidia ", "options nvidia-drm ")).configured
    assert of_texts(None, LINE.replace(" NVreg", " \\\n NVreg")).configured


def test_read_from_a_root(tmp_path: Path) -> None:
    """Both files are looked for where the driver and modprobe have them."""
    for name, text in (
        ("proc/driver/nvidia/params", PARAMS.format(bar=1, dwords="")),
        ("etc/modprobe.d/nvidia-p2p-override.conf", LINE),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    override = read_p2p(tmp_path)
    assert override.params_available and override.configured and not override.effective


@given(st.text(max_size=300), st.text(max_size=300))
def test_odd_texts_never_raise(params: str, modprobe: str) -> None:
    """Whatever the files hold, the answer is whole: each expected setting is right, missing or mismatched."""
    override = of_texts(params, f"options nvidia {modprobe}")
    assert not set(override.missing) & set(override.mismatched)
    assert override.effective == (not override.missing and not override.mismatched)
