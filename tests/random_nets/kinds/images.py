"""Images: convolutions, pools, norms of channels, resizing, cutting and moving."""

from __future__ import annotations

from ..draw import Skip, kind
from .dense import quoted


def image(d, last=False, channels=None, rank=4, least=1):
    """NCHW, or channels last; few channels."""

    def good(v):
        c = v.size[-1 if last else 1]
        spatial = v.size[1:-1] if last else v.size[2:]
        return (
            (channels is None or c % channels == 0)
            and c <= 8
            and min(spatial) >= least
            and all(s > 0 for s in v.shape[1:])
        )

    c = (channels or 1) * d.number(1, 3 if channels in (None, 1) else 2)
    spatial = [d.number(max(least, 3), max(least, 6)) for _ in range(rank - 2)]
    return d.floats(
        rank=rank,
        domain=(-10, 10),
        where=good,
        shape=[d.batch] + spatial + [c] if last else [d.batch, c] + spatial,
    )


def pair(d, low, high, n=2):
    return d.number(low, high) if d.chance(0.5) else [d.number(low, high) for _ in range(n)]


def padding(d, last, n=2):
    r = d.r.random()
    if r < 0.4:
        return pair(d, 0, 2, n)
    if r < 0.55:
        return d.one("'SAME'", "'VALID'")
    if r < 0.75:
        return [d.number(0, 2) for _ in range(2 * n)]
    spatial = [[d.number(0, 2), d.number(0, 2)] for _ in range(n)]
    return [[0, 0]] + spatial + [[0, 0]] if last else [[0, 0], [0, 0]] + spatial


@kind(5)
def conv2d(d):
    last = d.chance(0.2)
    groups = d.one(1, 1, 1, 2, 3)
    x = image(d, last, groups)
    c = x.size[-1 if last else 1]
    if d.chance(0.25):
        groups = c
    more = d.args(
        stride=d.one(None, pair(d, 1, 2)), padding=d.one(None, padding(d, last), padding(d, last)), dilation=d.one(None, None, pair(d, 1, 2)),
        groups=groups if groups > 1 or d.chance(0.3) else None, param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act()),
        data_format="'NHWC'" if last else None, use_cudnn=d.one(None, None, False),
    )  # fmt: skip
    return "L.conv2d(%s, %d, %s%s)" % (
        x,
        groups * d.number(1, 2 if groups > 1 else 4),
        pair(d, 1, 3),
        more,
    )


@kind(2)
def conv2d_transpose(d):
    last = d.chance(0.2)
    groups = d.one(1, 1, 1, 2)
    x = image(d, last, groups)
    c = x.size[-1 if last else 1]
    if d.chance(0.2):
        groups = c
    more = d.args(
        stride=d.one(None, pair(d, 1, 2)), padding=None if last else d.one(None, padding(d, last)), dilation=d.one(None, None, pair(d, 1, 2)),
        groups=groups if groups > 1 else None, param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act()),
        data_format="'NHWC'" if last else None, use_cudnn=d.one(None, None, False),
    )  # fmt: skip
    return "L.conv2d_transpose(%s, %d, filter_size=%s%s)" % (
        x,
        groups * d.number(1, 2),
        pair(d, 1, 3),
        more,
    )


@kind(1.2)
def conv3d(d):
    last = d.chance(0.2)
    groups = d.one(1, 1, 2)
    x = image(d, last, groups, 5)
    name = d.one("conv3d", "conv3d", "conv3d_transpose")
    size = "filter_size=" if name != "conv3d" else ""
    more = d.args(
        stride=d.one(None, pair(d, 1, 2, 3)), padding=d.one(None, padding(d, last, 3)), dilation=d.one(None, None, pair(d, 1, 2, 3)),
        groups=groups if groups > 1 else None, param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act()),
        data_format="'NDHWC'" if last else None,
    )  # fmt: skip
    return "L.%s(%s, %d, %s%s%s)" % (name, x, groups * d.number(1, 2), size, pair(d, 1, 3, 3), more)


@kind(4)
def pool2d(d):
    last = d.chance(0.2)
    x = image(d, last)
    more = d.args(
        pool_type=d.one("'max'", "'avg'"), pool_stride=d.one(None, pair(d, 1, 3)), pool_padding=d.one(None, padding(d, last)),
        global_pooling=d.one(None, None, None, True), ceil_mode=d.one(None, True), exclusive=d.one(None, False),
        data_format="'NHWC'" if last else None, use_cudnn=d.one(None, False),
    )  # fmt: skip
    return "L.pool2d(%s, %s%s)" % (x, pair(d, 1, 3), more)


@kind(1)
def pool3d(d):
    last = d.chance(0.2)
    x = image(d, last, rank=5)
    more = d.args(
        pool_type=d.one("'max'", "'avg'"), pool_stride=d.one(None, pair(d, 1, 2, 3)), pool_padding=d.one(None, padding(d, last, 3)),
        global_pooling=d.one(None, None, True), ceil_mode=d.one(None, True), exclusive=d.one(None, False), data_format="'NDHWC'" if last else None,
    )  # fmt: skip
    return "L.pool3d(%s, %s%s)" % (x, pair(d, 1, 3, 3), more)


@kind(1)
def adaptive_pool(d):
    n = d.one(2, 2, 3)
    x = image(d, rank=n + 2, least=2)
    size = [d.number(1, s) for s in x.size[2:]]
    kind_ = d.one("max", "avg")
    return "L.adaptive_pool%dd(%s, %s, '%s'%s)" % (
        n,
        x,
        size,
        kind_,
        d.args(require_index=d.one(None, True) if kind_ == "max" else None),
    )


@kind(3)
def batch_norm(d):
    flat = d.chance(0.3)
    last = not flat and d.chance(0.2)
    x = d.floats(rank=2, shape=[max(d.batch, 2), d.number(1, 4)]) if flat else image(d, last)
    x.known(*range(1, x.rank))
    axes = tuple(i for i in range(x.rank) if i != (x.rank - 1 if last or flat else 1))
    if x.value.std(axes).min() < 0.1 or x.value.size // x.size[-1 if last or flat else 1] < 2:
        raise Skip
    more = d.args(
        act=quoted(d.act()), is_test=d.one(None, None, None, True), momentum=d.one(None, d.real(0.1, 0.9)), epsilon=d.one(None, 1e-3), param_attr=d.attr(),
        bias_attr=d.attr(True), data_layout="'NHWC'" if last else None, use_global_stats=d.one(None, None, None, True),
    )  # fmt: skip
    return "L.%s(%s%s)" % (
        (
            d.one("batch_norm", "batch_norm", "batch_norm", "inplace_abn")
            # it would write the parameter, and 1.8.5's gradient once more
            if not flat
            and not any("%s = L.create_parameter(" % x in n for n in d.net["lines"] + d.pending)
            else "batch_norm"
        ),
        x,
        more,
    )


@kind(1.2)
def group_norm(d):
    last = d.chance(0.2)
    groups = d.one(1, 2)
    x = image(d, last, groups, least=2)
    if x.value.std() < 0.1:
        raise Skip
    return "L.group_norm(%s, %d%s)" % (
        x,
        groups,
        d.args(
            epsilon=d.one(None, 1e-3),
            param_attr=d.attr(),
            bias_attr=d.attr(True),
            act=quoted(d.act()),
            data_layout="'NHWC'" if last else None,
        ),
    )


@kind(1)
def instance_norm(d):
    x = image(d, least=2)
    if x.value.std((2, 3)).min() < 0.1:
        raise Skip
    return "L.instance_norm(%s%s)" % (
        x,
        d.args(epsilon=d.one(None, 1e-3), param_attr=d.attr(), bias_attr=d.attr(True)),
    )


@kind(1)
def lrn(d):
    x = image(d)
    return "L.lrn(%s%s)" % (
        x,
        d.args(n=d.one(None, 3), k=d.one(None, 2.0), alpha=d.one(None, 0.1), beta=d.one(None, 0.5)),
    )


@kind(2)
def resize(d):
    n = d.one(2, 2, 2, 3, 1)
    last = d.chance(0.2)
    x = image(d, last, rank=n + 2)
    spatial = x.size[1:-1] if last else x.size[2:]
    how = {1: ["LINEAR"], 2: ["BILINEAR", "NEAREST", "BICUBIC"], 3: ["TRILINEAR"]}[n]
    out = [d.number(1, 2 * s) for s in spatial]
    formats = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[n]
    more = d.args(
        resample="'%s'" % d.of(how), align_corners=d.one(None, False), align_mode=d.one(None, 0), data_format="'%s'" % formats[last],
        **({"out_shape": out} if d.chance(0.7) else {"scale": d.one(2, 0.5, 1.5)}),
    )  # fmt: skip
    return "L.%s(%s%s)" % (d.one("image_resize", "interpolate"), x, more)


@kind(1)
def pad2d(d):
    last = d.chance(0.2)
    x = image(d, last, least=2)
    return "L.pad2d(%s, %s, mode='%s'%s)" % (
        x, [d.number(0, 1) for _ in range(4)], d.one("constant", "reflect", "edge"), d.args(pad_value=d.one(None, d.real(-1, 1)), data_format="'NHWC'" if last else None),
    )  # fmt: skip


@kind(2)
def rearrange(d):
    n, h, w = d.batch, 2 * d.number(1, 2), 2 * d.number(1, 2)
    four = d.floats(shape=[n, 4, h, w])
    return d.one(
        lambda: "L.pixel_shuffle(%s, 2)" % four,
        lambda: "L.space_to_depth(%s, 2)" % four,
        lambda: "L.shuffle_channel(%s, %d)" % (four, d.one(1, 2, 4)),
        lambda: (
            "L.temporal_shift(%s, %d, %s)"
            % (d.floats(shape=[4, 4, h, w], open=False), d.one(2, 4), d.one(0.25, 0.5))
        ),
        lambda: (
            "L.unfold(%s, %s%s)"
            % (
                four,
                [d.number(1, 2), d.number(1, 2)],
                d.args(
                    strides=d.one(None, 2),
                    paddings=d.one(None, 1, [1, 0, 0, 1]),
                    dilations=d.one(None, None, 1),
                ),
            )
        ),
        lambda: (
            "L.im2sequence(%s, filter_size=%s%s)"
            % (
                four,
                d.one(1, 2, [1, 2]),
                d.args(stride=d.one(None, 2), padding=d.one(None, 1, [0, 1, 1, 0])),
            )
        ),
        lambda: (
            "L.affine_channel(%s, %s, %s%s)"
            % (
                four,
                d.floats(shape=[4], open=False),
                d.floats(shape=[4], open=False),
                d.args(act=d.one(None, "'relu'")),
            )
        ),
        lambda: (
            "L.affine_grid(%s, [%d, 3, %d, %d])" % (d.floats(shape=[n, 2, 3], open=False), n, h, w)
        ),
        lambda: (
            "L.grid_sampler(%s, %s)"
            % (four, d.new([n, h, w, 2], d.float_dtype, ["uniform", -0.93, 0.91], open=False))
        ),
        lambda: "L.polygon_box_transform(%s)" % d.floats(shape=[n, 8, h, w]),
        lambda: (
            "L.similarity_focus(%s, 1, [%d])"
            % (d.floats(shape=[n, 2, h, w], open=False), d.number(0, 1))
        ),
        lambda: (
            "L.image_resize_short(%s, %d)"
            % (d.floats(shape=[n, 2, h, w], open=False), d.number(2, 6))
        ),
        lambda: (
            "N.simple_img_conv_pool(%s, %d, %d, 2, 2%s)"
            % (
                four,
                d.number(1, 3),
                d.number(1, 2),
                d.args(
                    pool_type=d.one(None, "'avg'"),
                    act=d.one(None, "'relu'"),
                    conv_padding=d.one(None, 1),
                ),
            )
        ),
        lambda: (
            "N.img_conv_group(%s, [2, 2], 2%s)"
            % (four, d.args(conv_act=d.one(None, "'relu'"), pool_stride=d.one(None, 2)))
        ),
    )()


@kind(0.6)
def deformable(d):
    n, h = d.batch, d.number(3, 4)
    x = d.floats(shape=[n, 2, h, h], open=False)
    frozen = d.one(True, False)  # 1.8.5 has no gradient of the one without the other's
    offset = d.new(
        [n, 18, h, h], d.float_dtype, ["uniform", -0.9, 0.9], open=False, sg=frozen, how="fluid"
    )
    mask = d.new(
        [n, 9, h, h], d.float_dtype, ["uniform", 0.1, 0.9], open=False, sg=frozen, how="fluid"
    )
    modulated = d.one(True, False)
    return "L.deformable_conv(%s, %s, %s, %d, 3, padding=1, im2col_step=1%s)" % (
        x, offset, mask if modulated else None, d.number(1, 3), d.args(modulated=modulated, param_attr=d.attr(false=False), bias_attr=d.attr(True)),
    )  # fmt: skip
