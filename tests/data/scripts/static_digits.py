import numpy as np
import paddle
import paddle.nn.functional as F
import paddle.static as static

paddle.enable_static()
paddle.seed(5)
image = static.data('image', [None, 1, 8, 8])
label = static.data('label', [None, 1], 'int64')
conv = F.relu(static.nn.conv2d(image, num_filters=4, filter_size=3, padding=1))
features = paddle.flatten(F.max_pool2d(conv, 2), 1)
logits = static.nn.fc(
    features, 10, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.XavierNormal()), activation=None)
loss = F.cross_entropy(logits, label)
accuracy = paddle.metric.accuracy(F.softmax(logits), label)
optimizer = paddle.optimizer.Adam(
    0.01, weight_decay=1e-4, grad_clip=paddle.nn.ClipGradByGlobalNorm(5.0))
optimizer.minimize(loss)

rng = np.random.RandomState(0)
labels = rng.randint(0, 10, (64, 1))
images = np.zeros((64, 1, 8, 8), 'float32')
images[np.arange(64), 0, labels[:, 0] % 8, labels[:, 0] // 8 * 4] = 3.0


def batches():
    for start in range(0, 64, 16):
        yield images[start:start + 16], labels[start:start + 16]


loader = paddle.io.DataLoader.from_generator(feed_list=[image, label], capacity=4)
loader.set_batch_generator(batches, places=static.cpu_places(1))
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
program = static.CompiledProgram(static.default_main_program())
for epoch in range(15):
    for data in loader():
        value, acc = exe.run(program, feed=data, fetch_list=[loss, accuracy])
print(value[0], acc[0])
