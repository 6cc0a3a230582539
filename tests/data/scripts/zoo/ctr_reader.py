"""A pipe command: lines of "label,number,number,word word,word" become lines of slots."""
import paddle.fluid.incubate.data_generator as dg


class CriteoDataset(dg.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def reader():
            label, dense, first, second = line.rstrip('\n').split('\t')
            feature = [("dense_input", [float(x) for x in dense.split(',')])]
            feature.append(("C1", [int(x) for x in first.split(',')]))
            feature.append(("C2", [int(x) for x in second.split(',')]))
            feature.append(("label", [int(label)]))
            yield feature
        return reader


if __name__ == '__main__':
    CriteoDataset().run_from_stdin()
