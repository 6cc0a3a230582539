"""The table of JAX primitives and their ops: slots for operands, attributes for parameters.

A row holds for every version of JAX from 0.10 on; a parameter that only some versions have is
optional in it. An unknown parameter is refused unless it is None, False or an empty tuple, so that
a newer JAX cannot silently change what a program computes. Primitives with blocks of their own are
read by reading.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from ..base.dtypes import KEYS
from ..errors import TraceError

Attrs = dict[str, Any]


class Parameters:
    """The parameters of one equation; :meth:`finish` checks those that were not read."""

    def __init__(self, primitive: str, given: Mapping[str, Any]) -> None:
        self._primitive, self._given, self._taken = primitive, given, set[str]()

    def __getitem__(self, name: str) -> Any:
        self._taken.add(name)
        return self._given[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        self._taken.add(name)
        return self._given.get(name, otherwise)

    def ints(self, name: str) -> tuple[int, ...]:
        """A tuple of whole numbers, as Python ints; as texts if one is an open size."""
        return _sizes(self[name] or ())

    def dtype(self, name: str) -> str:
        """The name of a dtype, or "" for None."""
        found = self.get(name)
        return "" if found is None else dtype_name(found)

    def ignore(self, *names: str) -> None:
        """Mark parameters that do not affect the values."""
        self._taken.update(names)

    def finish(self) -> None:
        """Raises TraceError for a parameter that was not read and has an effect."""
        for name, value in self._given.items():
            if name not in self._taken and not _has_no_effect(value):
                raise TraceError(
                    f"primitive '{self._primitive}' has the parameter {name} = {value!r}, which no"
                    " Program can say"
                )


def _has_no_effect(value: Any) -> bool:
    return (
        value is None
        or value is False
        or (isinstance(value, tuple) and not value)
        or _no_sharding(value)
        or value is _USUAL_MEMORY
    )


_USUAL_MEMORY = getattr(getattr(getattr(jax, "memory", None), "Space", None), "Device", None)


def _no_sharding(value: Any) -> bool:
    """Whether a sharding has no effect: jax passes one of an empty mesh, and within shard_map one
    that splits no axis.
    """
    mesh = getattr(value, "mesh", None)
    return mesh is not None and (
        getattr(mesh, "empty", False) or all(part is None for part in value.spec)
    )


def spec_of(spec: Iterable[Any]) -> str:
    """``d,-,a+b,?``: the axes of a mesh that split each axis of an array; ? leaves it to the
    compiler.
    """
    return ",".join(
        "?" if p is PartitionSpec.UNCONSTRAINED else p if isinstance(p, str) else "+".join(p or ()) or "-"
        for p in spec
    )  # fmt: skip


def size_of(value: Any) -> int | str:
    """A size: a number, or the text of an open size (a symbolic dimension of jax.export)."""
    try:
        return int(value)
    except Exception:
        if hasattr(value, "dtype"):
            raise TraceError(
                "a size is a value that the step computes: give arguments of known shapes"
            ) from None
        return str(value)


def _sizes(values: Iterable[Any]) -> Any:
    """Sizes; all are texts if one is open."""
    found = tuple(map(size_of, values))
    return tuple(map(str, found)) if any(isinstance(n, str) for n in found) else found


@cache
def dtype_name(dtype: Any) -> str:
    """The name of a dtype, ``key<fry>`` for random keys."""
    if dtype == jax.dtypes.float0:
        raise TraceError(
            "a value is float0, the tangent of integers, which no variable can hold: leave it out"
            " of what is returned"
        )
    return str(getattr(dtype, "name", None) or np.dtype(dtype).name)


def number(value: Any) -> bool | int | float | None:
    """A literal in the form of an attribute: NaN is one object, so that programs compare equal;
    None for a complex number.
    """
    found = np.asarray(value)
    if found.dtype.kind not in "biufV" or found.size != 1:
        return None
    plain = (
        found.item() if found.dtype.kind in "biuf" else float(found.astype(np.float32).reshape(()))
    )
    return math.nan if isinstance(plain, float) and math.isnan(plain) else plain


@cache
def is_inexact(dtype: Any) -> bool:
    """Whether gradients flow through values of a dtype."""
    return bool(jax.numpy.issubdtype(dtype, jax.numpy.inexact))


@dataclass(frozen=True)
class Row:
    """kind: the op type behind ``jax.``. ins, outs: slots in the order of the operands; ``X*``
    takes all remaining operands. outs may be a function of the attributes, if these decide which
    outputs exist.

    attrs: the attributes from the parameters. literals: slots whose operand becomes this attribute
    if it is a literal.
    """

    kind: str
    ins: str
    outs: str | Callable[[Attrs], str] = "Out"
    attrs: Callable[[Parameters], Attrs] = lambda p: {}
    literals: Mapping[str, str] = field(default_factory=dict)


def _rows(
    kinds: str, ins: str, attrs: Callable[[Parameters], Attrs] = lambda p: {}, **literals: str
) -> dict[str, Row]:
    return {kind: Row(kind, ins, "Out", attrs, literals) for kind in kinds.split()}


def _no_attributes(*names: str) -> Callable[[Parameters], Attrs]:
    """No attributes; these parameters have no effect."""

    def attrs(p: Parameters) -> Attrs:
        p.ignore(*names)
        return {}

    return attrs


def _given(**attrs: Any) -> Attrs:
    """Attributes without those that have no effect."""
    return {name: value for name, value in attrs.items() if value not in ((), "", None, False)}


def _ones(values: Iterable[int]) -> tuple[int, ...]:
    """Dilations; () if all are 1."""
    found = tuple(map(int, values))
    return () if all(v == 1 for v in found) else found


def _flat(padding: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = _sizes(v for pair in padding for v in pair)
    return found


def _precision(p: Parameters) -> str:
    found = p.get("precision")
    if found is None:
        return ""
    if isinstance(found, jax.lax.DotAlgorithmPreset):
        return f"algorithm {found.name}"
    each = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(e, jax.lax.Precision) for e in each):
        raise TraceError(
            f"the precision {found!r} is not supported in a Program: use a jax.lax.Precision"
        )
    return ",".join(e.name for e in each)


def _dot_general(p: Parameters) -> Attrs:
    return _product(p, p["dimension_numbers"])


def _ragged_dot(p: Parameters) -> Attrs:
    numbers = p["ragged_dot_dimension_numbers"]
    groups = {
        "lhs_ragged": numbers.lhs_ragged_dimensions,
        "rhs_group": numbers.rhs_group_dimensions,
    }
    found = _product(p, numbers.dot_dimension_numbers)
    return {**found, **_given(**{name: tuple(map(int, each)) for name, each in groups.items()})}


def _product(p: Parameters, numbers: Any) -> Attrs:
    (lhs, rhs), (lhs_batch, rhs_batch) = numbers
    axes = {
        "lhs_contract": lhs,
        "rhs_contract": rhs,
        "lhs_batch": lhs_batch,
        "rhs_batch": rhs_batch,
    }
    return _given(
        **{name: tuple(map(int, each)) for name, each in axes.items()},
        precision=_precision(p),
        preferred_element_type=p.dtype("preferred_element_type"),
    )


_SPATIAL = "DHW"


def _conv_spec(numbers: Any) -> str:
    """``NHWC,HWIO->NHWC`` from the numbers of the axes."""
    rank = len(numbers.lhs_spec) - 2
    letters = _SPATIAL[-rank:] if 0 < rank <= 3 else "".join(chr(ord("a") + i) for i in range(rank))

    def spelled(spec: Any, first: str) -> str:
        found = [""] * len(spec)
        for letter, axis in zip(first + letters, spec, strict=True):
            found[axis] = letter
        return "".join(found)

    return f"{spelled(numbers.lhs_spec, 'NC')},{spelled(numbers.rhs_spec, 'OI')}->{spelled(numbers.out_spec, 'NC')}"


def _conv(p: Parameters) -> Attrs:
    groups, batches = p["feature_group_count"], p["batch_group_count"]
    return {
        "spec": _conv_spec(p["dimension_numbers"]),
        "window_strides": p.ints("window_strides"),
        "padding": _flat(p["padding"]),
        **_given(
            lhs_dilation=_ones(p["lhs_dilation"]),
            rhs_dilation=_ones(p["rhs_dilation"]),
            precision=_precision(p),
            feature_group_count=None if groups == 1 else int(groups),
            batch_group_count=None if batches == 1 else int(batches),
            preferred_element_type=p.dtype("preferred_element_type"),
        ),
    }


def _mode(p: Parameters) -> str:
    mode = p["mode"]
    return jax.lax.GatherScatterMode.from_any(mode).name if mode is not None else "FILL_OR_DROP"


_GATHER = (
    "offset_dims collapsed_slice_dims start_index_map operand_batching_dims"
    " start_indices_batching_dims"
)
_SCATTER = """update_window_dims inserted_window_dims scatter_dims_to_operand_dims operand_batching_dims
    scatter_indices_batching_dims"""


def _numbers(p: Parameters, names: str) -> Attrs:
    numbers = p["dimension_numbers"]
    return {name: tuple(map(int, getattr(numbers, name))) for name in names.split()}


def _gather(p: Parameters) -> Attrs:
    fill = p.get("fill_value")
    return _given(
        **_numbers(p, _GATHER),
        slice_sizes=p.ints("slice_sizes"),
        unique_indices=p["unique_indices"],
        indices_are_sorted=p["indices_are_sorted"],
        mode=_mode(p),
    ) | ({} if fill is None else {"fill": number(fill)})


def scatter(p: Parameters) -> Attrs:
    p.ignore("update_jaxpr", "update_consts")
    return _given(
        **_numbers(p, _SCATTER),
        unique_indices=p["unique_indices"],
        indices_are_sorted=p["indices_are_sorted"],
        mode=_mode(p),
    )


def window(p: Parameters) -> Attrs:
    return {
        "window_dimensions": p.ints("window_dimensions"),
        "window_strides": p.ints("window_strides"),
        "padding": _flat(p["padding"]),
        **_given(
            base_dilation=_ones(p.get("base_dilation") or ()),
            window_dilation=_ones(p.get("window_dilation") or ()),
        ),
    }


def _selecting_window(p: Parameters) -> Attrs:
    return {**_given(select=p["select_prim"].name), **window(p)}


def _pad(p: Parameters) -> Attrs:
    low, high, interior = (
        zip(*p["padding_config"], strict=True) if p["padding_config"] else ((), (), ())
    )
    return {
        "low": _sizes(low),
        "high": _sizes(high),
        "interior": tuple(map(int, interior)),
    }


def _impl(p: Parameters) -> Attrs:
    impl = p["impl"]
    tag = getattr(impl, "tag", impl)
    name = KEYS.get(f"key<{tag}>", getattr(impl, "name", tag))
    if name not in KEYS.values():
        raise TraceError(
            f"random keys of the implementation {name!r} are not supported in a Program, which "
            "supports"
            f" {list(KEYS.values())}"
        )
    return {"impl": name}


def _accuracy(p: Parameters) -> Attrs:
    found = p.get("accuracy")
    if isinstance(found, jax.lax.Tolerance):
        return {"accuracy": f"{found.atol},{found.rtol},{found.ulps}"}
    return {} if found is None else {"accuracy": jax.lax.AccuracyMode(found).name}


def _rounding(p: Parameters) -> Attrs:
    return _given(to_even=p["rounding_method"] == jax.lax.RoundingMethod.TO_NEAREST_EVEN)


def _argreduce(p: Parameters) -> Attrs:
    (axis,) = p["axes"]
    return {"axis": int(axis), "index_dtype": p.dtype("index_dtype")}


def _qr(p: Parameters) -> Attrs:
    p.ignore("use_magma")
    return {"full_matrices": bool(p["full_matrices"]), **_given(pivoting=bool(p["pivoting"]))}


def _svd(p: Parameters) -> Attrs:
    p.ignore("algorithm")
    return {
        "full_matrices": bool(p["full_matrices"]),
        "compute_uv": bool(p["compute_uv"]),
        **_given(subset_by_index=tuple(map(int, p.get("subset_by_index") or ()))),
    }


def _eigh(p: Parameters) -> Attrs:
    p.ignore("algorithm", "implementation")
    return {
        "lower": bool(p["lower"]),
        "sort_eigenvalues": bool(p["sort_eigenvalues"]),
        **_given(subset_by_index=tuple(map(int, p.get("subset_by_index") or ()))),
    }


def _eig(p: Parameters) -> Attrs:
    p.ignore("implementation")
    return {
        name: bool(p[name]) for name in ("compute_left_eigenvectors", "compute_right_eigenvectors")
    }


def _eig_outs(attrs: Attrs) -> str:
    left, right = attrs["compute_left_eigenvectors"], attrs["compute_right_eigenvectors"]
    return "Values" + " Left" * left + " Right" * right


def _triangular(p: Parameters) -> Attrs:
    return _given(
        **{
            n: bool(p[n])
            for n in ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
        }
    )


def _fft(p: Parameters) -> Attrs:
    return {"fft_type": jax.lax.FftType(p["fft_type"]).name, "fft_lengths": p.ints("fft_lengths")}


def _convert(p: Parameters) -> Attrs:
    p.ignore("weak_type")
    return {"new_dtype": p.dtype("new_dtype")}


def _bit_generator(p: Parameters) -> Attrs:
    return {
        "shape": p.ints("shape"),
        "dtype": p.dtype("dtype"),
        "algorithm": jax.lax.RandomAlgorithm(p["algorithm"]).name,
    }


def _approx(p: Parameters) -> Attrs:
    return {
        "k": int(p["k"]),
        "reduction_dimension": int(p["reduction_dimension"]),
        "recall_target": float(p["recall_target"]),
        "is_max_k": bool(p["is_max_k"]),
        "reduction_input_size_override": int(p["reduction_input_size_override"]),
        "aggregate_to_topk": bool(p["aggregate_to_topk"]),
    }


def _constraint(p: Parameters) -> Attrs:
    sharding, free = p["sharding"], p.get("unconstrained_dims", ())
    p.ignore("context_mesh")  # the line where the function was traced
    whole = PartitionSpec.UNCONSTRAINED
    length = max([len(sharding.spec), *(at + 1 for at in free)])
    parts = [*sharding.spec, *(None,) * (length - len(sharding.spec))]
    spec = [whole if at in free else part for at, part in enumerate(parts)]
    return {"mesh_axes": tuple(map(str, sharding.mesh.axis_names)), "spec": spec_of(spec)}


def _collective(p: Parameters) -> Attrs:
    """An op of communication between devices of a mesh: the names of the mesh's axes, and the
    arrays' own axes.
    """
    p.ignore("axis_size")
    axes = p.get("axes", None) or p.get("axis_name")
    dimension = p.get("all_gather_dimension", None) or p.get("scatter_dimension", None)
    perm = p.get("perm", None)
    return {
        "axes": tuple(map(str, axes if isinstance(axes, tuple) else (axes,))),
        **{name: int(p[name]) for name in ("split_axis", "concat_axis") if p.get(name) is not None},
        **({} if perm is None else {"perm": tuple(int(v) for pair in perm for v in pair)}),
        **_given(dimension=int(dimension or 0) or None, tiled=bool(p.get("tiled", False))),
    }


_UNARY = """neg sign floor ceil exp exp2 log expm1 log1p tanh logistic sin cos tan asin acos atan sinh cosh asinh acosh atanh
    sqrt rsqrt cbrt erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e abs real imag square log2 one_minus_square not population_count
    clz is_finite stop_gradient"""
_BINARY = """add sub mul div rem pow max min atan2 nextafter complex igamma igammac zeta polygamma eq ne lt le gt ge and or xor
    eq_to lt_to le_to shift_left shift_right_arithmetic shift_right_logical mulhi igamma_grad_a random_gamma_grad"""

ROWS: dict[str, Row] = {
    **_rows(_UNARY, "X", _accuracy),
    **_rows(_BINARY, "X Y", X="x", Y="y"),
    "add_any": Row("add", "X Y"),
    "conj": Row("conj", "X", attrs=_no_attributes("input_dtype")),
    "copy": Row("copy", "X"),
    "copy_p": Row("copy", "X"),
    "polynomial": Row("polynomial", "X Coeffs*", attrs=_no_attributes("unroll")),
    "integer_pow": Row("integer_pow", "X", attrs=lambda p: {"y": int(p["y"])}),
    "round": Row("round", "X", attrs=_rounding),
    "regularized_incomplete_beta": Row("regularized_incomplete_beta", "A B X"),
    "clamp": Row("clamp", "Min X Max", literals={"Min": "min", "Max": "max"}),
    "select_n": Row("select_n", "Which Cases*"),
    "convert_element_type": Row("convert_element_type", "X", attrs=_convert),
    "bitcast_convert_type": Row(
        "bitcast_convert_type", "X", attrs=lambda p: {"new_dtype": p.dtype("new_dtype")}
    ),
    "reduce_precision": Row(
        "reduce_precision",
        "X",
        attrs=lambda p: {n: int(p[n]) for n in ("exponent_bits", "mantissa_bits")},
    ),
    "optimization_barrier": Row("optimization_barrier", "X*", "Out*"),
    "iota": Row(
        "iota",
        "",
        attrs=lambda p: {
            "dtype": p.dtype("dtype"),
            "shape": p.ints("shape"),
            "dimension": int(p["dimension"]),
        },
    ),
    "empty": Row(
        "empty", "", attrs=lambda p: {"shape": p.ints("shape"), "dtype": p.dtype("dtype")}
    ),
    "empty2": Row("empty", "", attrs=lambda p: {"shape": (), "dtype": p.dtype("dtype")}),
    "broadcast_in_dim": Row(
        "broadcast_in_dim",
        "X",
        attrs=lambda p: {
            "shape": p.ints("shape"),
            "broadcast_dimensions": p.ints("broadcast_dimensions"),
        },
    ),
    "reshape": Row(
        "reshape",
        "X",
        attrs=lambda p: {
            "new_sizes": p.ints("new_sizes"),
            **_given(dimensions=p.ints("dimensions")),
        },
    ),
    "squeeze": Row("squeeze", "X", attrs=lambda p: {"dimensions": p.ints("dimensions")}),
    "expand_dims": Row("expand_dims", "X", attrs=lambda p: {"dimensions": p.ints("dimensions")}),
    "transpose": Row("transpose", "X", attrs=lambda p: {"permutation": p.ints("permutation")}),
    "rev": Row("rev", "X", attrs=lambda p: {"dimensions": p.ints("dimensions")}),
    "concatenate": Row("concatenate", "X*", attrs=lambda p: {"dimension": int(p["dimension"])}),
    "split": Row(
        "split", "X", "Out*", attrs=lambda p: {"sizes": p.ints("sizes"), "axis": int(p["axis"])}
    ),
    "stack": Row("stack", "X*", attrs=lambda p: _given(axis=int(p["axis"]) or None)),
    "unstack": Row("unstack", "X", "Out*", attrs=lambda p: _given(axis=int(p["axis"]) or None)),
    "tile": Row("tile", "X", attrs=lambda p: {"reps": p.ints("reps")}),
    "pad": Row("pad", "X Value", attrs=_pad, literals={"Value": "value"}),
    "slice": Row(
        "slice",
        "X",
        attrs=lambda p: {
            "start_indices": p.ints("start_indices"),
            "limit_indices": p.ints("limit_indices"),
            **_given(strides=_ones(p["strides"] or ())),
        },
    ),
    "dynamic_slice": Row(
        "dynamic_slice", "X Starts*", attrs=lambda p: {"slice_sizes": p.ints("slice_sizes")}
    ),
    "dynamic_update_slice": Row("dynamic_update_slice", "X Update Starts*"),
    "gather": Row("gather", "X Indices", attrs=_gather),
    "sort": Row(
        "sort",
        "X*",
        "Out*",
        attrs=lambda p: {
            "dimension": int(p["dimension"]),
            "is_stable": bool(p["is_stable"]),
            "num_keys": int(p["num_keys"]),
        },
    ),
    "top_k": Row(
        "top_k",
        "X",
        "Out Indices",
        attrs=lambda p: {
            "k": size_of(p["k"]),
            "axis": int(p.get("axis", -1)),
            **({} if p.get("is_stable", True) else {"is_stable": False}),
        },
    ),
    "dot_general": Row("dot_general", "Lhs Rhs", attrs=_dot_general),
    "ragged_dot_general": Row("ragged_dot_general", "Lhs Rhs GroupSizes", attrs=_ragged_dot),
    "conv_general_dilated": Row("conv_general_dilated", "Lhs Rhs", attrs=_conv),
    "fft": Row("fft", "X", attrs=_fft),
    **_rows(
        "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor",
        "X",
        lambda p: {"axes": p.ints("axes")},
    ),
    **_rows("argmax argmin", "X", _argreduce),
    **_rows(
        "cumsum cumprod cummax cummin cumlogsumexp",
        "X",
        lambda p: {"axis": int(p["axis"]), **_given(reverse=bool(p["reverse"]))},
    ),
    **_rows("reduce_window_max reduce_window_min reduce_window_sum", "X", window),
    "select_and_scatter_add": Row("select_and_scatter_add", "Source X", attrs=_selecting_window),
    "select_and_gather_add": Row("select_and_gather_add", "Tangents X", attrs=_selecting_window),
    **{
        name: Row(name.replace("-", "_"), "X Indices Updates", attrs=scatter)
        for name in (
            "scatter",
            "scatter-add",
            "scatter-sub",
            "scatter-mul",
            "scatter-min",
            "scatter-max",
            "scatter_add",
            "scatter_sub",
            "scatter_mul",
            "scatter_min",
            "scatter_max",
        )
    },
    "approx_top_k": Row("approx_top_k", "X", "Out Indices", attrs=_approx),
    "rng_uniform": Row("rng_uniform", "Low High", attrs=lambda p: {"shape": p.ints("shape")}),
    "hessenberg": Row("hessenberg", "X", "Out Taus"),
    "tridiagonal": Row(
        "tridiagonal",
        "X",
        "Out Diagonal OffDiagonal Taus",
        attrs=lambda p: {"lower": bool(p["lower"])},
    ),
    "random_seed": Row("random_seed", "Seeds", attrs=_impl),
    "random_wrap": Row("random_wrap", "X", attrs=_impl),
    "random_unwrap": Row("random_unwrap", "Keys"),
    "random_clone": Row("copy", "X"),
    "random_split": Row("random_split", "Keys", attrs=lambda p: {"shape": p.ints("shape")}),
    "random_fold_in": Row("random_fold_in", "Keys Data"),
    "random_bits": Row(
        "random_bits",
        "Keys",
        attrs=lambda p: {"bit_width": int(p["bit_width"]), "shape": p.ints("shape")},
    ),
    "random_gamma": Row(
        "random_gamma", "Keys Alpha", attrs=lambda p: _given(log_space=bool(p["log_space"]))
    ),
    "rng_bit_generator": Row("rng_bit_generator", "Key", "KeyOut Out", attrs=_bit_generator),
    "cholesky": Row("cholesky", "X", attrs=_no_attributes("symmetrize_input")),
    "lu": Row("lu", "X", "Out Pivots Permutation"),
    "lu_pivots_to_permutation": Row(
        "lu_pivots_to_permutation",
        "Pivots",
        attrs=lambda p: {"permutation_size": int(p["permutation_size"])},
    ),
    "qr": Row("qr", "X", lambda attrs: "Q R Pivots" if attrs.get("pivoting") else "Q R", attrs=_qr),
    "householder_product": Row("householder_product", "A Taus"),
    "eigh": Row("eigh", "X", "Vectors Values", attrs=_eigh),
    "eig": Row("eig", "X", _eig_outs, attrs=_eig),
    "svd": Row("svd", "X", lambda attrs: "S U Vh" if attrs["compute_uv"] else "S", attrs=_svd),
    "triangular_solve": Row("triangular_solve", "A B", attrs=_triangular),
    "schur": Row(
        "schur",
        "X",
        lambda attrs: "T Vectors" if attrs["compute_schur_vectors"] else "T",
        attrs=lambda p: {"compute_schur_vectors": bool(p["compute_schur_vectors"])},
    ),
    "tridiagonal_solve": Row(
        "tridiagonal_solve",
        "Lower Diagonal Upper B",
        attrs=lambda p: _given(perturb_singular=bool(p.get("perturb_singular", False))),
    ),
    "cholesky_update": Row("cholesky_update", "R W"),
    "symmetric_product": Row(
        "symmetric_product", "A C", attrs=lambda p: {n: float(p[n]) for n in ("alpha", "beta")}
    ),
    **_rows("all_gather reduce_scatter all_to_all ppermute axis_index", "X", _collective),
    "axis_index": Row("axis_index", "", attrs=_collective),
    "sharding_constraint": Row("sharding_constraint", "X", attrs=_constraint),
}
ROWS.update(
    {
        name: Row(kind, "X*", "Out*", attrs=_collective)
        for name, kind in {
            "psum": "psum", "psum2": "psum", "psum_invariant": "psum", "pmax": "pmax", "pmin": "pmin", "pvary": "pvary"
        }.items()
    }
)  # fmt: skip

# Primitives that a Program does not have, and what to do instead.
_DEVICES = "it talks to other devices in a way that no op has: trace what one device computes"
_HOST = (
    "it runs Python on the host while the step runs: leave it out, or keep it by strict=False for"
    " this process alone"
)
HOST = frozenset("debug_callback debug_print pure_callback io_callback".split())
_REFERENCE = "a mutable reference is not a value: return what changes as a result"
REFUSED: dict[str, str] = {
    "select_and_scatter": (
        "it selects by a function of its own: use jax.lax.reduce_window and its gradient"
    ),
    "threefry2x32": "it is the inside of a random key: draw by jax.random",
    "custom_lin": "a linearisation was not finished: trace jax.vjp or jax.grad as a whole",
    "pallas_call": "a Pallas kernel is code for one kind of device: give the plain JAX function",
    "call_exported": "an exported function is compiled already: give the function itself",
    "ffi_call": "a foreign function is known to this process alone: call it outside of the program",
    "xla_pmap": (
        "pmap holds the devices of this process: give the function itself, and use"
        " CompiledProgram.with_data_parallel"
    ),
    "custom_partitioning": "its partitioning is Python code: give the function without it",
    **dict.fromkeys(HOST, _HOST),
    **dict.fromkeys(
        "infeed outfeed create_token after_all".split(),
        "it talks to the host: feed and fetch instead",
    ),
    **dict.fromkeys(
        "get swap addupdate mutable_array new_ref freeze ref array_ref".split(), _REFERENCE
    ),
    **dict.fromkeys(
        "pbroadcast pbroadcast_dynamic ragged_all_to_all all_gather_invariant all_gather_reduced"
        " psend precv".split(),
        _DEVICES,
    ),
}
