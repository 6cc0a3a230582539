"""Names the parts of nets: convolutions with the ops behind them, residual blocks, attention,
recurrent layers; and joins repeated parts.

The tables give the names of ops. A part that no table knows is named after its ops.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .groups import Group, together

# The names of ops; every other op is named by its type.
CALLED = {
    "conv2d": "conv",
    "conv3d": "conv 3d",
    "depthwise_conv2d": "depthwise conv",
    "conv2d_transpose": "transposed conv",
    "depthwise_conv2d_transpose": "transposed conv",
    "deformable_conv": "deformable conv",
    "conv_general_dilated": "conv",
    "mul": "fc",
    "fc": "fc",
    "matmul": "matmul",
    "matmul_v2": "matmul",
    "dot_general": "dot",
    "lookup_table": "embedding",
    "lookup_table_v2": "embedding",
    "batch_norm": "bn",
    "sync_batch_norm": "bn",
    "layer_norm": "layer norm",
    "instance_norm": "instance norm",
    "group_norm": "group norm",
    "affine_channel": "affine",
    "elementwise_add": "add",
    "elementwise_sub": "subtract",
    "elementwise_mul": "multiply",
    "elementwise_div": "divide",
    "pool2d": "pool",
    "hard_swish": "hard swish",
    "hard_sigmoid": "hard sigmoid",
    "leaky_relu": "leaky relu",
    "dynamic_gru": "GRU",
    "gru": "GRU",
    "gru_unit": "GRU step",
    "dynamic_lstm": "LSTM",
    "lstm": "LSTM",
    "lstmp": "LSTM",
    "cudnn_lstm": "LSTM",
    "lstm_unit": "LSTM step",
    "rnn": "RNN",
    "recurrent": "recurrent loop",
    "while": "while loop",
    "conditional_block": "branch",
    "beam_search": "beam search",
    "linear_chain_crf": "CRF",
    "crf_decoding": "CRF decoding",
    "warpctc": "CTC loss",
    "yolo_box": "YOLO boxes",
    "yolov3_loss": "YOLO loss",
    "prior_box": "prior boxes",
    "density_prior_box": "prior boxes",
    "multiclass_nms": "NMS",
    "multiclass_nms2": "NMS",
    "softmax_with_cross_entropy": "softmax + cross entropy",
    "cross_entropy": "cross entropy",
    "cross_entropy2": "cross entropy",
    "nearest_interp": "upsample",
    "nearest_interp_v2": "upsample",
    "bilinear_interp": "upsample",
    "bilinear_interp_v2": "upsample",
    "reshape2": "reshape",
    "transpose2": "transpose",
    "flatten2": "flatten",
    "flatten_contiguous_range": "flatten",
    "squeeze2": "squeeze",
    "unsqueeze2": "unsqueeze",
    "lookup_sparse_table": "embedding",
    "fill_constant": "constant",
    "fill_constant_batch_size_like": "constant",
    "assign_value": "constant",
    "fill_zeros_like": "constant",
}
CONVS = frozenset({"conv", "conv 3d", "depthwise conv", "transposed conv", "deformable conv"})
WEIGHTED = CONVS | {"fc", "matmul", "dot"}  # ops that begin a unit if they read weights
NORMS = frozenset({"bn", "instance norm", "group norm", "layer norm", "affine"})
ACTIVATIONS = frozenset(
    "relu relu6 hard swish,hard sigmoid,leaky relu,sigmoid,tanh,swish,gelu,prelu,elu,brelu,softmax,mish,silu".replace(
        "relu relu6 hard", "relu,relu6,hard"
    ).split(",")
)
QUIET = frozenset({"dropout", "scale", "cast", "assign", "bias", "gain"})  # left out of names
LAYOUT = frozenset(
    "reshape transpose flatten squeeze unsqueeze shape slice expand stack concat split crop gather"
    " broadcast_in_dim full constant convert_element_type".split()
)
ARITHMETIC = frozenset(
    "add subtract multiply divide sum square sqrt rsqrt pow integer_pow abs exp log sign clip floor max"
    " min mean norm reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any"
    " elementwise_max elementwise_min elementwise_pow equal not_equal less_than less_equal select_n"
    " greater_than greater_equal logical_not logical_and logical_or where one_hot one_hot_v2 range gt ge lt le"
    " eq ne neg rem and or not iota argmax cumsum log1p expm1 reduce_and reduce_or stop_gradient".split()
)
SHAPING = "reshaping"  # the name of parts that only change the layout
SUMS = "arithmetic"
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
LOOPS = frozenset({"recurrent loop", "while loop", "scan", "while", "fori_loop", "branch", "cond"})
JOINED = frozenset({"residual block", "inverted residual", "inception block", "dense layer"})
POOLS = frozenset(
    {"max pool", "average pool", "global max pool", "global average pool", "reduce_mean"}
)
# The name of a part that holds one of these; the first match decides.
ABOUT: tuple[tuple[str, frozenset[str]], ...] = (
    ("loss", frozenset({"softmax + cross entropy", "cross entropy", "CTC loss", "YOLO loss", "CRF", "log_loss",
                        "sigmoid_cross_entropy_with_logits", "square_error_cost", "smooth_l1_loss", "nce",
                        "hierarchical_sigmoid", "ssd_loss", "huber_loss", "kldiv_loss"})),
    ("metrics", frozenset({"accuracy", "auc", "chunk_eval", "edit_distance", "detection_map"})),
    ("NMS", frozenset({"NMS"})),
    ("YOLO boxes", frozenset({"YOLO boxes"})),
    ("prior boxes", frozenset({"prior boxes"})),
    ("anchors", frozenset({"anchor_generator"})),
    ("beam search", frozenset({"beam search", "gather_tree"})),
    ("embeddings", frozenset({"embedding"})),
    ("similarity", frozenset({"cos_sim"})),
    ("mask of lengths", frozenset({"sequence_mask"})),
    ("random numbers", frozenset({"uniform_random", "gaussian_random", "uniform_random_batch_size_like",
                                  "gaussian_random_batch_size_like"})),
    ("values kept by step", frozenset({"write_to_array", "read_from_array"})),
)  # fmt: skip


def called(kind: str) -> str:
    """The name of ops of a type."""
    plain = kind.removeprefix("jax.")
    return CALLED.get(plain, plain)


# Parts in sequence, by their names without sizes; "?" marks optional ones.
SEQUENCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("decoder layer", ("attention", "?layer norm", "attention", "?layer norm", "feed-forward", "?layer norm")),
    ("encoder layer", ("attention", "?layer norm", "feed-forward", "?layer norm")),
    ("inverted residual", ("conv 1×1", "depthwise conv", "?squeeze-excitation", "conv 1×1 + bn")),
    ("separable conv", ("depthwise conv", "?squeeze-excitation", "conv 1×1")),
)  # fmt: skip
LONGEST = 8  # parts of the longest period that is searched
WORDS = 2  # parts in a name


class Namer:
    """Names for the parts that `Structure` found.

    labels: the name of each op, with its size ("conv 3×3"); "bias" for a sum with weights. scales:
    the size of the pictures that each op makes ("56×56"), or "".
    """

    def __init__(self, labels: Sequence[str], scales: Sequence[str]) -> None:
        self.labels = labels
        self.scales = scales

    def named(self, group: Group) -> Group:
        """The group with names for all parts; some parts are joined."""
        if not group.parts:
            return replace(group, name=self.labels[group.ops[0]])
        parts = list(map(self.named, group.parts))
        known = self._recognized(group)
        if group.kind == "parallel":
            parts = self.gathered(_merged(parts)) if len(parts) > SHORT else _merged(parts)
        else:
            parts = _sequences(self._units(parts))
            if not known and len(parts) > SHORT:
                parts = self.gathered(parts)
            parts = _runs(parts)
            if not known and len(parts) > LONG:
                parts = self._by_scale(parts)
        if len(parts) == 1 and not known:
            return parts[0]
        loop = next((self.labels[op] for op in group.ops if self.labels[op] in LOOPS), "")
        name = known or loop or (self._subject(group.ops) if self._is_minor(group) else "")
        kind = "block" if known else group.kind
        return replace(group, name=name or _listed(parts), parts=tuple(parts), kind=kind)

    # -- a part by what is in it -------------------------------------------------------------------

    def _recognized(self, group: Group) -> str:
        """The name of a part that its ops identify, or nothing."""
        names = [_plain(self.labels[op]) for op in group.ops]
        has = Counter(names)
        for cell in RECURRENT:
            if has[cell] == has[f"reversed {cell}"] == 1 and len(names) <= CELL:
                return f"bidirectional {cell}"
        if len(names) > LARGEST or group.kind != "series":
            return ""
        if has["softmax"] and has["matmul"] >= 2:
            return "attention"
        loud = [n for n in names if n not in QUIET and n not in ACTIVATIONS]
        last = loud[-1] if loud else ""
        convs = [self.labels[op] for op, n in zip(group.ops, names, strict=True) if n in CONVS]
        besides = set(loud) - CONVS - NORMS - POOLS - LAYOUT
        if last == "add" and convs and besides <= {"add", "multiply", "fc"}:
            widens = convs[0] == "conv 1×1" and has["depthwise conv"] == 1
            return "inverted residual" if widens else "residual block"
        if last == "add" and has["fc"] == 2 and besides <= {"add", "fc"}:
            return "feed-forward"
        if (
            last in ("multiply", "divide")
            and has["sigmoid"] + has["hard sigmoid"]
            and besides <= {"multiply", "fc"}
        ):
            return "squeeze-excitation" if POOLS & has.keys() else "swish"
        if (
            last in ("multiply", "divide")
            and has["relu6"] == 1
            and not convs
            and besides <= {"multiply", "divide"}
        ):
            return "hard swish"
        if last == "concat" and convs and not besides:
            pools = bool(POOLS & has.keys())
            return "inception block" if pools or len(convs) > 2 else "dense layer"
        return ""

    def _subject(self, ops: Sequence[int]) -> str:
        """The subject of a part without weights, or nothing."""
        names = [_plain(self.labels[op]) for op in ops]
        found = next((name for name, kinds in ABOUT if kinds & set(names)), "")
        return found if len(names) <= TOPIC else ""

    def _is_minor(self, part: Group) -> bool:
        """Whether a part is of no interest in a picture of a net."""
        heavy = WEIGHTED - {"matmul"} | NORMS | POOLS | RECURRENT | ACTIVATIONS | LOOPS
        return part.kind in ("op", "series", "parallel") and not any(
            _plain(self.labels[op]) in heavy for op in part.ops
        )

    # -- parts that follow one another -------------------------------------------------------------

    def _units(self, parts: Sequence[Group]) -> list[Group]:
        """Join an op with weights with the bias, norms and activations behind it, and a residual
        block with its activation.
        """
        made: list[Group] = []
        at = 0
        while at < len(parts):
            first, end = parts[at], at + 1
            plain = _plain(first.name)
            follow = (
                NORMS | ACTIVATIONS | QUIET
                if first.kind == "op" and plain in WEIGHTED
                else ACTIVATIONS
                if first.name in JOINED
                else frozenset()
            )
            while end < len(parts) and parts[end].name in follow | ({"swish"} if follow else set()):
                end += 1
            words = [first.name, *(p.name for p in parts[at + 1 : end] if p.name not in QUIET)]
            name = first.name if follow == ACTIVATIONS else " + ".join(words)
            unit = together(name, parts[at:end])
            made.append(unit)
            at = end
        return made

    def gathered(self, parts: Sequence[Group], apart: bool = False) -> list[Group]:
        """Join consecutive parts that are of no interest; apart: only if they have one subject."""

        def topic(part: Group) -> tuple[bool, str]:
            light = self._is_minor(part)
            return light, self._subject(part.ops) if light and apart else ""

        made: list[Group] = []
        for (light, _), same in itertools.groupby(parts, topic):
            each = list(same)
            ops = [op for part in each for op in part.ops]
            made += [together(self._subject(ops) or _listed(each), each)] if light else each
        return made

    def _by_scale(self, parts: Sequence[Group]) -> list[Group]:
        """Join consecutive parts whose results have one size."""
        made: list[list[Group]] = []
        for part in parts:
            scale = self.scales[part.ops[-1]]
            if made and scale and scale == self.scales[made[-1][-1].ops[-1]]:
                made[-1].append(part)
            else:
                made.append([part])
        return [
            together(f"{_main_name(g)} at {self.scales[g[-1].ops[-1]]}", g) if len(g) > 1 else g[0]
            for g in made
        ]


SHORT = 10  # parts of a series that stay single
# parts; a longer series is split by the sizes of its outputs, and a fuller view is joined
LONG = 16
CELL = 12  # ops of a recurrent layer with its inputs
TOPIC = 16  # ops of a part that is named after one of them
LARGEST = 60  # ops of a part with a name of its own


def _plain(name: str) -> str:
    """A name without the size: ``conv 3×3`` is a conv."""
    head, _, tail = name.rpartition(" ")
    return head if "×" in tail and tail[0].isdigit() else name


def _matches_entry(name: str, wanted: str) -> bool:
    """Whether a part matches an entry of a sequence: by its whole name, or by its first word, which
    may have a size.
    """
    first = name.split(" + ")[0]
    return wanted in (name, first, _plain(first))


def _listed(parts: Iterable[Group]) -> str:
    """A few words for parts without a common name."""
    names = list(dict.fromkeys(p.name.split(", ")[0].removesuffix(" …") for p in parts))
    plain = {n.split(" × ")[0] for n in names}
    if plain <= QUIET | LAYOUT | {SHAPING}:
        return SHAPING if plain - QUIET else ", ".join(names[:WORDS])
    if plain <= QUIET | LAYOUT | ARITHMETIC | {SHAPING, SUMS}:
        return SUMS
    quiet = QUIET | LAYOUT | ARITHMETIC | {SHAPING, SUMS}
    loud = [n for n in names if n.split(" × ")[0] not in quiet]
    return ", ".join(loud[:WORDS]) + (" …" if len(loud) > WORDS else "")


def _main_name(parts: Sequence[Group]) -> str:
    """The name of the part that makes up nearly all of them, else of the first few."""
    largest = max(parts, key=lambda g: len(g.ops))
    half = sum(len(g.ops) for g in parts) / 2
    return largest.name if len(largest.ops) > half else _listed(parts)


def _sequences(parts: list[Group]) -> list[Group]:
    for name, pattern in SEQUENCES:
        made: list[Group] = []
        at = 0
        while at < len(parts):
            end = _match(parts, at, pattern)
            made.append(together(name, parts[at:end]) if end > at else parts[at])
            at = max(end, at + 1)
        parts = made
    return parts


def _match(parts: Sequence[Group], at: int, pattern: Sequence[str]) -> int:
    """The position behind the pattern that begins at part `at`; `at` itself if it does not
    match.
    """
    end = at
    for wanted in pattern:
        there = end < len(parts) and _matches_entry(parts[end].name, wanted.removeprefix("?"))
        if not there and not wanted.startswith("?"):
            return at
        end += there
    return end


# -- one thing n times -----------------------------------------------------------------------------


def _runs(parts: list[Group]) -> list[Group]:
    """Join repeated groups: first those of one name, then equal ones, of any period."""
    same = _repeated(parts, lambda g: g.digest if g.opens else g.name, 1)
    return _repeated(same, lambda g: g.digest, LONGEST)


def _repeated(parts: list[Group], key: Callable[[Group], object], longest: int) -> list[Group]:
    keys = [key(p) for p in parts]
    best: tuple[int, int, int, int] | None = None  # parts covered, -period, -start, times
    for period in range(1, min(longest, len(keys) // 2) + 1):
        run = 0
        for i in range(period, len(keys) + 1):
            if i < len(keys) and keys[i] == keys[i - period]:
                run += 1
                continue
            if run >= period:
                times = run // period + 1
                if times < 3 and period > 1:  # "a, b, a, b" describes it as well
                    run = 0
                    continue
                found = (times * period, -period, -(i - run - period), times)
                best = max(best or found, found)
            run = 0
    if best is None:
        return parts
    covered, period, start = best[0], -best[1], -best[2]
    inside = parts[start : start + covered]
    each = [_period(inside[i : i + period]) for i in range(0, covered, period)]
    left, right = parts[:start], parts[start + covered :]
    return [*_repeated(left, key, longest), _run(each), *_repeated(right, key, longest)]


def _period(parts: list[Group]) -> Group:
    return together(_listed(parts), parts)


def _run(each: Sequence[Group]) -> Group:
    """One group several times. Many are distinguished by the sizes of their outputs."""
    return replace(together(f"{each[0].name} × {len(each)}", each), kind="run")


def placed(parts: Sequence[Group], trains: bool) -> list[Group]:
    """Name unrecognised parts of a net's forward pass by position: before or behind all recognised
    ones. trains: whether a backward pass follows.
    """
    vague = [p.name in (SHAPING, SUMS) for p in parts]
    first = next((i for i, v in enumerate(vague) if not v), len(parts))
    last = max((i for i, v in enumerate(vague) if not v), default=len(parts))

    def name(i: int) -> str:
        if not vague[i] or first <= i <= last:
            return parts[i].name
        if i < first:
            return "input preparation"
        return "loss" if trains else "post-processing"

    return [replace(p, name=name(i)) for i, p in enumerate(parts)]


def _merged(parts: Sequence[Group]) -> list[Group]:
    """Join equal branches into one group, wherever they are."""
    found: dict[int, list[Group]] = {}
    for part in parts:
        found.setdefault(part.digest, []).append(part)
    return [_run(same) if len(same) > 1 else same[0] for same in found.values()]


def numbered(parts: list[Group]) -> list[Group]:
    """Join consecutive parts whose names differ only in the number at the end."""

    def stem(group: Group) -> str:
        return group.name.rstrip("0123456789").rstrip("_")

    made: list[Group] = []
    for _, same in itertools.groupby(parts, stem):
        each = list(same)
        run = replace(together(f"{stem(each[0])} × {len(each)}", each), kind="run")
        made.append(run if len(each) > 1 else each[0])
    return made
