"""HDFSClient, by a `hadoop` that keeps a Hadoop file system in a local folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidjax.contrib.utils import HDFSClient, multi_download, multi_upload
from fluidjax.contrib.utils.hdfs_utils import getfilelist
from fluidjax.errors import EnforceNotMet, FluidTypeError, FluidValueError

# hadoop fs -Dkey=value COMMAND ...; paths stand below $root. What fails says so and ends with 1.
HADOOP = """#!/bin/sh
root={root}
echo "$@" >> {root}.log
[ "$1 $2 $3" = "fs -Dfs.default.name=here -Dhadoop.job.ugi=me,secret" ] || exit 2
shift 3
list() {{
  for f in "$1"/*; do
    [ -e "$f" ] || continue
    kind=-; [ -d "$f" ] && kind=d
    echo "${{kind}}rw-r--r-- 1 me us 3 2020-01-0$(head -c1 "$f" 2>/dev/null || echo 1) 10:00 ${{f#$root}}"
    [ "$2" = deep ] && [ -d "$f" ] && list "$f" deep
  done
  return 0
}}
case "$1" in
  -test) test "$2" "$root$3" ;;
  -ls) echo "Found some items"; list "$root$2" ;;
  -lsr) list "$root$2" deep ;;
  -mkdir) mkdir "$root$2" ;;
  -rm) rm "$root$2" ;;
  -rmr) rm -r "$root$2" ;;
  -mv) mv "$root$2" "$root$3" ;;
  -put) cp "$2" "$root$3" ;;
  -get) cp "$root$2" "$3" ;;
  *) exit 2 ;;
esac
"""


@pytest.fixture
def client(tmp_path):
    binary = tmp_path / "client" / "bin" / "hadoop"
    binary.parent.mkdir(parents=True)
    binary.write_text(HADOOP.format(root=tmp_path / "hdfs"))
    binary.chmod(0o755)
    (tmp_path / "hdfs").mkdir()
    return HDFSClient(
        str(tmp_path / "client"), {"fs.default.name": "here", "hadoop.job.ugi": "me,secret"}
    )


def test_files_there_and_back(client, tmp_path, capfd):
    local = tmp_path / "local"
    (local / "deep er").mkdir(parents=True)
    # the first character is the day of its change
    for name, text in {"a": "2", "b": "1", "deep er/c; touch x": "3"}.items():
        (local / name).write_text(text)
    multi_upload(client, "/data", str(local), multi_processes=2)
    said = capfd.readouterr()
    assert (
        "bin/hadoop fs -Dfs.default.name=... -Dhadoop.job.ugi=... -put " in said.out
        and "secret" not in said.out + said.err
    )
    assert (
        client.is_dir("/data")
        and client.is_exist("/data/a")
        and not client.is_dir("/data/a")
        and not client.is_exist("/no")
    )
    assert (
        sorted(client.ls("/data")) == ["/data/a", "/data/b", "/data/deep er"]
        and client.ls("/no") == client.lsr("/no") == []
    )
    assert client.lsr("/data") == ["/data/b", "/data/a", "/data/deep er/c; touch x"]
    assert "/data/deep er" in client.lsr("/data", only_file=False, sort=False)
    shares = [multi_download(client, "/data", str(tmp_path / "got"), i, 2) for i in range(2)]
    assert shares == [
        [str(tmp_path / "got" / n) for n in names] for names in (["b", "deep er/c; touch x"], ["a"])
    ]
    assert [Path(path).read_text() for share in shares for path in share] == ["1", "3", "2"]
    getfilelist(str(tmp_path / "got" / "deep er"))
    assert capfd.readouterr().out.splitlines()[-1] == shares[0][1]
    # what lies there is left
    assert multi_download(client, "/data", str(tmp_path / "got"), 1, 2) == shares[1]
    assert not client.download("/data/a", str(tmp_path / "got")) and not client.download(
        "/data", str(tmp_path)
    )
    (local / "a").write_text("4")
    assert not client.upload("/data", str(local / "a")) and client.upload(
        "/data", str(local / "a"), overwrite=True
    )
    assert (
        client.download("/data/a", str(tmp_path / "got"), overwrite=True)
        and (tmp_path / "got" / "a").read_text() == "4"
    )
    assert client.is_exist("/data/b")  # 1.8.5 deletes the folder
    assert (
        not client.rename("/data/a", "/data/b")
        and client.rename("/data/a", "/data/e")
        and not client.is_exist("/data/a")
    )
    assert client.makedirs("/new") is True and client.makedirs("/new") is None
    assert client.delete("/data") and client.delete("/data") and not client.is_exist("/data")
    multi_upload(client, "/data", str(tmp_path / "nothing here"))
    assert not client.upload("/data", str(local))  # a folder


def test_what_goes_wrong(client, tmp_path):
    for call in (
        lambda: HDFSClient(3, {}),
        lambda: client.ls("-rmr"),
        lambda: client.is_exist(None),
        lambda: multi_upload("c", "/", "."),
    ):
        with pytest.raises(FluidTypeError):
            call()
    with pytest.raises(FluidValueError, match="nowhere/bin/hadoop to run"):
        HDFSClient("nowhere", {}).is_exist("/")
    with pytest.raises(FluidValueError, match="no local file 'gone'"):
        client.upload("/data", "gone")
    for trainer in (2, -1, "0"):
        with pytest.raises(FluidValueError, match="trainer_id is a number from 0"):
            multi_download(client, "/", str(tmp_path), trainer, 2)
    with pytest.raises(FluidValueError, match="multi_processes is a positive number, not 0"):
        multi_upload(client, "/", str(tmp_path), 0)
    (tmp_path / "hdfs" / "bad").mkdir()
    (tmp_path / "hdfs" / "bad" / "f").write_text("1")
    client.download = lambda *_: False
    with pytest.raises(
        EnforceNotMet, match="1 of 1 files of '/bad' did not come, such as '/bad/f'"
    ):
        multi_download(client, "/bad", str(tmp_path / "to"), 0, 1)
    client.upload = lambda *_: False
    with pytest.raises(EnforceNotMet, match=r"1 of 1 files .* did not go"):
        multi_upload(client, "/other", str(tmp_path / "hdfs" / "bad"))
    client.lsr = lambda *_, **__: ["/bad/../../etc/passwd"]
    with pytest.raises(FluidValueError, match="does not lie in it"):
        multi_download(client, "/bad", str(tmp_path / "to"), 0, 1)
