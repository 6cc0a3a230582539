"""Open Inference Protocol v2 in JSON: converts requests to arrays, and arrays to responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import orjson

from ..errors import FluidError, near
from ..lod_tensor import LoDTensor
from .refused import Refused

DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "int8": "INT8", "uint16": "UINT16", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
NUMBERS: dict[str, set[type]] = {"b": {bool}, "f": {int, float}}  # otherwise int
SHOWN = 80  # characters of a client's input that messages repeat


@dataclass(frozen=True)
class Tensor:
    """The description of an input or an output: shape has -1 for open sizes; levels is the number
    of levels of sequences.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    levels: int = 0

    def metadata(self) -> dict[str, Any]:
        """The tensor's entry in a model's metadata."""
        return {
            "name": self.name,
            "datatype": DATATYPES[self.dtype.name],
            "shape": list(self.shape),
        }


@dataclass(frozen=True)
class Request:
    """feed: arrays, or LoDTensors, by name. wanted: names of outputs. id: the client's own."""

    feed: Mapping[str, Any]
    wanted: tuple[str, ...]
    id: str | None


def read(
    body: bytes, inputs: Sequence[Tensor], outputs: Sequence[Tensor], elements: int
) -> Request:
    """A request for inference. Raises Refused for anything else, or if it does not fit the
    model.
    """
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("inputs"), list):
        raise Refused(400, "a request is an object with a list 'inputs'")
    known = {t.name: t for t in inputs}
    feed: dict[str, Any] = {}
    for each in given["inputs"]:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise Refused(400, "an input is an object with 'name', 'shape', 'datatype' and 'data'")
        if name not in known:
            raise Refused(
                400, f"the model has no input {_of(name)}{near(name, known)}; {_has(known)}"
            )
        if name in feed:
            raise Refused(400, f"input {_of(name)} is given twice")
        feed[name] = _value(each, known[name], elements)
    if missing := [n for n in known if n not in feed]:
        raise Refused(400, f"input {missing[0]!r} is missing; {_has(known)}")
    return Request(feed, _wanted(given, [t.name for t in outputs]), _id(given))


def _of(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 4] + " ..."


def _has(known: Mapping[str, Any]) -> str:
    return f"it takes {', '.join(map(repr, known))}"


def _id(given: Mapping[str, Any]) -> str | None:
    found = given.get("id")
    if found is not None and not isinstance(found, str):
        raise Refused(400, f"an id is text, not {_of(found)}")
    return found


def _wanted(given: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    asked = given.get("outputs")
    if asked is None or asked == []:
        return tuple(names)
    if not isinstance(asked, list) or not all(
        isinstance(o, dict) and isinstance(o.get("name"), str) for o in asked
    ):
        raise Refused(400, "outputs is a list of objects with 'name'")
    for each in asked:
        if each["name"] not in names:
            raise Refused(
                400,
                f"the model has no output {_of(each['name'])}{near(each['name'], names)};"
                f" it gives {', '.join(map(repr, names))}",
            )
        if _parameters(each).get("binary_data"):
            raise Refused(400, "outputs are given as JSON; binary_data is not spoken")
    return tuple(dict.fromkeys(o["name"] for o in asked))


def _parameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    found = given.get("parameters", {})
    if not isinstance(found, dict):
        raise Refused(400, f"parameters is an object, not {_of(found)}")
    return found


def _value(given: Mapping[str, Any], tensor: Tensor, elements: int) -> Any:
    what, wanted = f"input {tensor.name!r}", DATATYPES[tensor.dtype.name]
    if given.get("datatype") != wanted:
        raise Refused(400, f"{what} is of datatype {wanted}, not {_of(given.get('datatype'))}")
    shape = _shape(what, given.get("shape"), tensor.shape)
    if (count := math.prod(shape)) > elements:
        raise Refused(413, f"{what} has {count} elements; {elements} are taken at most")
    data = given.get("data")
    if not isinstance(data, list):
        raise Refused(400, f"{what} has its numbers in a list 'data'")
    array = _array(what, _flat(what, data, shape), tensor.dtype).reshape(shape)
    lengths = _parameters(given).get("lengths")
    if not tensor.levels:
        if lengths is not None:
            raise Refused(400, f"{what} has no sequences, so it takes no lengths")
        return array
    return _sequences(what, array, lengths, tensor.levels)


def _shape(what: str, given: Any, declared: Sequence[int]) -> list[int]:
    if not isinstance(given, list) or not all(type(n) is int and n >= 0 for n in given):
        raise Refused(400, f"{what} has a list of sizes as 'shape', not {_of(given)}")
    if len(given) != len(declared) or any(
        m not in (n, -1) for n, m in zip(given, declared, strict=True)
    ):
        raise Refused(400, f"{what} is of shape {list(declared)}, not {_of(given)}")
    return given


def _flat(what: str, data: list[Any], shape: Sequence[int]) -> list[Any]:
    """The numbers, given as one list or as lists nested like the shape."""
    if data and isinstance(data[0], list):
        level: list[Any] = [data]
        for n in shape:
            if any(type(each) is not list or len(each) != n for each in level):
                raise Refused(
                    400, f"{what} has lists in 'data' that are not of shape {list(shape)}"
                )
            level = list(chain.from_iterable(level))
        data = level
    if len(data) != math.prod(shape):
        raise Refused(
            400, f"{what} has {len(data)} numbers; shape {list(shape)} has {math.prod(shape)}"
        )
    return data


def _array(what: str, numbers: list[Any], dtype: np.dtype) -> np.ndarray:
    taken = NUMBERS.get(dtype.kind, {int})
    if wrong := set(map(type, numbers)) - taken:
        at = next(i for i, n in enumerate(numbers) if type(n) in wrong)
        raise Refused(
            400, f"{what} is of {DATATYPES[dtype.name]}, but element {at} is {_of(numbers[at])}"
        )
    try:
        with np.errstate(over="ignore"):
            array = np.array(numbers, dtype)
    except OverflowError:
        array = None
    if array is None or (dtype.kind == "f" and not np.isfinite(array).all()):
        raise Refused(400, f"{what} has numbers that {DATATYPES[dtype.name]} does not hold")
    return array


def _sequences(what: str, array: np.ndarray, lengths: Any, levels: int) -> LoDTensor:
    if isinstance(lengths, list) and lengths and not isinstance(lengths[0], list):
        lengths = [lengths]
    fits = (
        isinstance(lengths, list)
        and len(lengths) == levels
        and all(isinstance(level, list) for level in lengths)
        and all(type(n) is int and 0 <= n <= array.shape[0] for level in lengths for n in level)
    )
    tensor = LoDTensor(array)
    try:
        if fits:
            tensor.set_recursive_sequence_lengths(lengths)
    except FluidError:
        fits = False
    if not fits or not tensor.has_valid_recursive_sequence_lengths():
        raise Refused(
            400,
            f"{what} is sequences: its parameter 'lengths' is {levels} list(s) of how long they"
            f" are, the last of them {array.shape[0]} rows in all",
        )
    return tensor


def write(model: str, id: str | None, wanted: Sequence[str], values: Mapping[str, Any]) -> bytes:
    """The response. Numbers that are not finite become null, because JSON has no word for them."""
    outputs = []
    for name in wanted:
        value = values[name]
        array = np.asarray(value)
        found: dict[str, Any] = {
            "name": name,
            "datatype": DATATYPES[array.dtype.name],
            "shape": list(array.shape),
        }
        if isinstance(value, LoDTensor) and value.lod():
            found["parameters"] = {"lengths": value.recursive_sequence_lengths()}
        outputs.append({**found, "data": np.ascontiguousarray(array).reshape(-1)})
    answer = {"model_name": model, **({} if id is None else {"id": id}), "outputs": outputs}
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
