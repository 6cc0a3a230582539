"""The nets on sentences, hand-written for JAX: padded batches under a mask, `lax.scan`, optax and a
jitted, donating step.

A batch is padded to the sizes that fluidjax would pad it to, so both compile as often.
"""

import numpy as np
from ragged_nets import RAGGED, TAGS, VERBS, WORDS


def load(side):
    import jax

    return f"hand-written scan, jax {jax.__version__}"


def bucket(n, least=8):
    size = least
    while size < n:
        size *= 2
    return size * 3 // 4 if size > least and n <= size * 3 // 4 else size


def padded(batch):
    """name -> [N, T] ids, and how long each sequence is; labels without lengths stay."""
    found = {}
    for name, (rows, lengths) in batch.items():
        if lengths is None:
            found[name] = rows
            continue
        cells = np.zeros((len(lengths), bucket(max(lengths))), "int32")
        for n, (end, size) in enumerate(zip(np.cumsum(lengths), lengths, strict=True)):
            cells[n, :size] = rows[end - size : end, 0]
        found[name], found[name + " lengths"] = cells, np.array(lengths, "int32")
    return found


def _scan(step, first, x, mask, reverse=False):
    """x [N, T, ...]; the state stays where the mask does not hold."""
    import jax
    import jax.numpy as jnp

    def one(state, given):
        row, alive = given
        new = step(state, row)
        new = jax.tree.map(lambda a, b: jnp.where(alive[:, None], a, b), new, state)
        return new, jax.tree.leaves(new)[0]

    _, out = jax.lax.scan(one, first, (x.swapaxes(0, 1), mask.T), reverse=reverse)
    return out.swapaxes(0, 1)


def _lstm(weights, x, mask, reverse, act, cell_act):
    import jax
    import jax.numpy as jnp

    width = weights["w"].shape[0]

    def step(state, row):
        h, c = state
        a, i, f, o = jnp.split(row + h @ weights["w"], 4, 1)
        c = (
            act(a) * jax.nn.sigmoid(i + weights["wi"] * c)
            + jax.nn.sigmoid(f + weights["wf"] * c) * c
        )
        return jax.nn.sigmoid(o + weights["wo"] * c) * cell_act(c), c

    zero = jnp.zeros((x.shape[0], width))
    return _scan(step, (zero, zero), x + weights["b"], mask, reverse)


def _lstm_weights(draw, width):
    return {
        "w": draw(width, 4 * width),
        "b": draw(4 * width) * 0,
        **{n: draw(width) for n in ("wi", "wf", "wo")},
    }


class Sentiment:
    def __init__(self, draw, width=512, depth=3):
        self.depth = depth
        self.weights = {"emb": draw(WORDS, 128), "in": draw(128, width), "lstm": [_lstm_weights(draw, width // 4) for _ in range(depth)],
                        "mix": [(draw(width, width), draw(width // 4, width)) for _ in range(depth - 1)],
                        "out": (draw(width, 2), draw(width // 4, 2))}  # fmt: skip

    def loss(self, w, feed):
        import jax
        import jax.numpy as jnp

        mask = jnp.arange(feed["word"].shape[1]) < feed["word lengths"][:, None]
        x = w["emb"][feed["word"]] @ w["in"]
        h = _lstm(w["lstm"][0], x, mask, False, jnp.tanh, jnp.tanh)
        for i in range(1, self.depth):
            x = x @ w["mix"][i - 1][0] + h @ w["mix"][i - 1][1]
            h = _lstm(w["lstm"][i], x, mask, i % 2 == 1, jnp.tanh, jnp.tanh)
        most = [
            jnp.max(jnp.where(mask[..., None], v, -jnp.inf), 1) @ p
            for v, p in zip((x, h), w["out"], strict=True)
        ]
        logs = jax.nn.log_softmax(sum(most))
        return -jnp.mean(jnp.take_along_axis(logs, feed["label"], 1))


class Roles:
    def __init__(self, draw, width=512, depth=8):
        self.depth = depth
        sizes = [32] * 6 + [32, 5]
        self.frozen = draw(WORDS, 32)
        self.weights = {"verb": draw(VERBS, 32), "mark": draw(2, 5), "in": [draw(n, width) for n in sizes],
                        "lstm": [_lstm_weights(draw, width // 4) for _ in range(depth)],
                        "mix": [(draw(width, width), draw(width // 4, width)) for _ in range(depth - 1)],
                        "out": (draw(width, TAGS), draw(width // 4, TAGS)), "crf": draw(TAGS + 2, TAGS)}  # fmt: skip

    def loss(self, w, feed):
        import jax
        import jax.numpy as jnp

        mask = jnp.arange(feed["word"].shape[1]) < feed["word lengths"][:, None]
        looked = [jnp.asarray(self.frozen)[feed[n]] for n in ("word", "n2", "n1", "c0", "p1", "p2")]
        looked += [w[n][feed[n]] for n in ("verb", "mark")]
        mixed = sum(jnp.tanh(e @ p) for e, p in zip(looked, w["in"], strict=True))
        h = _lstm(w["lstm"][0], mixed, mask, False, jax.nn.relu, jax.nn.sigmoid)
        for i in range(1, self.depth):
            mixed = jnp.tanh(mixed @ w["mix"][i - 1][0]) + jnp.tanh(h @ w["mix"][i - 1][1])
            h = _lstm(w["lstm"][i], mixed, mask, i % 2 == 1, jax.nn.relu, jax.nn.sigmoid)
        scores = jnp.tanh(mixed @ w["out"][0]) + jnp.tanh(h @ w["out"][1])
        return jnp.mean(self.likelihood(w["crf"], scores, feed["target"], mask))

    @staticmethod
    def likelihood(crf, scores, tags, mask):
        import jax
        import jax.numpy as jnp

        begin, end, steps = crf[0], crf[1], crf[2:]

        def forward(total, given):
            row, alive = given
            new = jax.nn.logsumexp(total[:, :, None] + steps, 1) + row
            return jnp.where(alive[:, None], new, total), None

        total, _ = jax.lax.scan(
            forward, begin + scores[:, 0], (scores[:, 1:].swapaxes(0, 1), mask[:, 1:].T)
        )
        emitted = jnp.sum(
            jnp.where(mask, jnp.take_along_axis(scores, tags[..., None], 2)[..., 0], 0), 1
        )
        moved = jnp.sum(jnp.where(mask[:, 1:], steps[tags[:, :-1], tags[:, 1:]], 0), 1)
        last = jnp.take_along_axis(tags, jnp.sum(mask, 1, keepdims=True) - 1, 1)[:, 0]
        return jax.nn.logsumexp(total + end, 1) - (begin[tags[:, 0]] + emitted + moved + end[last])


class Translation:
    def __init__(self, draw, width=128):
        three = 3 * width
        self.weights = {"source": draw(WORDS, width), "target": draw(WORDS, width), "gru": [self.gru(draw, width) for _ in range(3)],
                        "in": [draw(width, three) for _ in range(2)], "key": draw(2 * width, width), "begin": draw(width, width),
                        "query": draw(width, width), "score": draw(width, 1), "word": draw(width, three),
                        "context": draw(2 * width, three), "out": draw(width, WORDS)}  # fmt: skip

    @staticmethod
    def gru(draw, width):
        return {
            "gates": draw(width, 2 * width),
            "new": draw(width, width),
            "b": draw(3 * width) * 0,
        }

    @staticmethod
    def gru_step(w, h, row):
        import jax
        import jax.numpy as jnp

        width = h.shape[1]
        u, r = jnp.split(jax.nn.sigmoid(row[:, : 2 * width] + h @ w["gates"]), 2, 1)
        return (1 - u) * h + u * jnp.tanh(row[:, 2 * width :] + (r * h) @ w["new"])

    def loss(self, w, feed):
        import jax
        import jax.numpy as jnp

        masks = {
            n: jnp.arange(feed[n].shape[1]) < feed[n + " lengths"][:, None]
            for n in ("source", "target")
        }
        x = w["source"][feed["source"]]
        zero = jnp.zeros((x.shape[0], x.shape[2]))
        both = [
            _scan(
                lambda h, row, g=g: self.gru_step(g, h, row),
                zero,
                x @ p + g["b"],
                masks["source"],
                back,
            )
            for g, p, back in zip(w["gru"], w["in"], (False, True), strict=False)
        ]
        encoded = jnp.concatenate(both, 2)
        keys = encoded @ w["key"]

        def step(h, row):
            score = (jnp.tanh(keys + (h @ w["query"])[:, None]) @ w["score"])[..., 0]
            weights = jax.nn.softmax(jnp.where(masks["source"], score, -jnp.inf), 1)
            context = jnp.einsum("nt,ntd->nd", weights, encoded)
            return self.gru_step(w["gru"][2], h, row + context @ w["context"] + w["gru"][2]["b"])

        first = jnp.tanh(both[1][:, 0] @ w["begin"])
        out = _scan(step, first, w["target"][feed["target"]] @ w["word"], masks["target"])
        logs = jax.nn.log_softmax(out @ w["out"])
        found = jnp.take_along_axis(logs, feed["next"][..., None], 2)[..., 0]
        return -jnp.sum(jnp.where(masks["target"], found, 0)) / jnp.sum(masks["target"])


def make(case):
    import jax

    name, count = case.split()
    _, batches, rate = RAGGED[name]
    rng = np.random.RandomState(0)
    draw = lambda *shape: (rng.uniform(-1, 1, shape) * np.sqrt(3.0 / shape[0])).astype("float32")  # noqa: E731
    model = {"roles": Roles, "sentiment": Sentiment, "translation": Translation}[name](draw)
    feeds = [padded(b) for b in batches(int(count))]

    def step(weights, feed):
        loss, grads = jax.value_and_grad(model.loss)(weights, feed)
        return jax.tree.map(lambda p, g: p - rate * g, weights, grads), loss

    run = jax.jit(step, donate_argnums=0)
    held = [jax.tree.map(jax.numpy.asarray, model.weights), 0]

    def steps(number):
        for _ in range(number):
            held[0], loss = run(held[0], feeds[held[1] % len(feeds)])
            held[1] += 1
        return float(jax.block_until_ready(loss))

    return steps
