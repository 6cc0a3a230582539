"""The nets in torch, on one thread."""

from nets import CASES

torch = None


def load(side):
    global torch
    import torch as imported

    torch = imported
    torch.set_num_threads(1)
    return "torch " + torch.__version__


def _flat(*layers):
    return torch.nn.Sequential(*layers)


def _norm(before, filters, size, stride=1, act=True):
    nn = torch.nn
    layers = [
        nn.Conv2d(before, filters, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(filters),
    ]
    return _flat(*layers, *([nn.ReLU()] if act else []))


def _residual(before, filters, stride):
    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = _flat(
                _norm(before, filters, 3, stride), _norm(filters, filters, 3, act=False)
            )
            self.short = (
                torch.nn.Identity()
                if stride == 1 and before == filters
                else _norm(before, filters, 1, stride, False)
            )

        def forward(self, x):
            return torch.relu(self.body(x) + self.short(x))

    return Residual()


def _resnet(stem, stages, blocks):
    layers, before = [_norm(3, stem, 3)], stem
    for stage, filters in enumerate(stages):
        for block in range(blocks):
            layers.append(_residual(before, filters, 2 if stage and not block else 1))
            before = filters
    return _flat(
        *layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(before, 10)
    )


def _lenet():
    nn, layers, before = torch.nn, [], 1
    for filters in (6, 16):
        layers += [
            nn.Conv2d(before, filters, 5, bias=False),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        before = filters
    layers += [
        nn.Flatten(),
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    ]
    return _flat(*layers)


def _encoder(width=256, heads=4):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = [nn.Linear(width, width) for _ in range(4)]
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.feed = _flat(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = [f(x).view(b, t, heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)]
            weights = torch.softmax(q @ k.transpose(-1, -2) * (width // heads) ** -0.5, -1)
            h = self.first(x + self.o((weights @ v).transpose(1, 2).reshape(b, t, width)))
            return self.second(h + self.feed(h))

    return _flat(Block(), Block(), nn.Linear(width, 10))


def _dense(*sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [torch.nn.Linear(sizes[i], sizes[i + 1]), torch.nn.ReLU()]
    return _flat(*layers[:-1])


NETS = {
    "fit-a-line": lambda: _dense(13, 1),
    "2 layers": lambda: _dense(13, 32, 1),
    "LeNet": _lenet,
    "ResNet-32": lambda: _resnet(16, (16, 32, 64), 5),
    "ResNet-18": lambda: _resnet(64, (64, 128, 256, 512), 2),
    "transformer": _encoder,
}


def make(case):
    _, optimizer, batch = CASES[case]
    arrays = {n: torch.from_numpy(v) for n, v in batch().items()}
    net = NETS[case]()
    parameters = net.parameters()
    update = {
        "sgd": lambda: torch.optim.SGD(parameters, 0.01),
        "adam": lambda: torch.optim.Adam(parameters, 1e-3),
        "momentum": lambda: torch.optim.SGD(parameters, 1e-2, momentum=0.9),
    }[optimizer]()
    x = next(iter(arrays.values()))

    def loss():
        out = net(x)
        if "y" in arrays:
            return ((out - arrays["y"]) ** 2).mean()
        return torch.nn.functional.cross_entropy(out.reshape(-1, 10), arrays["label"].reshape(-1))

    def steps(count):
        for _ in range(count):
            update.zero_grad()
            found = loss()
            found.backward()
            update.step()
        return found.item()

    return steps
