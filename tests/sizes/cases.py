"""Programs in which fed values decide sizes; the same in Paddle 1.8.5 and here, so Python 3.8 must
read this.

A case is a function of `fluid` that builds a program and returns what to fetch, and the feeds to
run it with in order. What it differentiates is fetched as "x@GRAD". Feeds that no Fluid program
should be given (negative, zero, too large) are cases too.
"""

import collections

import numpy as np

Case = collections.namedtuple("Case", "build feeds")
CASES = collections.OrderedDict()


def case(*feeds):
    """Declare a case by its function; `feeds` are dicts."""

    def declare(build):
        CASES[build.__name__] = Case(build, feeds)
        return build

    return declare


def i32(*values):
    return np.array(values, "int32")


def i64(*values):
    return np.array(values, "int64")


def ramp(*shape):
    """Distinct numbers of both signs, none a tie."""
    size = int(np.prod(shape))
    return ((np.arange(size) * 7 % size - size / 3.0) / 4.0).astype("float32").reshape(shape)


def given(fluid, name, shape, dtype="int32"):
    return fluid.data(name, shape, dtype)


def source(fluid, *shape):
    x = fluid.data("x", list(shape), "float32")
    x.stop_gradient = False
    return x


def with_gradient(fluid, out, x):
    """Fetches of `out` and of the gradient of the sum of its squares."""
    loss = fluid.layers.reduce_sum(fluid.layers.square(out))
    (grad,) = fluid.gradients(loss, x)
    return [out, grad]


def of_both(fluid, parts, x):
    """Fetches of two parts and of the gradient of what both make."""
    losses = [fluid.layers.reduce_sum(fluid.layers.square(p)) for p in parts]
    (grad,) = fluid.gradients(fluid.layers.sums([losses[0], fluid.layers.scale(losses[1], 3.0)]), x)
    return [*parts, grad]


# -- constants and draws ---------------------------------------------------------------------------


@case({"n": i64(2, 3)}, {"n": i64(4, 1)}, {"n": i64(2, 3)}, {"n": i64(0, 3)}, {"n": i64(-2, 3)})
def fill_constant_of_a_tensor(fluid):
    n = given(fluid, "n", [2], "int64")
    return [fluid.layers.fill_constant(n, "float32", 1.5)]


@case({"n": i32(2)}, {"n": i32(5)}, {"n": i32(-1)})
def fill_constant_of_a_list(fluid):
    return [fluid.layers.fill_constant([3, given(fluid, "n", [1])], "int64", 7)]


@case({"n": i64(2), "x": ramp(2, 3)}, {"n": i64(3), "x": ramp(2, 3)})
def a_size_computed_from_feeds(fluid):
    n, x = given(fluid, "n", [1], "int64"), source(fluid, 2, 3)
    rows = fluid.layers.cast(fluid.layers.shape(x), "int64")[0] * n + 1
    return [fluid.layers.fill_constant([fluid.layers.cast(rows, "int32"), 2], "float32", 0.5), rows]


@case({"n": i64(2, 3)}, {"n": i64(70, 2)}, {"n": i64(-1, 3)})
def uniform_random_of_a_tensor(fluid):
    return [fluid.layers.shape(fluid.layers.uniform_random(given(fluid, "n", [2], "int64")))]


@case({"n": i32(2)}, {"n": i32(-2)})
def uniform_random_of_a_list(fluid):
    return [fluid.layers.shape(fluid.layers.uniform_random([given(fluid, "n", [1]), 4]))]


@case({"n": i64(2, 3)}, {"n": i64(5, 1)}, {"n": i64(-1, 3)})
def gaussian_random_of_a_tensor(fluid):
    return [fluid.layers.shape(fluid.layers.gaussian_random(given(fluid, "n", [2], "int64")))]


@case(
    {"n": i64(0), "e": i64(5), "s": i64(2)},
    {"n": i64(5), "e": i64(-1), "s": i64(-3)},
    {"n": i64(5), "e": i64(1), "s": i64(2)},
)
def range_of_feeds(fluid):
    n, e, s = (given(fluid, name, [1], "int64") for name in "nes")
    return [fluid.layers.range(n, e, s, "int64")]


@case(
    {"e": np.array([1.05], "float32")},
    {"e": np.array([70.0], "float32")},
    {"e": np.array([-1.0], "float32")},
)
def range_of_floats(fluid):
    return [fluid.layers.range(0.0, given(fluid, "e", [1], "float32"), 0.1, "float32")]


@case({"n": i32(5)}, {"n": i32(1)}, {"n": i32(0)}, {"n": i32(-3)})
def linspace_of_a_number(fluid):
    return [fluid.layers.linspace(-1.0, 2.0, given(fluid, "n", [1]), "float32")]


@case({"x": i64(3, 1, 2)}, {"x": i64(5, 5, 0)}, {"x": i64(0, 0, 0)})
def mask_to_the_longest(fluid):
    return [fluid.layers.sequence_mask(given(fluid, "x", [3], "int64"), dtype="float32")]


@case(
    {"x": i64(3, 1), "n": i32(4)},
    {"x": i64(3, 1), "n": i32(2)},
    {"x": i64(3, 1), "n": i32(0)},
    {"x": i64(3, 1), "n": i32(-2)},
)
def mask_to_a_tensor(fluid):
    return [
        fluid.layers.sequence_mask(given(fluid, "x", [2], "int64"), given(fluid, "n", [1]), "int32")
    ]


@case({"x": np.arange(80, dtype="int64") % 9}, {"x": np.arange(80, dtype="int64") % 5})
def mask_of_many_lengths(fluid):
    return [fluid.layers.sequence_mask(given(fluid, "x", [80], "int64"), dtype="int32")]


@case(
    {"ids": np.array([[1], [0], [2]], "int64"), "n": i32(4)}, {"ids": np.array([[1], [0], [2]], "int64"), "n": i32(3)},
    {"ids": np.array([[1], [0], [2]], "int64"), "n": i32(0)}, {"ids": np.array([[1], [0], [2]], "int64"), "n": i32(-1)},
    {"ids": np.array([[1], [0], [2]], "int64"), "n": i32(2)},
)  # fmt: skip
def one_hot_of_a_depth(fluid):
    ids, n = given(fluid, "ids", [3, 1], "int64"), given(fluid, "n", [1])
    return [fluid.layers.one_hot(ids, n)]


@case({"ids": np.array([[1, 0], [2, 2]], "int64"), "n": i32(4)})
def one_hot_v2_of_a_depth(fluid):
    return [fluid.one_hot(given(fluid, "ids", [2, 2], "int64"), given(fluid, "n", [1]))]


# -- shapes ----------------------------------------------------------------------------------------


@case(
    *[
        {"x": ramp(4, 6), "n": n}
        for n in (i32(3, 8), i32(2, -1), i32(0, 6), i32(-1, -1), i32(5, 5), i32(-2, 6))
    ]
)
def reshape_to_a_tensor(fluid):
    x = source(fluid, 4, 6)
    return with_gradient(fluid, fluid.layers.reshape(x, given(fluid, "n", [2])), x)


@case(*[{"x": ramp(4, 6), "n": i32(n)} for n in (3, 8, 24, 5, -1)])
def reshape_to_a_list(fluid):
    x = source(fluid, 4, 6)
    return with_gradient(fluid, fluid.layers.reshape(x, [given(fluid, "n", [1]), -1]), x)


@case(*[{"x": ramp(2, 3), "n": i32(*n)} for n in ((2, 1), (1, 3), (0, 1), (-1, 2))])
def expand_by_a_tensor(fluid):
    x = source(fluid, 2, 3)
    return with_gradient(fluid, fluid.layers.expand(x, given(fluid, "n", [2])), x)


@case(*[{"x": ramp(2, 3), "n": i32(n)} for n in (1, 4, 0, -2)])
def expand_by_a_list(fluid):
    x = source(fluid, 2, 3)
    return with_gradient(fluid, fluid.layers.expand(x, [2, given(fluid, "n", [1])]), x)


@case(*[{"x": ramp(2, 3), "n": i32(n)} for n in (0, 1, 2, -1, 5)])
def unsqueeze_at_a_tensor(fluid):
    x = source(fluid, 2, 3)
    return with_gradient(fluid, fluid.layers.unsqueeze(x, given(fluid, "n", [1])), x)


@case(*[{"x": ramp(2, 4), "n": i32(n)} for n in (0, 1, -1, 2)])
def split_at_an_axis(fluid):
    x = source(fluid, 2, 4)
    return of_both(fluid, fluid.layers.split(x, 2, given(fluid, "n", [1])), x)


@case(*[{"x": ramp(2, 6), "n": i32(n)} for n in (1, 4, 0, 7, -2)])
def split_into_sections(fluid):
    x = source(fluid, 2, 6)
    return of_both(fluid, fluid.layers.split(x, [given(fluid, "n", [1]), -1], 1), x)


@case(*[{"x": ramp(2, 2), "n": i32(n)} for n in (0, 1, -1, 2)])
def concat_along_an_axis(fluid):
    x = source(fluid, 2, 2)
    return with_gradient(
        fluid, fluid.layers.concat([x, fluid.layers.scale(x, 2.0)], given(fluid, "n", [1])), x
    )


@case(*[{"x": ramp(2, 5), "n": i32(n)} for n in (2, 5, 1, 0, 6, -1)])
def top_k_of_a_number(fluid):
    x = source(fluid, 2, 5)
    return list(fluid.layers.topk(x, given(fluid, "n", [1])))


# -- slices ----------------------------------------------------------------------------------------


@case(*[{"x": ramp(4, 5), "s": i32(*s), "e": i32(*e)} for s, e in (
    ((0, 1), (2, 3)), ((1, -3), (3, 100)), ((-4, 0), (-1, 5)), ((2, 0), (2, 5)), ((5, 0), (9, 5)), ((-9, 0), (2, 1)),
)])  # fmt: skip
def slice_between_tensors(fluid):
    x = source(fluid, 4, 5)
    s, e = given(fluid, "s", [2]), given(fluid, "e", [2])
    return with_gradient(fluid, fluid.layers.slice(x, [0, 1], s, e), x)


@case(*[{"x": ramp(4, 5), "s": i32(s)} for s in (0, 2, -2, 3, 4, -7)])
def slice_from_a_list(fluid):
    x = source(fluid, 4, 5)
    return with_gradient(
        fluid, fluid.layers.slice(x, [0, 1], [given(fluid, "s", [1]), 1], [4, 3]), x
    )


@case(*[{"x": ramp(4, 6), "s": i32(*s), "e": i32(*e), "t": i32(*t)} for s, e, t in (
    ((0, 1), (4, 6), (1, 2)), ((3, 5), (-10, 0), (-1, -2)), ((1, -5), (4, -1), (2, 1)), ((0, 0), (4, 6), (0, 1)), ((3, 0), (1, 6), (1, 1)),
)])  # fmt: skip
def strided_slice_of_tensors(fluid):
    x = source(fluid, 4, 6)
    s, e, t = (given(fluid, n, [2]) for n in "set")
    return with_gradient(fluid, fluid.layers.strided_slice(x, [0, 1], s, e, t), x)


@case(*[{"x": ramp(4, 6), "e": i32(e), "t": i32(t)} for e, t in ((6, 2), (3, 1), (-1, 3), (0, 1))])
def strided_slice_of_lists(fluid):
    x = source(fluid, 4, 6)
    e, t = given(fluid, "e", [1]), given(fluid, "t", [1])
    return with_gradient(fluid, fluid.layers.strided_slice(x, [1], [0], [e], [t]), x)


@case(
    *[
        {"x": ramp(4, 6), "s": i32(s), "n": i32(n)}
        for s, n in ((0, 2), (1, 6), (-3, -1), (2, 100), (3, 3))
    ]
)
def indexed_by_variables(fluid):
    x = source(fluid, 4, 6)
    return with_gradient(fluid, x[:, given(fluid, "s", [1]) : given(fluid, "n", [1])], x)


@case(*[{"x": ramp(4, 6), "s": i32(s), "n": i32(n)} for s, n in ((0, 2), (3, 6), (-1, -1), (1, 1))])
def one_row_and_a_range(fluid):
    x = source(fluid, 4, 6)
    return with_gradient(fluid, x[given(fluid, "s", [1]), 0 : given(fluid, "n", [1])], x)


@case(*[{"x": ramp(4, 6), "n": i32(*n)} for n in ((2, 3), (4, 6), (-1, 3), (5, 3), (0, 3))])
def crop_to_a_tensor(fluid):
    x = source(fluid, 4, 6)
    return with_gradient(fluid, fluid.layers.crop_tensor(x, given(fluid, "n", [2]), [0, 0]), x)


@case(
    *[
        {"x": ramp(4, 6), "n": i32(n), "s": i32(s)}
        for n, s in ((2, 1), (3, 0), (2, 2), (3, 2), (-1, 1))
    ]
)
def crop_to_a_list(fluid):
    x = source(fluid, 4, 6)
    shape, offsets = [given(fluid, "n", [1]), 3], [given(fluid, "s", [1]), 2]
    return with_gradient(fluid, fluid.layers.crop_tensor(x, shape, offsets), x)


@case(*[{"x": ramp(1, 2, 3, 3), "n": i32(*n)} for n in ((1, 0, 2, 1), (0, 0, 0, 0), (0, -1, 0, 0))])
def pad2d_by_a_tensor(fluid):
    x = source(fluid, 1, 2, 3, 3)
    return with_gradient(fluid, fluid.layers.pad2d(x, given(fluid, "n", [4]), pad_value=0.5), x)


# -- images ----------------------------------------------------------------------------------------


@case(*[{"x": ramp(1, 2, 3, 4), "n": i32(*n)} for n in ((6, 8), (2, 5), (3, 4), (0, 4), (-1, 4))])
def bilinear_to_a_tensor(fluid):
    x = source(fluid, 1, 2, 3, 4)
    return with_gradient(fluid, fluid.layers.resize_bilinear(x, given(fluid, "n", [2])), x)


@case(*[{"x": ramp(1, 2, 3, 4), "n": i32(n)} for n in (6, 1, -3)])
def nearest_to_a_list(fluid):
    x = source(fluid, 1, 2, 3, 4)
    return with_gradient(fluid, fluid.layers.resize_nearest(x, [given(fluid, "n", [1]), 5]), x)


@case(*[{"x": ramp(1, 2, 3, 4), "n": np.array([n], "float32")} for n in (2.0, 0.5, 1.7, 0.0, -1.0)])
def bilinear_by_a_scale(fluid):
    x = source(fluid, 1, 2, 3, 4)
    return with_gradient(
        fluid, fluid.layers.resize_bilinear(x, scale=given(fluid, "n", [1], "float32")), x
    )


@case(*[{"x": ramp(1, 1, 2, 3, 2), "n": i32(*n)} for n in ((3, 2, 4), (2, 3, 2))])
def trilinear_to_a_tensor(fluid):
    x = source(fluid, 1, 1, 2, 3, 2)
    return with_gradient(fluid, fluid.layers.resize_trilinear(x, given(fluid, "n", [3])), x)


@case({"x": ramp(2, 3)}, {"x": ramp(4, 1)})
def size_of_open_dimensions(fluid):
    x = given(fluid, "x", [-1, -1], "float32")
    return [
        fluid.layers.size(x),
        fluid.layers.fill_constant(
            [fluid.layers.cast(fluid.layers.size(x), "int32")], "float32", 2.0
        ),
    ]


@case({"x": ramp(4, 6), "n": i32(3)}, {"x": ramp(4, 6), "n": i32(6)})
def size_of_what_a_feed_cut(fluid):
    x = source(fluid, 4, 6)
    part = x[:, 0 : given(fluid, "n", [1])]
    return [
        fluid.layers.size(part),
        fluid.layers.shape(part),
        fluid.layers.fill_constant_batch_size_like(part, [-1, 2], "float32", 1.0),
    ]


# -- rows that the data choose ---------------------------------------------------------------------


@case(
    *[
        {"x": v}
        for v in (
            ramp(3, 4),
            ramp(3, 4) - 1,
            -np.ones((3, 4), "float32"),
            np.ones((3, 4), "float32"),
        )
    ]
)
def chosen_places_and_what_is_there(fluid):
    x = source(fluid, 3, 4)
    places = fluid.layers.where(
        fluid.layers.greater_than(x, fluid.layers.fill_constant([1], "float32", 0.0))
    )
    found = fluid.layers.gather_nd(x, places)
    return [places, found, fluid.layers.scale(found, 2.0, 1.0), fluid.layers.reduce_sum(found)]


@case({"c": i32(1, 0, -1, 0, 2, 2)}, {"c": i32(0, 0, 0, 0, 0, 7)})
def columns_of_places(fluid):
    c = given(fluid, "c", [6])
    wide = fluid.layers.nonzero(fluid.layers.reshape(c, [2, 3]), as_tuple=True)
    return list(fluid.layers.nonzero(c, as_tuple=True)) + list(wide)


@case({"ids": i64(3, 1, 3, 0, 1)}, {"ids": i64(2, 2, 2, 2, 2)}, {"ids": i64(4, 3, 2, 1, 0)})
def rows_of_distinct_ids(fluid):
    ids = given(fluid, "ids", [5], "int64")
    table = fluid.layers.reshape(fluid.layers.range(0, 10, 1, "float32"), [5, 2])
    out, index, count = fluid.layers.unique_with_counts(ids)
    alone, place = fluid.layers.unique(ids, "int64")
    return [
        out,
        index,
        count,
        fluid.layers.gather(table, out),
        fluid.layers.cast(count, "float32"),
        alone,
        place,
    ]


@case(
    *[
        {"x": ramp(6), "k": k}
        for k in (i32(1, 0, 1, 1, 0, 0), i32(0, 0, 1, 0, 0, 1), i32(1, 1, 1, 1, 1, 1))
    ]
)
def a_loss_over_chosen_rows(fluid):
    """The gradient needs the rows themselves, so the feed that chooses them is a constant of the
    compilation.
    """
    x, k = source(fluid, 6), given(fluid, "k", [6])
    chosen = fluid.layers.gather(x, fluid.layers.where(fluid.layers.cast(k, "bool")))
    return with_gradient(fluid, chosen, x)


@case(*[{"x": ramp(4, 2), "k": k} for k in (i32(1, 0, 1, 1), i32(0, 0, 0, 1))])
def a_product_of_chosen_rows(fluid):
    x, k = source(fluid, 4, 2), given(fluid, "k", [4])
    chosen = fluid.layers.gather(x, fluid.layers.where(fluid.layers.cast(k, "bool")))
    return [
        fluid.layers.matmul(chosen, chosen, transpose_x=True),
        fluid.layers.shape(chosen),
        fluid.layers.size(chosen),
    ]


@case(
    *[
        {"x": ramp(6, 2), "n": i32(*n)}
        for n in ((0, 2, 6, 6), (0, 1, 3, 6), (0, 2, 6, 7), (0, 4, 2, 6))
    ]
)
def sequences_by_fed_offsets(fluid):
    x = source(fluid, 6, 2)
    return with_gradient(
        fluid,
        fluid.layers.sequence_pool(fluid.layers.lod_reset(x, given(fluid, "n", [4])), "sum"),
        x,
    )
