"""Record what Paddle 3.3.1 makes of OCR models at several sizes of input (runs on Paddle 3.3.1).

    python tests/tools/record_ocr_sizes.py [FOLDER]

FOLDER (default .cache/models) holds the models. Writes tests/data/models/ocr_sizes.npz:
"det/2x3x64x96" is the output for an input of this shape (`picture`), of the recogniser every 25th
class.
"""

import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {
    "det": "ch_PP-OCRv4_det_infer",
    "rec": "ch_PP-OCRv4_rec_infer",
    "cls": "ch_ppocr_mobile_v2_cls_infer",
}
SHAPES = {
    "det": [(2, 3, 64, 96), (1, 3, 96, 32)],
    "rec": [(2, 3, 48, 40), (1, 3, 48, 128)],
    "cls": [(3, 3, 48, 192), (1, 3, 48, 100)],
}


def picture(name, shape):
    """Cuts of this size out of the reference input, repeated to all sides; each with text in it."""
    n, _, h, w = shape
    with np.load(ROOT / "tests/data/models" / f"ocr_{name}.npz") as reference:
        whole = reference[reference.files[0]][:1]
    whole = np.tile(whole, (1, 1, 2, 2))
    return np.concatenate([whole[:, :, 8 * i : 8 * i + h, 16 * i : 16 * i + w] for i in range(n)])


def kept(name, out):
    return out[..., ::25] if name == "rec" else out


def main(folder=ROOT / ".cache" / "models"):
    os.environ["FLAGS_enable_pir_api"] = "0"
    import paddle.inference as inference

    found = {}
    for name, shapes in SHAPES.items():
        stem = next(pathlib.Path(folder).rglob(NAMES[name] + "/inference.pdmodel"))
        config = inference.Config(str(stem), str(stem.with_suffix(".pdiparams")))
        config.switch_ir_optim(False)
        config.disable_mkldnn()
        predictor = inference.create_predictor(config)
        for shape in shapes:
            (out,) = run(predictor, picture(name, shape))
            found[name + "/" + "x".join(map(str, shape))] = kept(name, out)
            print(name, shape, out.shape)
    np.savez_compressed(ROOT / "tests/data/models/ocr_sizes.npz", **found)


def run(predictor, x):
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


if __name__ == "__main__":
    main(*sys.argv[1:])
