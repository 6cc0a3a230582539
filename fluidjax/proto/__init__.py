"""fluid.proto: the protobuf messages of programs, under the module names that scripts import."""

from typing import TYPE_CHECKING

from ..base.absent import reporter

__all__ = ["framework_pb2"]

if TYPE_CHECKING:
    from . import framework_pb2 as framework_pb2
else:
    from ..base.lazy import on_demand

    __getattr__, __dir__ = on_demand(
        __name__, {"framework_pb2": ""}, reporter("fluid.proto", __all__)
    )
