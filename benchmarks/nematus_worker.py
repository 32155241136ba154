# ruff: noqa: B905, RUF005, UP031 -- Python 2.7
"""Updates a model of real Nematus for benchmarks/training.py: v0.3 on Python 2.7, master on Python 3.

    python nematus_worker.py NEMATUS BATCHES.npz OPTION...

The options are those of Nematus for the model. Reads lines from standard input. For the number of a batch, it runs an
update with that batch and prints the seconds; for "memory", it prints the peak memory of the process in KiB; for
"libraries", what that peak was after the import of TensorFlow.
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def build_v03(tf):
    """Returns a function that runs one update with a batch of four arrays `[batch, time]`."""
    import nmt

    session = tf.Session()
    model, _, _ = nmt.create_model(nmt.parse_args(), session, train=True)
    fetches = [model.get_global_step(), model.get_apply_grads(), model.get_objective()]

    def update(source, source_mask, target, target_mask):
        # Time-major; the words of the source have one factor.
        arrays = (source.T[None], source_mask.T, target.T, target_mask.T, True)
        session.run(fetches, feed_dict=dict(zip(model.get_score_inputs(), arrays)))

    return update


def build_master(tf):
    """Does the same as `build_v03` with the model and the updater of train.py."""
    import config
    import learning_schedule
    import model_updater
    import rnn_model
    import transformer

    tf.compat.v1.disable_eager_execution()
    options = config.read_config_from_cmdline()
    session = tf.compat.v1.Session()
    build = transformer.Transformer if options.model_type == "transformer" else rnn_model.RNNModel
    with tf.compat.v1.variable_scope(tf.compat.v1.get_variable_scope()):
        model = build(options)
    step = tf.compat.v1.get_variable("time", [], initializer=tf.zeros_initializer(), trainable=False)
    rate = learning_schedule.ConstantSchedule(options.learning_rate).learning_rate
    adam = tf.compat.v1.train.AdamOptimizer(rate, options.adam_beta1, options.adam_beta2, options.adam_epsilon)
    updater = model_updater.ModelUpdater(options, 0, [model], adam, step)
    session.run(tf.compat.v1.global_variables_initializer())

    def update(source, source_mask, target, target_mask):
        updater.update(session, source.T[None], source_mask.T, target.T, target_mask.T, None, False)

    return update


def peak_memory():
    return open("/proc/self/status").read().split("VmHWM:")[1].split()[0]


def main():
    checkout, path, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    answers, sys.stdout = sys.stdout, sys.stderr  # keep what Nematus prints out of the answers
    sys.path.insert(0, os.path.join(checkout, "nematus"))
    sys.dont_write_bytecode = True
    import numpy
    import tensorflow

    libraries = peak_memory()
    sys.argv = ["nmt", "--source_dataset", "-", "--target_dataset", "-", "--dictionaries", "-", "-"] + words
    is_v03 = not os.path.exists(os.path.join(checkout, "nematus", "train.py"))
    archive = numpy.load(path)
    update = (build_v03 if is_v03 else build_master)(tensorflow)
    answers.write("ready\n")
    answers.flush()
    for line in iter(sys.stdin.readline, ""):
        if line.strip() in ("memory", "libraries"):
            answers.write((libraries if line.strip() == "libraries" else peak_memory()) + "\n")
        else:
            batch = [archive["%s_%d" % (line.strip(), i)] for i in range(4)]
            start = time.time()
            update(*batch)
            answers.write("%.6f\n" % (time.time() - start))
        answers.flush()


if __name__ == "__main__":
    main()
