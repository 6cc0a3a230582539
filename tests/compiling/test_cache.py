"""The compilation cache: another process finds what one compiled; whatever happens to the folder,
results are the same.

Each process is a fork that trains a small net for three steps in a new folder and tells what it
saw: losses to the bit, how often JAX found an entry and wrote one, and warnings.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zlib
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.compiling import cache as compile_cache
from fluidjax.compiling.cache import CompileCache
from tests.forked import Popen

FLAGS = ("FLAGS_compilation_cache", "FLAGS_compilation_cache_dir", "FLAGS_compilation_cache_mb")
CODE = """
import json, os, sys, warnings
import jax, numpy as np
import fluidjax as fluid

asked = json.loads(sys.argv[1])
jax.config.update("jax_compilation_cache_dir", None)
seen = {"cache_hits": 0, "cache_misses": 0}
def count(event, **_):
    word = event.rsplit("/", 1)[-1]
    seen[word] = seen.get(word, 0) + 1
jax.monitoring.register_event_listener(count)
exec(asked.get("first", ""))

def net(size, counter=0):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        for _ in range(counter):
            fluid.unique_name.generate("fc")
        x, y = fluid.data("x", [None, size]), fluid.data("y", [None, 1])
        hidden = fluid.layers.dropout(fluid.layers.fc(x, 5, act="tanh"), 0.3)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        fluid.optimizer.Adam(0.1).minimize(loss)
    return main, startup, loss

def losses(main, startup, loss):
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    size = main.global_block().var("x").shape[1]
    feed = {"x": np.arange(4 * size, dtype="float32").reshape(4, size) / 8, "y": np.ones((4, 1), "float32")}
    return [exe.run(main, feed, [loss], scope=scope)[0].item().hex() for _ in range(3)]

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = [losses(*net(3))]
    exec(asked.get("then", ""))
    found = found[0] if found.count(found[0]) == len(found) else found
words = [str(w.message) for w in told if "donated" not in str(w.message)]
print(json.dumps({"losses": found, "seen": seen, "told": words, "dir": jax.config.jax_compilation_cache_dir}))
"""


def start(folder: Path, environ: dict[str, str] | None = None, **asked: str) -> Popen:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("JAX_", "FLAGS_"))}
    ours = {
        "JAX_PLATFORMS": "cpu",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "XDG_CACHE_HOME": str(folder),
    }
    command = [sys.executable, "-c", CODE, json.dumps(asked)]
    return Popen(
        command, env={**kept, **ours, **(environ or {})}, stdout=PIPE, stderr=PIPE, text=True
    )


def ended(process: Popen) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "machine" not in err.lower(), err  # XLA's error about an executable for another CPU
    found: dict[str, Any] = json.loads(out)
    return found


def run(folder: Path, environ: dict[str, str] | None = None, **asked: str) -> dict[str, Any]:
    return ended(start(folder, environ, **asked))


def everything(folder: Path) -> list[Path]:
    """What JAX has written there, whatever it is of."""
    return sorted(p for p in folder.rglob("*") if p.is_file())


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("jit_step_*-cache"))


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Path, dict[Path, bytes], dict[str, Any]]:
    """A folder (JAX's keys depend on where it is), the entries that one process left there, and
    what it saw.
    """
    folder = tmp_path_factory.mktemp("cache")
    seen = run(folder)
    return folder, {path: path.read_bytes() for path in everything(folder)}, seen


@pytest.fixture
def filled(first) -> tuple[Path, dict[Path, bytes], dict[str, Any]]:
    """The same, as that process left it."""
    folder, left, seen = first
    for path in everything(folder):
        path.unlink()
    for path, entry in left.items():
        path.write_bytes(entry)
    return folder, {path: entry for path, entry in left.items() if path in entries(folder)}, seen


RENAMED = """
main, startup, loss = net(3, counter=5)
assert "fc_5.w_0" in main.global_block().vars
exe, scope = fluid.Executor(), fluid.Scope()
exe.run(startup, scope=scope)
hits = seen["cache_hits"]
feed = {"x": np.arange(12, dtype="float32").reshape(4, 3) / 8, "y": np.ones((4, 1), "float32")}
found.append([exe.run(main, feed, [loss], scope=scope)[0].item().hex() for _ in range(3)])
assert seen["cache_hits"] == hits + 1
"""


def test_a_second_process_finds_what_the_first_compiled(filled):
    """And so does the training step of the same program with other names of variables."""
    folder, left, seen = filled
    assert seen["seen"]["cache_misses"] and seen["told"] == []
    second = run(folder, then=RENAMED)
    assert (second["losses"], second["told"]) == (seen["losses"], [])
    assert second["seen"]["cache_hits"] >= 2 and set(left) <= set(entries(folder))


DAMAGE = """
import pathlib
for path in map(pathlib.Path, asked["paths"].split()):
    whole = path.read_bytes()
    for bad in (whole[:len(whole) // 2], b"", bytes(len(whole)), whole[:100] + b"garbage" + whole[107:]):
        path.write_bytes(bad)
        found.append(losses(*net(3)))
        assert len(path.read_bytes()) > 1000
"""


def test_damaged_entries_are_compiled_anew_mended_and_told_once(filled):
    folder, left, seen = filled
    for path in everything(folder):
        path.write_bytes(path.read_bytes()[:-9])
    found = run(folder, then=DAMAGE, paths=" ".join(map(str, left)))
    assert found["losses"] == seen["losses"]
    assert (
        len(found["told"]) == 1
        and "a damaged entry of the compilation cache was removed" in found["told"][0]
    )
    assert all(compile_cache.sound(p.read_bytes()) for p in everything(folder)) and entries(
        folder
    ) == list(left)


LIMIT = (
    "import resource, signal\nsignal.signal(signal.SIGXFSZ,"
    " {0})\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
)


def test_where_nothing_can_be_written_what_is_there_is_used(filled):
    """A full disk, or a folder that is for reading alone: every write fails."""
    folder, _, seen = filled
    before = everything(folder)
    found = run(folder, first=LIMIT.format("signal.SIG_IGN"), then="found.append(losses(*net(3)))")
    assert found["losses"] == seen["losses"] and found["seen"]["cache_hits"] >= 2
    assert len(found["told"]) == 1 and "is not kept in" in found["told"][0]
    assert everything(folder) == before


def test_a_process_that_dies_while_it_writes(filled):
    """It leaves a part of an entry; the next one removes that, says so, and writes a whole one."""
    folder, left, seen = filled
    for path in left:
        path.unlink()
    on = "from fluidjax.compiling.cache import CACHE\nCACHE.turn_on()\n"
    dying = start(folder, first=on + LIMIT.format("signal.SIG_DFL"))
    dying.communicate(timeout=120)
    assert dying.returncode == -signal.SIGXFSZ and [p.stat().st_size for p in entries(folder)] == [
        1000
    ]
    found = run(folder)
    assert (
        found["losses"] == seen["losses"]
        and len(found["told"]) == 1
        and entries(folder) == list(left)
    )


def test_processes_at_once(filled):
    folder, left, seen = filled
    for path in left:
        path.unlink()
    for found in [ended(p) for p in [start(folder) for _ in range(3)]]:
        assert (found["losses"], found["told"]) == (seen["losses"], [])
    assert entries(folder) == list(left) and all(compile_cache.sound(p.read_bytes()) for p in left)


def test_a_variable_turns_it_off(filled, tmp_path):
    found = run(tmp_path, {"FLAGS_compilation_cache": "0"})
    assert found["losses"] == filled[2]["losses"] and found["dir"] is None
    assert list(tmp_path.iterdir()) == [] and found["told"] == []


# -- without a process of their own ----------------------------------------------------------------


class Config:
    """Stands for jax.config."""

    jax_enable_compilation_cache = True
    jax_compilation_cache_dir: str | None = None
    jax_persistent_cache_min_compile_time_secs = 1.0

    def update(self, name: str, value: Any) -> None:
        setattr(self, name, value)


@pytest.fixture
def config(monkeypatch, tmp_path) -> Config:
    """JAX's settings as they are where nobody set one, in a process of a user whose caches are in
    tmp_path.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", raising=False)
    old = fluid.get_flags(FLAGS)
    fluid.set_flags(dict(zip(FLAGS, (True, "", 1024), strict=True)))
    yield Config()
    fluid.set_flags(old)


def test_it_is_on_where_nobody_decided(config, tmp_path):
    folder = CompileCache(config).turn_on()
    assert folder == tmp_path / "fluidjax" / "xla" / compile_cache.version()
    assert config.jax_compilation_cache_dir == str(folder) and list(folder.iterdir()) == []
    assert config.jax_persistent_cache_min_compile_time_secs == compile_cache.WORTH_KEEPING
    # JAX has one now
    assert folder.stat().st_mode & 0o077 == 0 and CompileCache(config).turn_on() is None


@pytest.mark.parametrize("decided", ["flag", "jax", "theirs"])
def test_what_the_user_decided_stays(config, tmp_path, decided):
    if decided == "flag":
        fluid.set_flags({"FLAGS_compilation_cache": False})
    elif decided == "jax":
        config.jax_enable_compilation_cache = False
    else:
        config.jax_compilation_cache_dir = "theirs"
    before = vars(config).copy()
    assert CompileCache(config).turn_on() is None
    assert vars(config) == before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["variable", "setting"])
def test_how_soon_the_user_keeps_something_stays(config, monkeypatch, how):
    if how == "variable":
        monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1.0")
    else:
        config.jax_persistent_cache_min_compile_time_secs = 3.0
    before = config.jax_persistent_cache_min_compile_time_secs
    assert CompileCache(config).turn_on() is not None
    assert config.jax_persistent_cache_min_compile_time_secs == before


def test_a_folder_of_the_user_s_choice(config, tmp_path):
    fluid.set_flags({"FLAGS_compilation_cache_dir": str(tmp_path / "mine")})
    assert CompileCache(config).turn_on() == tmp_path / "mine" / compile_cache.version()


def refused(config: Config, reason: str) -> None:
    """One sentence, at the first use alone, and no cache."""
    cache = CompileCache(config)
    with pytest.warns(RuntimeWarning, match=reason) as caught:
        assert cache.turn_on() is None
    assert cache.turn_on() is None and len(caught) == 1 and config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made(config, tmp_path):
    (tmp_path / "fluidjax").write_text("a file")
    refused(config, "nothing that is compiled is kept for the next process: .*fluidjax")


def test_a_user_without_a_home(config, monkeypatch):
    def lost() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lost)
    refused(config, "home")


def test_a_folder_into_which_others_may_write_is_not_used(config, tmp_path):
    root = tmp_path / "fluidjax" / "xla"
    root.mkdir(parents=True)
    root.chmod(0o777)
    refused(config, "others may write")
    fluid.set_flags({"FLAGS_compilation_cache_dir": str(root)})  # named by the user, who knows why
    assert CompileCache(config).turn_on() is not None


def test_a_folder_of_another_user_is_not_used(config, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    refused(config, "belongs to another user")


def test_the_oldest_entries_go_when_there_are_too_many(tmp_path):
    for i in range(10):
        path = tmp_path / f"version-{i % 2}" / f"jit_step_{i}-cache"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (i, i))
    compile_cache.bound(tmp_path, 1000)
    assert len(entries(tmp_path)) == 10
    compile_cache.bound(tmp_path, 999)
    assert sorted(p.stat().st_mtime for p in entries(tmp_path)) == [3, 4, 5, 6, 7, 8, 9][-7:]
    compile_cache.bound(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []  # folders of versions that are gone too


@pytest.mark.parametrize("other", [
    {"jax.__version__": "0.99"}, {"jaxlib.__version__": "0.99"}, {"sys.version_info": (3, 99)},
    {"platform.machine": lambda: "pdp11"}, {"fluidjax.compiling.cache._instructions": lambda: ["flags: none"]},
    {"os.sched_getaffinity": lambda pid: set(range(999))},
])  # fmt: skip
def test_another_version_or_machine_has_a_folder_of_its_own(monkeypatch, other):
    here = compile_cache.version()
    assert here == compile_cache.version()
    for name, value in other.items():
        monkeypatch.setattr(name, value)
    assert compile_cache.version() != here


def test_sound():
    whole = zlib.compress(bytes(1000))
    assert compile_cache.sound(whole)
    assert not any(map(compile_cache.sound, (b"", whole[:-1], b"PK" + whole, bytes(9))))


def test_labels_tell_programs_apart():
    assert (
        compile_cache.label(["mul", "relu"])
        == compile_cache.label(iter(["mul", "relu"]))
        != compile_cache.label(["relu", "mul"])
    )


def test_where_the_user_has_caches(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert compile_cache.user_folder() == Path("/somewhere")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", partial(Path, "/me"))
    for system, where in {"linux": "/me/.cache", "darwin": "/me/Library/Caches"}.items():
        monkeypatch.setattr(sys, "platform", system)
        assert compile_cache.user_folder() == Path(where)
