"""``import paddle`` means fluidjax: the import hook, and the messages for names that fluidjax
lacks.

``paddle.fluid`` is fluidjax itself; everything else under ``paddle`` is in fluidjax.paddle, except
the modules in MOVED. A module that scripts import is a proxy of the real one: same attributes, and
an error for missing ones.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..base.absent import NAMES, MissingModule, MissingName, subject
from ..errors import FluidError, near
from ..layers.missing import HINTS as LAYER_HINTS

MOVED = {
    "paddle.batch": "fluidjax.reader",
    "paddle.reader": "fluidjax.reader",
    "paddle.reader.decorator": "fluidjax.reader",
    "paddle.dataset": "fluidjax.dataset",
    "paddle.fluid.core_avx": "fluidjax.core",
    "paddle.fluid.core_noavx": "fluidjax.core",
    "paddle.fluid.dataset": "fluidjax.loaders.slots.datasets",
    "paddle.fluid.data": "fluidjax.input",
    "paddle.fluid.dataloader.batch_sampler": "fluidjax.loaders.samples",
    "paddle.fluid.dataloader.dataset": "fluidjax.loaders.samples",
    "paddle.fluid.dataloader.collate": "fluidjax.loaders.collate",
    "paddle.fluid.layers.core": "fluidjax.core",
    # Paddle 2 has a module for each optimizer
    **{f"paddle.optimizer.{n}": "fluidjax.paddle.optimizer" for n in (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "lamb", "momentum", "optimizer", "rmsprop", "sgd")},
}  # fmt: skip
# where to look for a name missing in another module
_PLACES = (
    "paddle", "paddle.static", "paddle.static.nn", "paddle.nn.functional", "paddle.nn.initializer", "paddle.optimizer",
    "paddle.fluid", "paddle.fluid.layers",
)  # fmt: skip
HINTS = {
    "disable_static": "dynamic mode is not supported; build static programs",
    **dict.fromkeys(
        ("as_strided", "cauchy_", "geometric_", "normal_", "tolist"), "it belongs to dynamic mode"
    ),
    "check_shape": "it is a tool of Paddle's own sources",
    "disable_signal_handler": "no signal handlers are set",
    "margin_cross_entropy": (
        "Paddle has it for the GPU alone; write it with paddle.nn.functional.cross_entropy"
    ),
    "class_center_sample": (
        "Paddle draws centres for classes that several GPUs share; use"
        " fluid.layers.sampled_softmax_with_cross_entropy"
    ),
    "sparse_attention": (
        "Paddle has it for the GPU alone; use paddle.nn.functional.scaled_dot_product_attention"
    ),
    **dict.fromkeys(
        (
            "flash_attention",
            "flash_attn_qkvpacked",
            "flash_attn_unpadded",
            "flash_attn_varlen_qkvpacked",
            "flash_attention_v3_varlen",
            "flashmask_attention",
        ),
        "it is a kernel of GPUs; use paddle.nn.functional.scaled_dot_product_attention",
    ),
    **dict.fromkeys(
        ("rnnt_loss", "RNNTLoss"),
        "transducer losses are not supported; the CTC loss is (paddle.nn.functional.ctc_loss)",
    ),
    **dict.fromkeys(
        ("adaptive_log_softmax_with_loss", "AdaptiveLogSoftmaxWithLoss"),
        "it is not supported; use hsigmoid_loss, or fluid.layers.sampled_softmax_with_cross_entropy",
    ),
    **dict.fromkeys(("moe_permute", "moe_unpermute"), "Paddle has it for the GPU alone"),
    "static_pylayer": "use paddle.static.nn.py_func, whose backward_func gives the gradient",
    "sparse_embedding": (
        "use paddle.static.nn.embedding(is_sparse=True, is_distributed=True), whose table pservers"
        " hold"
    ),
    "LBFGS": "it searches lines by calling a closure, which dynamic mode alone has",
    "split": "a layer is not split over devices; paddle.split cuts tensors",
    "DygraphGeneratorLoader": "it belongs to dynamic mode",
    "LazyGuard": "parameters are made by the startup program, when it is run",
}


def real_name(name: str) -> str:
    """The real module for ``paddle``, ``paddle.x`` or ``paddle.fluid.x``."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        head = ".".join(parts[:n])
        if head in MOVED:
            return ".".join([MOVED[head], *parts[n:]])
    if parts[:2] == ["paddle", "fluid"]:
        return ".".join(["fluidjax", *parts[2:]])
    return "fluidjax." + name


def _exists(real: str) -> bool:
    try:
        return find_spec(real) is not None or real in sys.modules
    except ModuleNotFoundError:  # the parent is missing or not a package
        return real in sys.modules


def _is_module(name: str) -> bool:
    """Whether there is a real module for one of Paddle's names."""
    return subject(name.removeprefix("paddle.")) is None and _exists(real_name(name))


def sentence(module: str, name: str) -> str:
    """The message for a missing ``module.name``: a hint, and the nearest existing name."""
    text = f"fluidjax has no {module}.{name}"
    reason = subject(f"{module}.{name}".removeprefix("paddle."))
    if reason or name in HINTS:
        return f"{text}: {reason or HINTS[name]}"
    if name in LAYER_HINTS or name in NAMES:
        return f"{text}, which {LAYER_HINTS.get(name) or NAMES[name]}"
    elsewhere = [f"{place}.{name}" for place in _PLACES if place != module and _has(place, name)]
    if elsewhere:
        return f"{text}; there is {elsewhere[0]}"
    return text + near(name, public_names(importlib.import_module(real_name(module))), _CLOSE)


def _has(place: str, name: str) -> bool:
    return name in public_names(importlib.import_module(real_name(place)))


def public_names(module: ModuleType) -> list[str]:
    """``__all__``, or the attributes without an underscore."""
    return sorted(
        getattr(module, "__all__", None)
        or (n for n in vars(module) if not n.startswith("_") and n != "annotations")
    )


_CLOSE = 0.75  # least similarity of a name that may be meant


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, ModuleType)


def _attribute(real: ModuleType, path: str, name: str, load: Callable[[str], Any]) -> Any:
    """``path.name``, where `real` is the real module for `path`; load: returns the module for a
    name of Paddle's.
    """
    value = vars(real).get(name)
    if _is_plain(value):
        return value
    full = f"{path}.{name}"
    if full in MOVED or (not name.startswith("_") and _is_module(full)):
        return load(full)
    if name == "__all__":
        return public_names(real)
    try:
        return getattr(real, name)
    except AttributeError as exc:
        if name.startswith("__") or isinstance(exc, FluidError):
            raise  # a FluidError already names what is missing
        raise MissingName(sentence(path, name)) from None


def find(path: str) -> Any:
    """The object for a dotted name of Paddle's such as "paddle.fluid.layers.fc"; install() is not
    needed.

    Raises MissingName, with an alternative, for a name that fluidjax lacks.
    """
    value: Any = importlib.import_module(real_name("paddle"))
    at = "paddle"
    for name in path.split(".")[1:]:
        if isinstance(value, ModuleType):
            value = _attribute(
                value, at, name, lambda full: importlib.import_module(real_name(full))
            )
        elif hasattr(value, name):
            value = getattr(value, name)
        else:
            raise MissingName(
                f"fluidjax has no {at}.{name}" + (f", which {NAMES[name]}" if name in NAMES else "")
            )
        at = f"{at}.{name}"
    return value


looked_up: Counter[str] = Counter()  # how often each attribute of a proxy was looked up


class Face(ModuleType):
    """A module under Paddle's name with the attributes of the real module."""

    def __init__(self, name: str, real: ModuleType) -> None:
        super().__init__(name, real.__doc__)
        vars(self)["_real"] = real

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            looked_up[f"{self.__name__}.{name}"] += 1
        return _attribute(self._real, self.__name__, name, importlib.import_module)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Face) and _is_plain(vars(self._real).get(name)):
            return  # paddle.fluid.data stays the function when the module of that name is imported
        if name.startswith("__") or isinstance(value, Face):
            super().__setattr__(name, value)
        else:
            setattr(self._real, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._real)


class _FaceLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Face(spec.name, importlib.import_module(real_name(spec.name)))

    def exec_module(self, module: ModuleType) -> None:
        """The real module is already loaded; a proxy has no code."""


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] != "paddle":
            return None
        if not _is_module(fullname):
            parent, _, name = fullname.rpartition(".")
            error = MissingModule(_import_sentence(parent, name))
            error.name = parent
            raise error
        return ModuleSpec(fullname, _FaceLoader(), is_package=True)


def _import_sentence(parent: str, name: str) -> str:
    try:
        getattr(importlib.import_module(real_name(parent)), name)
    except FluidError as exc:
        return str(exc)
    except AttributeError:
        pass
    return sentence(parent, name)


_finder = _Finder()
_before: dict[str, ModuleType] = {}


def install() -> None:
    """Make ``import paddle`` and all its submodules find fluidjax, even if Paddle is installed or
    loaded.
    """
    if _finder not in sys.meta_path:
        _before.update(_take())
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undo install, and restore modules that were loaded as paddle before."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        _take()
        sys.modules.update(_before)
        _before.clear()


def _take() -> dict[str, ModuleType]:
    """Remove all modules called paddle from sys.modules, and return them."""
    return {n: sys.modules.pop(n) for n in list(_paddles())}


def _paddles() -> Iterator[str]:
    return (n for n in list(sys.modules) if n.split(".")[0] == "paddle")


__all__ = ["MissingModule", "MissingName", "find", "install", "looked_up", "real_name", "uninstall"]
