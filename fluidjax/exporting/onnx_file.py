"""Writes a graph as an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..saved.files import Pieces, write_files
from .graph import Graph, Names, Node
from .report import Lack
from .values import Lacking, Value

OPSETS = (17, 18, 19, 20, 21)
# versions of the format that runtimes read at each opset's release
IR_VERSION = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
LARGE = 1_800_000_000  # a file of protobuf holds less than 2 GiB
APART = 1024  # smaller constants stay in the file


def onnx() -> Any:
    """The package onnx. Raises UnsupportedError if it is not installed."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.reference
        import onnx.shape_inference
    except ImportError:
        raise UnsupportedError(
            "writing and reading ONNX needs the package onnx: pip install 'fluidjax[export]'"
        ) from None
    return onnx


class Writer:
    """Makes a model from a graph. apart: whether constants go into a file of their own."""

    def __init__(self, names: Names, apart: str | None) -> None:
        self.onnx = onnx()
        self.names, self.apart = names, apart
        self.beside: list[np.ndarray] = []
        self._offset = 0

    def _called(self, name: str) -> str:
        return self.names.called.get(name, name)

    def element(self, dtype: str) -> int:
        kind = self.onnx.TensorProto
        named = {"float32": "FLOAT", "float64": "DOUBLE", "bool": "BOOL"}
        name = named.get(dtype, dtype.upper())
        if not hasattr(kind, name):
            raise Lacking(f"there are none of {dtype}")
        found: int = getattr(kind, name)
        return found

    def tensor(self, array: np.ndarray, name: str) -> Any:
        if self.apart is None or array.nbytes < APART:
            return self.onnx.numpy_helper.from_array(array, name)
        made = self.onnx.TensorProto()
        made.name, made.data_type = name, self.element(str(array.dtype))
        made.dims.extend(array.shape)
        made.data_location = self.onnx.TensorProto.EXTERNAL
        for key, value in (
            ("location", self.apart),
            ("offset", self._offset),
            ("length", array.nbytes),
        ):
            entry = made.external_data.add()
            entry.key, entry.value = key, str(value)
        self.beside.append(array)
        self._offset += array.nbytes
        return made

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the constants in the separate file."""
        for array in self.beside:
            yield np.ascontiguousarray(array).tobytes()

    def node(self, node: Node) -> Any:
        made = self.onnx.helper.make_node(
            node.kind, [self._called(n) for n in node.inputs], [self._called(n) for n in node.outputs],
            name=self._called(node.outputs[0]), doc_string=node.place or None,
        )  # fmt: skip
        for key, value in node.attrs.items():
            if isinstance(value, Graph):
                value = self.graph(value, self._called(node.outputs[0]) + "/body")
            elif isinstance(value, np.ndarray):
                value = self.onnx.numpy_helper.from_array(value)
            elif key in ("to", "element"):  # the type of elements; SequenceEmpty calls it dtype
                key, value = "to" if key == "to" else "dtype", self.element(value)
            elif isinstance(value, list | tuple):
                value = [v.item() if isinstance(v, np.generic) else v for v in value]
                if not value:
                    continue
            elif isinstance(value, bool | np.generic):
                value = int(value) if isinstance(value, bool) else value.item()
            made.attribute.append(self.onnx.helper.make_attribute(key, value))
        return made

    def info(self, value: Value, sizes: Mapping[int, str] | None = None, known: bool = True) -> Any:
        shape = None
        if value.shape is not None:
            shape = [
                (sizes or {}).get(i) if n < 0 or not known else n for i, n in enumerate(value.shape)
            ]
        helper = self.onnx.helper
        made = helper.make_tensor_type_proto(self.element(value.dtype), shape)
        if value.many:
            made = helper.make_sequence_type_proto(made)
        return helper.make_value_info(self._called(value.name), made)

    def graph(
        self, g: Graph, name: str, open_sizes: Mapping[str, Mapping[int, str]] | None = None, constants: list[Any] | None = None,
    ) -> Any:  # fmt: skip
        sizes = open_sizes or {}
        return self.onnx.helper.make_graph(
            [self.node(n) for n in g.nodes],
            name,
            [self.info(v, sizes.get(v.name)) for v in g.inputs],
            [self.info(v) for v in g.outputs],
            constants or [],
        )


def model_of(
    g: Graph, name: str, open_sizes: Mapping[str, Mapping[int, str]], notes: Mapping[str, str], apart: str | None,
) -> tuple[Any, Writer]:  # fmt: skip
    """The model, and the writer with the separate constants."""
    writer = Writer(g.names, apart)
    used = _used(g)
    constants = [
        writer.tensor(a, g.names.called.get(n, n))
        for n, a in g.names.constants.items()
        if n in used
    ]
    helper = writer.onnx.helper
    made = helper.make_model(
        writer.graph(g, name, open_sizes, constants),
        opset_imports=[helper.make_opsetid("", g.opset)],
        producer_name="fluidjax",
        ir_version=IR_VERSION[g.opset],
    )
    helper.set_model_props(made, dict(notes))
    return made, writer


def _used(g: Graph) -> set[str]:
    from .tidy import read_within

    return set(read_within(g))


def checked(model: Any) -> tuple[Any, list[Lack]]:
    """The model with the shapes that ONNX infers, and the errors that its checker reports."""
    package = onnx()
    try:
        bare = _with_inputs(model)
        package.checker.check_model(bare, full_check=True)
        inferred = package.shape_inference.infer_shapes(bare, data_prop=True)
        model.graph.value_info.extend(inferred.graph.value_info)
        return model, []
    except (package.checker.ValidationError, package.shape_inference.InferenceError) as error:
        said = " ".join(str(error).split())[:400]
        return model, [Lack("the checker of onnx", 1, f"it objects: {said}")]


def _with_inputs(model: Any) -> Any:
    """The model with its large constants as inputs, because checks do not read their values, and
    would copy them several times.
    """
    package = onnx()
    bare = type(model)()
    bare.ir_version = model.ir_version
    bare.opset_import.extend(model.opset_import)
    bare.graph.name = model.graph.name
    for part in ("node", "input", "output"):
        getattr(bare.graph, part).extend(getattr(model.graph, part))
    for tensor in model.graph.initializer:
        if tensor.data_location != tensor.EXTERNAL and tensor.ByteSize() < APART:
            bare.graph.initializer.append(tensor)
            continue
        bare.graph.input.append(
            package.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        )
    return bare


def write(path: Path, model: Any, writer: Writer) -> int:
    """Write the file, and the second file if constants are separate; an old file is complete until
    the new one is. Returns the number of bytes.
    """
    data = model.SerializeToString()
    files: dict[str, Pieces] = {path.name: lambda: [data]}
    size = len(data)
    if writer.apart is not None:
        files = {writer.apart: writer.pieces, **files}
        size += sum(a.nbytes for a in writer.beside)
    write_files(path.parent, files)
    return size
