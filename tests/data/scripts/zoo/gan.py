"""Trains a conditional DCGAN: one program for the discriminator, one for the generator, parameters chosen by their names' prefix."""
from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid

from utility import set_parameters

NOISE, SIDE, BATCH = 6, 8, 4


def bn(x, name=None, act='relu'):
    return fluid.layers.batch_norm(
        x, param_attr=name + '1', bias_attr=name + '2', moving_mean_name=name + '3', moving_variance_name=name + '4', name=name, act=act)


def deconv(x, num_filters, name, filter_size=4, stride=2, padding=1, output_size=None, act=None, bias_attr=None):
    return fluid.layers.conv2d_transpose(
        input=x, param_attr=name + 'w', bias_attr=name + 'b' if bias_attr is None else bias_attr, num_filters=num_filters, output_size=output_size,
        filter_size=filter_size, stride=stride, padding=padding, act=act)


def conv(x, num_filters, name=None, act=None):
    return fluid.nets.simple_img_conv_pool(
        input=x, filter_size=3, num_filters=num_filters, pool_size=2, pool_stride=2, param_attr=name + 'w', bias_attr=name + 'b', act=act)


def D_cond(image, y):
    image = fluid.layers.reshape(x=image, shape=[-1, 1, SIDE, SIDE])
    h0 = conv(image, 4, name='d_conv0', act='leaky_relu')
    h0 = fluid.layers.concat([fluid.layers.reshape(h0, [-1, 36]), y], 1)
    h1 = bn(fluid.layers.fc(h0, size=8, param_attr='d_fc0w', bias_attr=False), name='d_bn', act='tanh')
    return fluid.layers.fc(h1, size=1, act='sigmoid', param_attr='d_fc1w', bias_attr='d_fc1b')


def G_cond(z, y):
    z = fluid.layers.concat([z, y], 1)
    h0 = bn(fluid.layers.fc(z, size=16, param_attr='g_fc0w', bias_attr=False), name='g_bn0')
    h0 = fluid.layers.reshape(fluid.layers.concat([h0, y], 1), [-1, 18, 1, 1])
    h1 = bn(deconv(h0, 6, name='g_deconv0', filter_size=4, stride=1, padding=0, bias_attr=False), name='g_bn1')
    h2 = deconv(h1, 1, name='g_deconv1', act='tanh')
    return fluid.layers.reshape(h2, shape=[-1, SIDE * SIDE])


def loss(x, label):
    return fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(x=x, label=label))


def get_params(program, prefix):
    return [t.name for t in program.global_block().all_parameters() if t.name.startswith(prefix)]


def reader():
    rng = np.random.RandomState(2)
    for _ in range(3 * BATCH):
        yield np.tanh(rng.normal(size=SIDE * SIDE)).astype('float32'), rng.randint(0, 2, 1).astype('int64')


def train():
    d_program, dg_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(d_program):
        conditions = fluid.layers.data(name='conditions', shape=[2], dtype='float32')
        img = fluid.layers.data(name='img', shape=[SIDE * SIDE], dtype='float32')
        label = fluid.layers.data(name='label', shape=[1], dtype='float32')
        d_logit = D_cond(img, conditions)
        d_loss = loss(d_logit, label)
    with fluid.program_guard(dg_program):
        conditions = fluid.layers.data(name='conditions', shape=[2], dtype='float32')
        noise = fluid.layers.data(name='noise', shape=[NOISE], dtype='float32')
        g_img = G_cond(z=noise, y=conditions)
        g_program = dg_program.clone()
        g_program_test = dg_program.clone(for_test=True)
        dg_logit = D_cond(g_img, conditions)
        dg_loss = loss(dg_logit, fluid.layers.fill_constant_batch_size_like(input=noise, dtype='float32', shape=[-1, 1], value=1.0))
    opt = fluid.optimizer.Momentum(learning_rate=0.1, momentum=0.5)
    opt.minimize(loss=d_loss)
    parameters = get_params(g_program, 'g')
    opt.minimize(loss=dg_loss, parameter_list=parameters)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(d_program, place)
    set_parameters(g_program, place)
    rng = np.random.RandomState(6)
    for batch_id, data in enumerate(paddle.batch(reader, batch_size=BATCH)()):
        real = np.array([x[0] for x in data]).reshape(-1, SIDE * SIDE)
        one_hot = np.eye(2, dtype='float32')[np.array([x[1] for x in data]).reshape(-1)]
        noise_data = rng.uniform(-1.0, 1.0, (BATCH, NOISE)).astype('float32')
        generated = exe.run(g_program_test, feed={'noise': noise_data, 'conditions': one_hot}, fetch_list=[g_img.name])[0]
        fake = np.zeros((BATCH, 1), 'float32')
        d_loss_fake = exe.run(d_program, feed={'img': generated, 'label': fake, 'conditions': one_hot}, fetch_list=[d_loss])[0][0]
        d_loss_real = exe.run(d_program, feed={'img': real, 'label': fake + 1, 'conditions': one_hot}, fetch_list=[d_loss])[0][0]
        for _ in range(2):
            noise_data = rng.uniform(-1.0, 1.0, (BATCH, NOISE)).astype('float32')
            dg = exe.run(dg_program, feed={'noise': noise_data, 'conditions': one_hot}, fetch_list=[dg_loss])[0][0]
        print("step %d d_loss %.6f dg_loss %.6f image %.5f" % (batch_id, d_loss_fake + d_loss_real, dg, np.abs(generated).sum()))


if __name__ == "__main__":
    train()
