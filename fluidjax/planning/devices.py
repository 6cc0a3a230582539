"""The performance of one device: its peak of operations, its memory, and the memory's bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FluidValueError, near

_HALF = ("float16", "bfloat16")


@dataclass(frozen=True)
class Device:
    """flops: operations a second by dtype ("float32": at JAX's default precision). memory: bytes.
    bandwidth: bytes a second of it.
    """

    name: str
    flops: Mapping[str, float]
    memory: float
    bandwidth: float

    def __post_init__(self) -> None:
        for what, value in (
            ("memory", self.memory),
            ("bandwidth", self.bandwidth),
            *((f"flops of {d}", f) for d, f in self.flops.items()),
        ):
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 < value < float("inf")
            ):
                raise FluidValueError(
                    f"{what} of device {self.name!r} is a positive number, not {value!r}"
                )

    def peak(self, dtype: str) -> float:
        """Operations a second in a dtype; for an unknown one, those of the slowest."""
        return self.flops.get(dtype, min(self.flops.values()))


def _device(
    name: str, half: float, single: float, gigabytes: float, gigabytes_a_second: float
) -> Device:
    flops = {**dict.fromkeys(_HALF, half * 1e12), "float32": single * 1e12}
    return Device(name, flops, gigabytes * 1e9, gigabytes_a_second * 1e9)


# As published in NVIDIA's data sheets (V100 SXM2 32 GB, A100 SXM 80 GB, H100 SXM, H200 SXM, DGX
# B200 a GPU), without sparsity, and on Google's pages on the TPUs' architecture. float32 is what
# JAX does by default: TF32 on NVIDIA's (which V100 lacks), bfloat16 passes on TPUs.
DEVICES: Mapping[str, Device] = {
    d.name: d
    for d in (
        _device("v100", 125, 15.7, 32, 900),
        _device("a100", 312, 156, 80, 2039),
        _device("h100", 989, 494, 80, 3350),
        _device("h200", 989, 494, 141, 4800),
        _device("b200", 2250, 1125, 180, 8000),
        _device("tpu-v4", 275, 275, 32, 1228),
        _device("tpu-v5e", 197, 197, 16, 819),
        _device("tpu-v5p", 459, 459, 95, 2765),
    )
}


def as_device(value: Any) -> Device | None:
    """A device from itself or the name of a preset; None: unknown. Raises FluidValueError for
    anything else.
    """
    if value is None or isinstance(value, Device):
        return value
    if isinstance(value, str) and value in DEVICES:
        return DEVICES[value]
    raise FluidValueError(
        f"there is no device {value!r}{near(str(value), DEVICES)}; there are {', '.join(DEVICES)},"
        " or a Device"
    )
