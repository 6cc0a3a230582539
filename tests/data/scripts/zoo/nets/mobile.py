import paddle.fluid as fluid


class MobileNet(object):
    def __init__(self, scale=1.0):
        self.scale = scale

    def net(self, input, class_dim=10):
        conv = self.conv_bn_layer(input, 3, 8, 2, 1, name="conv1")
        conv = self.depthwise_separable(conv, 8, 16, 8, 2, scale=self.scale, name="conv2_1")
        conv = fluid.layers.pool2d(input=conv, pool_size=0, pool_stride=1, pool_type='avg', global_pooling=True)
        return fluid.layers.fc(
            input=conv, size=class_dim, act='softmax',
            param_attr=fluid.ParamAttr(initializer=fluid.initializer.MSRA(), name="fc7_weights"),
            bias_attr=fluid.ParamAttr(name="fc7_offset"))

    def conv_bn_layer(self, input, filter_size, num_filters, stride, padding, num_groups=1, act='relu', use_cudnn=True, name=None):
        conv = fluid.layers.conv2d(
            input=input, num_filters=num_filters, filter_size=filter_size, stride=stride, padding=padding,
            groups=num_groups, act=None, use_cudnn=use_cudnn,
            param_attr=fluid.param_attr.ParamAttr(initializer=fluid.initializer.MSRA(), name=name + "_weights"),
            bias_attr=False)
        bn_name = name + "_bn"
        return fluid.layers.batch_norm(
            input=conv, act=act,
            param_attr=fluid.ParamAttr(name=bn_name + "_scale"),
            bias_attr=fluid.ParamAttr(name=bn_name + "_offset"),
            moving_mean_name=bn_name + '_mean', moving_variance_name=bn_name + '_variance')

    def depthwise_separable(self, input, num_filters1, num_filters2, num_groups, stride, scale, name=None):
        depthwise = self.conv_bn_layer(input, 3, int(num_filters1 * scale), stride, 1,
                                       num_groups=int(num_groups * scale), use_cudnn=False, name=name + "_dw")
        return self.conv_bn_layer(depthwise, 1, int(num_filters2 * scale), 1, 0, name=name + "_sep")
