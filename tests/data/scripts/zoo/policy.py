"""Policy gradient and DQN in the style of PARL's first examples: several programs share parameters through one scope."""
from __future__ import print_function
import copy
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.param_attr import ParamAttr
from utility import set_parameters


class DQNModel(object):
    def __init__(self, state_dim, action_dim, gamma):
        self.state_dim, self.action_dim, self.gamma, self.global_step = state_dim, action_dim, gamma, 0
        self.exploration = 1.1
        self._build_net()

    def _get_inputs(self):
        return fluid.layers.data(name='state', shape=[self.state_dim], dtype='float32'), \
            fluid.layers.data(name='action', shape=[1], dtype='int32'), \
            fluid.layers.data(name='reward', shape=[], dtype='float32'), \
            fluid.layers.data(name='next_s', shape=[self.state_dim], dtype='float32'), \
            fluid.layers.data(name='isOver', shape=[], dtype='bool')

    def _build_net(self):
        self.predict_program = fluid.Program()
        self.train_program = fluid.Program()
        self._sync_program = fluid.Program()
        with fluid.program_guard(self.predict_program):
            state = layers.data(name='state', shape=[self.state_dim], dtype='float32')
            self.pred_value = self.get_DQN_prediction(state)
            self.predict_program = self.predict_program.clone(for_test=True)
        with fluid.program_guard(self.train_program):
            state, action, reward, next_s, isOver = self._get_inputs()
            pred_value = self.get_DQN_prediction(state)
            reward = fluid.layers.clip(reward, min=-1.0, max=1.0)
            action_onehot = fluid.layers.one_hot(layers.unsqueeze(action, [1]) if False else action, self.action_dim)
            action_onehot = fluid.layers.cast(action_onehot, dtype='float32')
            pred_action_value = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(action_onehot, pred_value), dim=1)
            targetQ_predict_value = self.get_DQN_prediction(next_s, target=True)
            next_pred_value = self.get_DQN_prediction(next_s)
            greedy_action = fluid.layers.argmax(next_pred_value, axis=1)
            predict_onehot = fluid.layers.one_hot(layers.unsqueeze(greedy_action, [1]), self.action_dim)
            best_v = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(fluid.layers.cast(predict_onehot, 'float32'), targetQ_predict_value), dim=1)
            best_v.stop_gradient = True
            target = reward + (1.0 - fluid.layers.cast(isOver, dtype='float32')) * self.gamma * best_v
            cost = fluid.layers.square_error_cost(pred_action_value, target)
            cost = fluid.layers.reduce_mean(cost)
            optimizer = fluid.optimizer.Adam(1e-2, epsilon=1e-3)
            optimizer.minimize(cost)
            self.cost = cost
        vars = list(self.train_program.list_vars())
        policy_vars = list(filter(lambda x: 'GRAD' not in x.name and 'policy' in x.name and fluid.io.is_parameter(x), vars))
        target_vars = list(filter(lambda x: 'GRAD' not in x.name and 'target' in x.name and fluid.io.is_parameter(x), vars))
        policy_vars.sort(key=lambda x: x.name)
        target_vars.sort(key=lambda x: x.name)
        with fluid.program_guard(self._sync_program):
            st = layers.data(name='state', shape=[self.state_dim], dtype='float32')
            self.get_DQN_prediction(st)
            self.get_DQN_prediction(st, target=True)
            by_name = self._sync_program.global_block().var
            policy_vars, target_vars = [[by_name(v.name) for v in vs] for vs in (policy_vars, target_vars)]
            sync_ops = []
            for i, var in enumerate(policy_vars):
                sync_ops.append(fluid.layers.assign(policy_vars[i], target_vars[i]))
        print(len(policy_vars), [v.name for v in target_vars], [o.name for o in sync_ops])
        place = fluid.CPUPlace()
        self.exe = fluid.Executor(place)
        self.exe.run(fluid.default_startup_program())
        set_parameters(self.train_program, place)

    def get_DQN_prediction(self, state, target=False):
        variable_field = 'target' if target else 'policy'
        fc1 = fluid.layers.fc(input=state, size=8, act='relu', param_attr=ParamAttr(name='{}_fc1'.format(variable_field)),
                              bias_attr=ParamAttr(name='{}_fc1_b'.format(variable_field)))
        if not target:
            V = layers.fc(fc1, 1, param_attr=ParamAttr(name='policy_v'), bias_attr=ParamAttr(name='policy_v_b'))
            A = layers.fc(fc1, self.action_dim, param_attr=ParamAttr(name='policy_a'), bias_attr=ParamAttr(name='policy_a_b'))
        else:
            V = layers.fc(fc1, 1, param_attr=ParamAttr(name='target_v'), bias_attr=ParamAttr(name='target_v_b'))
            A = layers.fc(fc1, self.action_dim, param_attr=ParamAttr(name='target_a'), bias_attr=ParamAttr(name='target_a_b'))
        return A + (V - layers.reduce_mean(A, dim=1, keep_dim=True))

    def act(self, state):
        pred_Q = self.exe.run(self.predict_program, feed={'state': state.astype('float32')}, fetch_list=[self.pred_value])[0]
        return int(np.argmax(np.squeeze(pred_Q, axis=0)))

    def train(self, state, action, reward, next_state, isOver):
        if self.global_step % 2 == 0:
            self.sync_target_network()
        self.global_step += 1
        action = np.expand_dims(action, -1)
        return self.exe.run(self.train_program, feed={
            'state': state.astype('float32'), 'action': action.astype('int32'), 'reward': reward, 'next_s': next_state.astype('float32'),
            'isOver': isOver}, fetch_list=[self.cost])[0]

    def sync_target_network(self):
        self.exe.run(self._sync_program, feed={'state': np.zeros((1, 4), 'float32')})


class PolicyGradient(object):
    def __init__(self, n_actions, n_features):
        self.n_actions, self.n_features = n_actions, n_features
        main, start = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, start):
            obs = fluid.layers.data(name='obs', shape=[n_features], dtype='float32')
            acts = fluid.layers.data(name='acts', shape=[1], dtype='int64')
            vt = fluid.layers.data(name='vt', shape=[1], dtype='float32')
            fc1 = fluid.layers.fc(input=obs, size=10, act='tanh')
            all_act_prob = fluid.layers.fc(input=fc1, size=n_actions, act='softmax')
            self.inferece_program = fluid.default_main_program().clone()
            neg_log_prob = fluid.layers.cross_entropy(input=all_act_prob, label=acts)
            neg_log_prob_weight = fluid.layers.elementwise_mul(x=neg_log_prob, y=vt)
            loss = fluid.layers.reduce_mean(neg_log_prob_weight)
            fluid.optimizer.Adam(0.02).minimize(loss)
        self.main, self.loss, self.prob = main, loss, all_act_prob
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(start)
        set_parameters(main, fluid.CPUPlace())

    def learn(self, obs, acts, rs):
        tensor_obs = np.vstack(obs).astype("float32")
        d = np.zeros_like(rs)
        running = 0
        for t in reversed(range(0, len(rs))):
            running = running * 0.9 + rs[t]
            d[t] = running
        d -= np.mean(d)
        d /= np.std(d)
        return self.exe.run(self.main, feed={"obs": tensor_obs, "acts": np.array(acts).reshape(-1, 1).astype("int64"),
                                             "vt": d[:, np.newaxis].astype('float32')}, fetch_list=[self.loss])


rng = np.random.RandomState(3)
agent = DQNModel(4, 3, 0.9)
for step in range(6):
    s, n = rng.rand(5, 4), rng.rand(5, 4)
    cost = agent.train(s, rng.randint(0, 3, 5), rng.rand(5).astype('float32') * 2, n, rng.rand(5) > 0.7)
    print('step', step, cost, agent.act(s[:1]))
pg = PolicyGradient(3, 4)
for step in range(3):
    o = rng.rand(6, 4)
    print('step', pg.learn(list(o), rng.randint(0, 3, 6), rng.rand(6)))
    print('step', pg.exe.run(pg.inferece_program, feed={'obs': o[:2].astype('float32')}, fetch_list=[pg.prob])[0].tolist())
