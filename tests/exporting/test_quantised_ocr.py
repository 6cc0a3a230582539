"""PP-OCRv4's reader of lines, quantised after training: what it reads of rendered lines of known
text, how large its file is.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.contrib.slim.quantization import PostTrainingQuantization

from .beside import run, session
from .test_models import FETCHED, OCR

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
pytest.importorskip("PIL", reason="pip install pillow")

MODEL = FETCHED / OCR["rec"]
WORDS = (
    "invoice total amount street number market copper window garden yellow summer bridge harbour silver"
    " engine paper museum bakery ticket platform station coffee orange quarter minute library doctor"
    " kitchen pencil mountain river planet signal letter camera battery record winter school office"
).split()
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CODES = (  # of these letters among the model's 6,625 classes
    26, 93, 25, 94, 632, 631, 933, 29, 27, 1109, 1221, 3588, 4244, 1220, 4381, 1219, 5128, 425, 3587, 2697, 5193,
    3506, 3639, 3589, 4741, 1310, 4731, 5127, 1217, 1381, 4497, 5405, 5033, 5200, 1218, 4136, 4544, 3463, 4902, 5171,
    3332, 4389, 4548, 3539, 3538, 5493, 4849, 2710, 5233, 4547, 4245, 4545, 2156, 1958, 1033, 3333, 1034, 4922, 3537,
    2993, 4546, 3316,
)  # fmt: skip
READ = dict(zip(CODES, LETTERS, strict=True))
SPACE = 6624


def lines(count: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Pictures [count, 3, 48, 320] of words and numbers, in inks, sizes, with noise; their texts
    without spaces.
    """
    from PIL import Image, ImageDraw, ImageFont

    draw, noise = random.Random(seed), np.random.RandomState(seed)
    pictures, texts = [], []
    for _ in range(count):
        font = ImageFont.load_default(draw.randint(22, 32))
        text = ""
        while True:
            word = draw.choice(WORDS)
            word = draw.choice(
                [word, word.capitalize(), word.upper(), str(draw.randint(10, 99999))]
            )
            if font.getlength(f"{text} {word}") > 290:
                break
            text = f"{text} {word}".strip()
        paper, ink = ((draw.randint(*ends),) * 3 for ends in ((150, 255), (0, 90)))
        image = Image.new("RGB", (320, 48), paper)
        ImageDraw.Draw(image).text(
            (draw.randint(4, 12), 24), text, fill=ink, font=font, anchor="lm"
        )
        values = np.asarray(image, "float32").transpose(2, 0, 1) / 127.5 - 1
        values += noise.standard_normal(values.shape) * draw.random() * 0.08
        pictures.append(values.clip(-1, 1).astype("float32"))
        texts.append(text.replace(" ", ""))
    return np.stack(pictures), texts


def text(classes: np.ndarray) -> str:
    """What the classes of the frames of a line say: repeated ones once, 0 is none."""
    kept = [c for i, c in enumerate(classes) if c not in (0, SPACE) and (i == 0 or c != classes[i - 1])]  # fmt: skip
    return "".join(READ.get(int(c), "?") for c in kept)


def distance(a: str, b: str) -> int:
    """Letters to insert, leave out or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def accuracy(path: Path, pictures: np.ndarray, texts: list[str]) -> tuple[float, float]:
    """The part of the letters, and of the lines, that are read as they were written."""
    found: list[str] = []
    for start in range(0, len(texts), 50):
        (given,) = run(path, {"x": pictures[start : start + 50]}).values()
        found += [text(row) for row in given.argmax(-1)]
    wrong = sum(distance(a, b) for a, b in zip(found, texts, strict=True))
    whole = sum(a == b for a, b in zip(found, texts, strict=True))
    return 1 - wrong / sum(map(len, texts)), whole / len(texts)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The model as ONNX, and with weights of whole numbers: all data are floats, and so are the
    weights of at most 4,096 numbers, which the first layers have and which save next to nothing.
    """
    if not (MODEL / "inference.pdiparams").is_file():
        pytest.skip("make models fetches them")
    folder, names = tmp_path_factory.mktemp("ocr"), ("inference.pdmodel", "inference.pdiparams")
    kinds = ["conv2d", "depthwise_conv2d", "mul", "matmul", "matmul_v2"]
    some, _ = lines(8, 1)
    with fluid.scope_guard(fluid.Scope()):
        program, _, _ = fluid.io.load_inference_model(str(MODEL), fluid.Executor(), *names)
        block = program.global_block()
        read = {n for op in block.ops if op.type in kinds for n in op.input_arg_names}
        held = [block.var(n) for n in read if block.var(n).persistable]
        made = PostTrainingQuantization(
            fluid.Executor(), model_dir=str(MODEL), model_filename=names[0], params_filename=names[1],
            sample_generator=lambda: ((x,) for x in some), batch_size=8, algo="abs_max", quantizable_op_type=[],
            weight_only_op_type=kinds, skip_tensor_list=[v.name for v in held if np.prod(v.shape) <= 4096],
        )  # fmt: skip
        made.quantize()
        made.save_quantized_model(str(folder / "int8"))
    whole, small = folder / "float.onnx", folder / "int8.onnx"
    large = fluid.export(MODEL, whole)
    assert large.size > 3.5 * fluid.export(folder / "int8", small).size
    return whole, small


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "seed"),
    [
        (100, 2),
        *(pytest.param(400, n, marks=pytest.mark.thorough) for n in (2, 101, 102)),
    ],
)
def test_it_reads_as_well_in_a_file_of_a_quarter(
    count: int, seed: int, files: tuple[Path, Path]
) -> None:
    """Within 1 % of the letters and of the lines that the float model reads rightly."""
    onnx.checker.check_model(str(files[1]), full_check=True)
    nodes = [n.op_type for n in onnx.load(str(files[1])).graph.node]
    assert nodes.count("DequantizeLinear") > 20
    session(files[1])
    pictures, texts = lines(count, seed)
    letters, whole = accuracy(files[0], pictures, texts)
    assert letters > 0.97 and whole > 0.8
    found = accuracy(files[1], pictures, texts)
    assert found[0] >= letters - 0.01 and found[1] >= whole - 0.01
