"""paddle.DataParallel: a wrapper of a layer, for scripts; the program is made parallel when it
runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .nn.layer import Layer


class DataParallel(Layer):
    """Calls `layers` unchanged; state_dict has its names without a prefix.

    To run a static program data parallel, use
    CompiledProgram(program).with_data_parallel(loss_name). strategy, the sizes of buffers and
    find_unused_parameters belong to dynamic mode's exchange of gradients and are ignored.
    """

    def __init__(
        self, layers: Layer, strategy: Any = None, comm_buffer_size: int = 25, last_comm_buffer_size: float = 1,
        find_unused_parameters: bool = False, group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(layers.full_name() + "_data_parallel")
        self._layers = layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """The wrapped layer's."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Does nothing: the program exchanges gradients when it runs."""
        yield

    def scale_loss(self, loss: Any) -> Any:
        """The loss unchanged."""
        return loss

    def apply_collective_grads(self) -> None:
        """Does nothing: the program exchanges gradients when it runs."""

    def init_reducer(self) -> None:
        """Does nothing, like apply_collective_grads."""


__all__ = ["DataParallel"]
