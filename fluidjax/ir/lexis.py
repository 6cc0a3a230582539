"""The words of the printed form: tokens, and how names, types and attribute values are spelled.

text.py prints with these and parse.py reads with them.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

from ..base.dtypes import JAX_ONLY, KINDS
from .desc import BlockRef, Long, VarDesc
from .dims import texts

DTYPES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
DTYPES |= {
    name: name.translate({ord(c): "_" for c in "<>"}) for name in JAX_ONLY if name not in DTYPES
}
DTYPE_OF = {short: name for name, short in DTYPES.items()}
KIND_OF = {name.lower(): name for name in KINDS}

# The defaults of the flags for the first word of a declaration; a flag that differs follows as
# +name or -name.
BASES: dict[str, dict[str, bool]] = {
    "param": {"persistable": True, "is_parameter": True},
    "data": {"is_data": True, "stop_gradient": True, "need_check_feed": True},
    "persist": {"persistable": True},
    "var": {},
}
FLAGS = ("persistable", "stop_gradient", "is_data", "need_check_feed", "is_parameter", "trainable")
FLAG_DEFAULTS = {flag: flag == "trainable" for flag in FLAGS}

# The bits of op_role, which prints as role=Backward|Loss.
ROLES = {
    "Backward": 1,
    "Optimize": 2,
    "RPC": 4,
    "Dist": 8,
    "LRSched": 16,
    "Loss": 256,
    "NotSpecified": 4096,
}
FORWARD = "Forward"

# Attributes that do not change what an op computes: they print after it, in braces.
QUIET = frozenset(
    """op_role op_role_var op_namescope op_callstack op_device use_mkldnn use_cudnn use_quantizer mkldnn_data_type
    is_mkldnn exhaustive_search workspace_size_MB fuse_relu_before_depthwise_conv x_data_format y_data_format
    force_fp32_output scale_x scale_y scale_out use_addto fuse_with_relu fuse_residual_connection fuse_brelu
    fuse_brelu_threshold fuse_relu fuse_activation fuse_alpha fuse_beta Scale_in Scale_out Scale_in_eltwise
    Scale_weights with_quant_attr skip_eager_deletion_vars quantization_type skip_quant activation_bits out_threshold
    quantize_weight_bits out_min out_max""".split()
)

TOKEN = re.compile(
    r"""(?P<space>[ \t]+) | (?P<comment>\#.*)
    | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<quoted>`(?:[^`\\\n]|\\.)*`)
    | (?P<number>-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?[Lf]?|inf|nan)(?![\w.@/$-]))
    | (?P<name>[A-Za-z_@][\w.@/$-]*) | (?P<mark>[()\[\]{}=,:?+*|-]) | (?P<wrong>.)""",
    re.X | re.A | re.S,
)
_BARE = re.compile(r"[A-Za-z_@][\w.@/$-]*", re.A)
RESERVED = frozenset({"True", "False", "None", "inf", "nan", "block"})


def tokens(line: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of everything in a line, spaces too; kind ``wrong`` for a character that starts
    no token.
    """
    return ((match.lastgroup or "wrong", match.group()) for match in TOKEN.finditer(line))


def name_text(name: str) -> str:
    """A name, in backquotes if it would not read as a name."""
    if _BARE.fullmatch(name) and name not in RESERVED:
        return name
    return "`" + string_text(name)[1:-1].replace("`", "\\u0060") + "`"


def string_text(text: str) -> str:
    """A string in double quotes, with JSON's escapes."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def value_text(value: Any) -> str:
    """An attribute value; ``<...>``, which cannot be parsed, for a value that no attribute can
    hold.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))}{',' if len(value) == 1 else ''})"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{int(value)}L" if isinstance(value, Long) else str(int(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, BlockRef):
        return f"block {value.idx}"
    return f"<{type(value).__name__}>"


def float_text(value: float) -> str:
    """The shortest decimal; with an ``f`` if `value` is exactly a float32 and that is shorter."""
    text = float.__repr__(value)
    if len(text) < 12 or to_float32(value) != value:
        return text
    for digits in range(6, 10):
        short = f"{value:.{digits}g}"
        if to_float32(float(short)) == value:
            return short + "f"
    return text


def to_float32(value: float) -> float:
    """`value` rounded to float32; values beyond its range become infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def role_text(value: Any) -> str | None:
    """``Backward|Loss`` for an op_role; None if it is not made of known bits."""
    if type(value) is not int or value < 0 or value & ~sum(ROLES.values()):
        return None
    return "|".join(word for word, bit in ROLES.items() if value & bit) or FORWARD


def attr_text(name: str, value: Any) -> str:
    """``name=value`` of an attribute in braces: role and var stand for op_role and op_role_var."""
    if name == "op_role" and (role := role_text(value)):
        return f"role={role}"
    if (
        name == "op_role_var"
        and isinstance(value, tuple)
        and all(isinstance(v, str) for v in value)
    ):
        return f"var=({', '.join(map(name_text, value))}{',' if len(value) == 1 else ''})"
    return f"{name_text(name)}={value_text(value)}"


def type_text(var: VarDesc) -> str:
    """``f32[13, 1]``: kind (unless it is LOD_TENSOR), dtype, shape, LoD level; ``?`` for unknown
    parts.
    """
    words = [] if var.kind == "LOD_TENSOR" else [var.kind.lower()]
    element = "" if var.dtype is None else DTYPES.get(var.dtype, f"<{var.dtype}>")
    if var.shape is not None:
        element = f"{element or '?'}[{', '.join(texts(var.shape, var.dims))}]"
    if element or not words:
        words.append(element or "?")
    if var.lod_level:
        words.append(f"lod {var.lod_level}")
    return " ".join(words)


def flags_text(var: VarDesc, base: str) -> str:
    """`` +stop_gradient -trainable``: the flags that differ from the defaults of the word
    `base`.
    """
    usual = FLAG_DEFAULTS | BASES[base]
    return "".join(
        f" {'+' if getattr(var, f) else '-'}{f}" for f in FLAGS if getattr(var, f) != usual[f]
    )


def base_of(var: VarDesc) -> str:
    """The word that declares `var`."""
    if var.is_parameter and var.persistable:
        return "param"
    if var.is_data:
        return "data"
    return "persist" if var.persistable else "var"


def printable(text: str, kept: str = "") -> str:
    """`text` with characters that do not print, or that reverse the line, as ``\u202e``; characters
    of `kept` stay.
    """
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() or c in kept else json.dumps(c)[1:-1] for c in text)
    )
