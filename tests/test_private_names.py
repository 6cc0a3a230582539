"""What begins with an underscore stays in its room: no module of another room, and no test, reaches
for it. And names are made of the field's words.

A room is a folder of the package, or a module at its root. Some of Fluid's own names begin with an
underscore; scripts use them, and so may everybody here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "fluidjax"
FLUIDS = frozenset(
    "_optimized_guard _backward_role_guard _lr_schedule_guard _clone_variable _find_var_recursive"
    " _var_recursive _set_attr _remove_attr _rename_input _rename_output _rename_var _remove_op"
    " _remove_var _prepend_op _insert_op _create_block _rollback _prune _prune_with_input"
    " _block_attr _block_attr_id _blocks_attr_ids _to_attr _to_kwargs _global_learning_rate"
    " _learning_rate_map _set_error_clip _repr_html_ _backward _get_dims _is_initialized _dtype"
    " _place _clear _get_float_element _get_double_element _set_float_element _set_double_element"
    " _set_checkpoints _set_role_maker _worker_num _worker_index _is_first_worker"
    " _is_non_distributed _decay_step_counter _learning_rate _get_var _fetch_var"
    " _current_expected_place _clone_var_in_block_ _cuda_synchronize _allreduce _broadcast"
    " _c_allreduce _c_broadcast _c_allgather _c_reducescatter _c_sync_calc_stream"
    " _c_sync_comm_stream _append_grad_suffix_ _strip_grad_suffix_ _as_list"
    " _set_eager_deletion_mode _as_lodtensor _build_strategy _reset _inference_optimize _copy_param_info_from"
    " _copy_dist_param_info_from _slice_ops _is_optimize_op _set_dims _alloc_int _alloc_float"
    " _alloc_double _share_data_with _equals _dygraph_tracer _sync_with_cpp _Scope".split()
)
# words of no field, with what to say in their place
ODD = {
    "told": "description, message, reason", "alike": "equal", "turned": "transposed, rotated",
    "dealt": "assigned, distributed", "whoever": "caller", "unmade": "missing", "enclosed": "nested",
    "dear": "expensive",
}  # fmt: skip
# a key of JSON, an attribute of ops, and a parameter of `grad_of`, which stay
STAYING = frozenset(
    "compat/report.py:told base/progress.py:told ops/table.py:dealt dist/spmd/tables.py:dealt"
    " ops/definition.py:alike ops/derivative.py:alike ops/elementwise.py:alike backward/rules.py:alike"
    .split()
)  # fmt: skip
UNDERSCORED = re.compile(r"(?<!\w)_[^\W_]")  # most files have no such name, and need not be parsed
FILES = sorted(
    [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
)


def room(path: Path) -> str:
    """The folder that a file lies in, below the package; its own name at the root; "" of what is no
    part of the package.
    """
    if PACKAGE not in path.parents:
        return ""
    inside = path.relative_to(PACKAGE).parts
    return inside[0] if len(inside) > 1 else path.stem


def of_itself(node: ast.Attribute) -> bool:
    """Whether it is an attribute of `self` or `cls`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def private(path: Path) -> tuple[frozenset[str], tuple[tuple[int, str], ...]]:
    """The private names that a file makes, and those that it may have from elsewhere, with their
    lines.
    """
    made, used, text = set(), [], path.read_text()
    for node in ast.walk(ast.parse(text)) if UNDERSCORED.search(text) else ():
        if isinstance(node, ast.Attribute):
            if of_itself(node):
                made |= {node.attr} if isinstance(node.ctx, ast.Store) else set()
            else:
                used.append((node.lineno, node.attr))
        elif isinstance(node, ast.Name):
            made |= {node.id} if isinstance(node.ctx, ast.Store) else set()
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (
            node.level or (node.module or "").startswith("fluidjax")
        ):
            used += [(node.lineno, alias.name) for alias in node.names]
    return frozenset(filter(is_private, made)), tuple(
        (line, name) for line, name in used if name.startswith("_")
    )


@cache
def homes() -> dict[str, set[str]]:
    """Private name -> the rooms of the package that define one."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in private(path)[0]:
            found[name].add(room(path))
    return found


def reached(path: Path) -> Iterator[str]:
    """The private names of other rooms that a file uses, with their lines."""
    own, used = private(path)
    for line, name in used:
        there = homes().get(name, ())
        if there and name not in FLUIDS and room(path) not in there and name not in own:
            yield f"line {line}: {name} of {' or '.join(sorted(there))}"


def test_nobody_reaches_into_another_room() -> None:
    found = [f"{path.relative_to(ROOT)}, {names}" for path in FILES for names in reached(path)]
    assert not found, "\n".join(found)


def odd_names(path: Path) -> Iterator[str]:
    """The names in a file that contain one of the odd words, with their lines."""
    text, inside = path.read_text(), path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(ast.parse(text)) if re.search("|".join(ODD), text) else ():
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            for word in set(name.split("_")) & ODD.keys() if isinstance(name, str) else ():
                if f"{inside}:{word}" not in STAYING:
                    yield f"{inside}, line {getattr(node, 'lineno', '?')}: {name}; say {ODD[word]}"


def test_names_are_words_of_the_field() -> None:
    found = [one for path in sorted(PACKAGE.rglob("*.py")) for one in odd_names(path)]
    assert not found, "\n".join(found)


def test_an_odd_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "a.py").write_text("def _told(x):\n    return x.rows_alike\n")
    found = list(odd_names(tmp_path / "a.py"))
    assert [one.split(";")[0] for one in found] == [
        "a.py, line 1: _told",
        "a.py, line 2: rows_alike",
    ]
