"""Places under the module name that scripts import; they are in devices/place.py."""

from .devices.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    XPUPlace,
    as_place,
    cpu_devices,
    cpu_num,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    default_place,
    is_compiled_with_cuda,
)

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "XPUPlace",
    "as_place",
    "cpu_devices",
    "cpu_num",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_place",
    "is_compiled_with_cuda",
]
