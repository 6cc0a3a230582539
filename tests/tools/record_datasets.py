"""Record what the real Paddle 1.8.5 reads of small files in the formats of the published data sets.

    python3.8 tests/tools/record_datasets.py

Writes tests/data/datasets_1.8.5.json.gz.
"""

import gzip
import json
import os
import shutil
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, ROOT)

import paddle.dataset as dataset  # noqa: E402
import paddle.dataset.common as common  # noqa: E402

from tests.dataset import dataset_cases as cases  # noqa: E402

home = tempfile.mkdtemp()
cases.write(home)
shutil.copy(os.path.join(home, "wmt16", "wmt16.tar.gz"), home)  # where its get_dict looks
common.DATA_HOME = home
common.md5file = lambda name: "any"  # these are not the published files


def download(url, module_name, md5sum, save_name=None):
    return os.path.join(home, module_name, url.split("/")[-1] if save_name is None else save_name)


common.download = download
dataset.mq2007.__dict__["__initialize_meta_info__"] = lambda: os.path.join(home, "MQ2007")
found = cases.renumbered(cases.read(dataset))
with open(os.path.join(ROOT, "tests", "data", "datasets_1.8.5.json.gz"), "wb") as file:
    file.write(gzip.compress(json.dumps(found).encode(), mtime=0))
