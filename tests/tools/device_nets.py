"""A net whose ops stand on several devices, as code that runs on Paddle 1.8.5 (record_devices.py)
and here.
"""


def devices(fluid):
    """[op type, op_device] of a trained net: a parameter on two devices, gradients that add up,
    clips, weight decay, a rate's factor
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [2, 3])
        with fluid.device_guard("cpu"):
            a = fluid.layers.fc(x, 3, param_attr="shared", bias_attr=False)
            with fluid.device_guard("gpu"):
                b = fluid.layers.fc(a, 3, param_attr="shared", bias_attr="b")
            c = fluid.layers.elementwise_add(fluid.layers.relu(a), b)
        with fluid.device_guard():
            d = fluid.layers.fc(
                c, 2, param_attr=fluid.ParamAttr(name="last", learning_rate=0.5), bias_attr=False
            )
        loss = fluid.layers.mean(d)
        clip = fluid.clip.GradientClipByGlobalNorm(1.0)
        decay = fluid.regularizer.L2Decay(0.1)
        fluid.optimizer.Momentum(0.1, 0.9, regularization=decay, grad_clip=clip).minimize(loss)
    return [
        [op.type, op.attr("op_device") if op.has_attr("op_device") else ""]
        for op in main.global_block().ops
    ]
