"""fluid.incubate.fleet.utils and paddle.distributed.fleet.utils: a Hadoop file system, local files,
the AUC over workers, programs.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import (
    EnforceNotMet,
    FluidTypeError,
    FluidValueError,
    ParseError,
    UnsupportedError,
)
from fluidjax.incubate.fleet.base import role_maker
from fluidjax.incubate.fleet.parameter_server.distribute_transpiler import fleet
from fluidjax.incubate.fleet.utils import utils
from fluidjax.incubate.fleet.utils.fleet_util import FleetUtil
from fluidjax.incubate.fleet.utils.hdfs import HDFSClient
from fluidjax.paddle.distributed import fs_wrapper
from fluidjax.paddle.distributed.fleet.utils import fs

from ..nets import fresh
from ..tools import record_fleet_utils
from ..tools.record_fleet import local_files
from .test_hdfs import HADOOP

MORE = """  -cat) cat "$root$2" ;;
  -touchz) touch "$root$2" ;;
  *) exit 2 ;;
"""


SETTINGS = {"fs.default.name": "here", "hadoop.job.ugi": "me,secret"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of a Hadoop client that keeps its files in tmp_path/hdfs."""
    binary = tmp_path / "client" / "bin" / "hadoop"
    binary.parent.mkdir(parents=True)
    text = HADOOP.replace("  *) exit 2 ;;\n", MORE).replace(
        'mkdir "$root$2"', 'shift $(($# - 1)); mkdir -p "$root$1"'
    )
    text = text.replace('cp "$2" "$root$3"', 'cp -r "$2" "$root$3"').replace(
        'cp "$root$2" "$3"', 'cp -r "$root$2" "$3"'
    )
    binary.write_text(text.format(root=tmp_path / "hdfs"))
    binary.chmod(0o755)
    (tmp_path / "hdfs").mkdir()
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "client"))
    return str(tmp_path / "client")


def tree(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return str(folder)


def test_a_fleets_hadoop_client(home, tmp_path):
    client = HDFSClient(home, SETTINGS)
    local = tree(tmp_path / "local", {"a; b": "1", "c": "2"})
    client.upload("/data", local, multi_processes=2)
    assert (
        client.is_file("/data/c")
        and not client.is_file("/data")
        and client.cat("/data/c") == "2"
        and client.cat("/data") == ""
    )
    assert sorted(client.lsr("/data", excludes=["/data/c"])) == ["/data/a; b"]
    assert client.upload_dir("/deep/", local + "/") and client.ls("/deep") == ["/deep/local"]
    tree(tmp_path / "got", {"c": "mine"})
    found = client.download("/data", str(tmp_path / "got"), 1)
    assert [Path(f).read_text() for f in sorted(found)] == ["1", "mine"]
    client.upload("/data", str(tmp_path / "local" / "c"), overwrite=True)
    assert client.ls("/data") == ["/data/c"]
    assert [HDFSClient.split_files(list("abcde"), i, 2) for i in (0, 1)] == [
        ["a", "b", "c"],
        ["d", "e"],
    ]
    with pytest.raises(FluidValueError, match="trainer_id is a number from 0"):
        HDFSClient.split_files([], 2, 2)
    with pytest.raises(FluidTypeError, match="multi_processes is a positive number"):
        client.upload("/data", local, 0)
    with pytest.raises(FluidTypeError, match="takes the name of a file"):
        client.cat("-rm")


def test_a_hadoop_client_of_paddle_2(home, tmp_path):
    client = fs.HDFSClient(home, SETTINGS)
    local = tree(tmp_path / "local", {"a": "12", "deep/c": "3"})
    client.upload_dir(local, "/up")
    client.upload(local, "/data")
    assert (
        client.ls_dir("/data") == (["deep"], ["a"])
        and client.list_dirs("/data") == ["deep"]
        and client.ls_dir("/no") == ([], [])
    )
    assert (
        client.is_dir("/up/local/deep")
        and client.is_file("/data/a")
        and client.cat("/data/a") == "12"
        and client.cat("/data") == ""
    )
    assert client.list_files_info(["/data", "/data/deep"]) == [
        {"path": "/data/a", "size": 3},
        {"path": "/data/deep/c", "size": 3},
    ]
    client.touch("/data/new")
    client.touch("/data/new")
    client.mv("/data/new", "/data/newer")
    client.mv("/data/newer", "/data/a", overwrite=True)
    assert (
        client.cat("/data/a") == ""
        and not client.is_exist("/data/newer")
        and client.need_upload_download()
    )
    client.download("/data", str(tmp_path / "got"))
    assert (tmp_path / "got" / "deep" / "c").read_text() == "3"
    for call, error in (
        (lambda: client.touch("/data/a", exist_ok=False), fs.FSFileExistsError), (lambda: client.mv("/no", "/b"), fs.FSFileNotExistsError),
        (lambda: client.mv("/data/a", "/data/deep"), fs.FSFileExistsError), (lambda: client.download("/no", "x"), fs.FSFileNotExistsError),
        (lambda: client.upload("no such", "/data"), fs.FSFileNotExistsError),
        (lambda: client.mv("/no", "/b", test_exists=False), fs.ExecuteError),
        (lambda: client.upload_dir("no such", "/data"), fs.FSFileNotExistsError), (lambda: client.is_exist("-rm"), FluidTypeError),
        (lambda: fs.HDFSClient(home, {}, time_out="1"), FluidTypeError), (lambda: fs.HDFSClient("none", {}).is_dir("/"), FluidValueError),
        (lambda: client.upload(local, "/data", 0), FluidValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()
    client.delete("/data")
    client.delete("/data")
    assert not client.is_exist("/data")


def test_local_files_are_paddles(tmp_path):
    recorded = json.loads((Path(__file__).parents[1] / "data" / "fleet_3.3.1.json").read_text())[
        "local"
    ]
    found = local_files(fs.LocalFS(), str(tmp_path))
    assert [
        f if f != ["mkdirs", "FSFileExistsError"] else ["mkdirs", "raises"] for f in found
    ] == recorded


def test_names_of_1_8(home, tmp_path, monkeypatch):
    local, there = fs_wrapper.LocalFS(), str(tmp_path / "one")
    local.mkdir(there + "/two")
    tree(tmp_path / "one", {"f": "1"})
    assert (local.list_dirs(there), local.ls_dir(there), local.list_dirs("no such")) == (
        ["two"],
        ["f", "two"],
        [],
    )
    local.mv(there + "/f", there + "/g")
    with pytest.raises(FluidValueError, match="is a file"):
        local.mkdir(there + "/g")
    remote = fs_wrapper.BDFS("here", "me,secret")
    remote.mkdir("/data")
    remote.upload(there + "/g", "/data")
    assert (
        remote.stat("/data/g")
        and remote.ls_dir("/data") == ([], ["g"])
        and remote.list_dirs("/") == ["data"]
        and remote.is_dir("/data")
    )
    remote.mv("/data/g", "/data/h")
    remote.download("/data/h", str(tmp_path / "got"))
    assert (
        (tmp_path / "got" / "h").read_text() == "1"
        and remote.need_upload_download()
        and not local.need_upload_download()
    )
    remote.rm("/data/h")
    local.rm(there + "/g")
    local.delete(there)
    local.delete(there)
    remote.delete("/data")
    assert not local.stat(there) and not remote.stat("/data")
    monkeypatch.delenv("HADOOP_HOME")
    with pytest.raises(EnforceNotMet, match="HADOOP_HOME names, which is not set"):
        fs_wrapper.BDFS("here", "me,secret")


def test_the_auc_over_workers(capsys):
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ["127.0.0.1:6170"]))
    util, r, scope = FleetUtil("transpiler"), np.random.RandomState(0), fluid.Scope()
    pos, neg = r.randint(0, 5, (1, 9)), r.randint(0, 5, (1, 9))
    scope.var("p").set(pos)
    scope.var("n").set(neg)
    pairs = [
        (pos[0][i] * neg[0][j], 1.0 if i > j else 0.5 if i == j else 0.0)
        for i, j in itertools.product(range(9), range(9))
    ]
    expected = sum(c * w for c, w in pairs) / sum(c for c, _ in pairs)
    assert util.get_global_auc(scope, "p", "n") == pytest.approx(expected)
    util.print_global_auc(scope, "p", "n", "here:")
    assert util.get_global_auc(scope, "p", "q") is None
    assert capsys.readouterr().out == f"here: global auc = {expected}\nnot found auc bucket\n"
    util.set_zero("n", scope)
    assert not scope.get("n").any() and util.get_global_auc(scope, "p", "n") == 0.5
    for call, error, sentence in (
        (FleetUtil, UnsupportedError, "pslib's servers are not supported"), (lambda: FleetUtil("mpi"), FluidValueError, "not 'mpi'"),
        (lambda: util.save_model, UnsupportedError, "for the tables of pslib"),
        (lambda: util.set_zero("x", scope), FluidValueError, "no value"),
    ):  # fmt: skip
        with pytest.raises(error, match=sentence):
            call()


@pytest.fixture
def model(tmp_path):
    """A copy of the folder that 1.8.5 wrote, and what it said of it."""
    shutil.copytree(record_fleet_utils.FOLDER, tmp_path / "model")
    return str(tmp_path / "model"), json.loads((tmp_path / "model" / "recorded.json").read_text())


def test_a_saved_model_is_what_1_8_says(model, tmp_path):
    folder, recorded = model
    for (shape, values), found in zip(
        recorded["dumped"], record_fleet_utils.dumped(utils, folder), strict=True
    ):
        assert found[0] == shape
        np.testing.assert_allclose(found[1], values, rtol=1e-5, atol=1e-6)
    program = utils.load_program(folder + "/__model__")
    assert utils.load_program(folder + "/__model__.pbtxt", is_text=True).desc == program.desc
    utils.parse_program(program, folder)
    for log in record_fleet_utils.LOGS:
        found, expected = (
            (tmp_path / "model" / log).read_text().splitlines(),
            recorded[log].splitlines(),
        )
        assert sorted(found) == sorted(expected)  # 1.8.5's order of variables is a hash table's
    config = record_fleet_utils.Config(
        dump_model_dir=folder, dump_program_filename="__model__", is_text_dump_program=False, save_params_filename="params",
        feed_config=record_fleet_utils.feeds(folder, False), fetch_config=record_fleet_utils.fetches(), batch_size=3,
        train_prog_path=folder + "/__model__", is_text_train_program=False, pruned_prog_path=folder + "/__model__.pbtxt",
        is_text_pruned_program=True, draw=True, draw_out_name="pruned",
    )  # fmt: skip
    util = FleetUtil("transpiler")
    assert util.check_vars_and_dump(config)[0].shape == (3, 2)
    assert util.check_two_programs(config) and (tmp_path / "model" / "pruned.dot").is_file()
    for change, sentence in (
        (
            {"feeded_vars_dims": [3, 3]},
            r"a row of 'y' has the shape \(2,\) in the program, \(3,\) in feeded_vars_dims",
        ),
        ({"feeded_vars_dims": [3]}, "2 variables to feed, but 1 sizes"),
        (
            {"feeded_vars_filelist": [folder + "/recorded.json"] * 2},
            "recorded.json', line 1: numbers with blanks",
        ),
    ):
        wrong = record_fleet_utils.feeds(folder, False)
        vars(wrong).update(change)
        with pytest.raises(FluidValueError, match=sentence):
            utils.check_saved_vars_try_dump(
                folder, "__model__", False, wrong, record_fleet_utils.fetches(), 1, "params"
            )


def test_programs_in_files(tmp_path):
    with fresh() as (main, _):
        x = fluid.data("x", [None, 3])
        out = fluid.layers.fc(x, 2)
    with fresh() as (other, _):
        fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    utils.save_program(main, str(tmp_path / "model"))
    assert utils.load_program(str(tmp_path / "model")).desc == main.desc
    name = FleetUtil("transpiler").program_type_trans(str(tmp_path), "model", False)
    assert name == "model.pbtxt" and 'type: "mul"' in (tmp_path / name).read_text()
    assert utils.load_program(str(tmp_path / name), is_text=True).desc == main.desc
    assert utils.program_type_trans(str(tmp_path), name, True) == "model.pbtxt.bin"
    assert (tmp_path / "model.pbtxt.bin").read_bytes() == (tmp_path / "model").read_bytes()
    assert utils.check_pruned_program_vars(
        main, main.clone(for_test=True)
    ) and not utils.check_pruned_program_vars(other, main)
    FleetUtil("transpiler").parse_program_proto(str(tmp_path / "model"), False, str(tmp_path))
    assert (
        (tmp_path / "ops.log")
        .read_text()
        .splitlines()[1]
        .startswith("{'type': 'mul', 'input_arg_names'")
    )
    kept = (tmp_path / "vars_persistable.log").read_text().splitlines()
    assert kept[0] == "persistable vars:" and len(kept) == 3 and "'shape': '(3, 2)'" in kept[1]
    assert out.name in (tmp_path / "vars_all.log").read_text()
    FleetUtil("transpiler").draw_from_program_file(
        str(tmp_path / "model"), False, str(tmp_path), "picture"
    )
    assert "digraph" in (tmp_path / "picture.dot").read_text()
    (tmp_path / "bad").write_text("blocks { what")
    (tmp_path / "worse").write_bytes(b"\xff\xfe")
    for bad in ("bad", "worse"):
        with pytest.raises(ParseError, match="holds no program as protobuf's text"):
            utils.load_program(str(tmp_path / bad), is_text=True)
    with pytest.raises(FluidTypeError, match="takes a Program"):
        utils.save_program("model")
