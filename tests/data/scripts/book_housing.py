import sys

import numpy
import paddle
import paddle.fluid as fluid

x = fluid.data(name='x', shape=[None, 13], dtype='float32')
y = fluid.data(name='y', shape=[None, 1], dtype='float32')
cost = fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1, act=None), label=y)
avg_loss = fluid.layers.mean(cost)
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.SGD(learning_rate=0.05).minimize(avg_loss)

train_reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
test_reader = paddle.batch(paddle.dataset.uci_housing.test(), batch_size=20)
place = fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder(place=place, feed_list=[x, y])


def test():
    losses = [exe.run(test_program, feed=feeder.feed(d), fetch_list=[avg_loss])[0] for d in test_reader()]
    return float(numpy.mean(losses))


before = test()
for epoch in range(int(sys.argv[1])):
    for data in train_reader():
        exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_loss])
print(before, test())
