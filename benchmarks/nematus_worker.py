# ruff: noqa: B905, I001, SIM115, UP031 -- Python 2.7
"""The other side of benchmarks/training.py: runs in the interpreter of a real Nematus v0.3, Python 2.7, TensorFlow 1.

    python nematus_worker.py NEMATUS BATCHES.npz EMBEDDING STATE VOCABULARY none|layernorm

Answers each line, the number of a batch, with the seconds that an update with it takes; "memory" with the process's
peak memory in KiB.
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def read_config(nmt, sizes, kind):
    embedding, state, words = sizes
    sys.argv = ["nmt", "--source_dataset", "-", "--target_dataset", "-", "--dictionaries", "-", "-"]
    sys.argv += ["--embedding_size", embedding, "--state_size", state, "--n_words_src", words, "--n_words", words]
    sys.argv += ["--use_layer_norm"] * (kind == "layernorm")
    return nmt.parse_args()


def build(sizes, kind):
    """Returns a function that makes one update with a batch of four arrays `[batch, time]`."""
    import nmt
    import tensorflow as tf

    session = tf.Session()
    model, _, _ = nmt.create_model(read_config(nmt, sizes, kind), session, train=True)
    fetches = [model.get_global_step(), model.get_apply_grads(), model.get_objective()]

    def update(source, source_mask, target, target_mask):
        arrays = (source.T[None], source_mask.T, target.T, target_mask.T, True)  # one factor, time-major
        session.run(fetches, feed_dict=dict(zip(model.get_score_inputs(), arrays)))

    return update


def main():
    checkout, path, sizes, kind = sys.argv[1], sys.argv[2], sys.argv[3:6], sys.argv[6]
    answers, sys.stdout = sys.stdout, sys.stderr  # what Nematus prints is no answer
    sys.path.insert(0, os.path.join(checkout, "nematus"))
    sys.dont_write_bytecode = True
    import numpy

    archive = numpy.load(path)
    update = build(sizes, kind)
    answers.write("ready\n")
    answers.flush()
    for line in iter(sys.stdin.readline, ""):
        if line.strip() == "memory":
            answers.write(open("/proc/self/status").read().split("VmHWM:")[1].split()[0] + "\n")
        else:
            batch = [archive["%s_%d" % (line.strip(), i)] for i in range(4)]
            start = time.time()
            update(*batch)
            answers.write("%.6f\n" % (time.time() - start))
        answers.flush()


if __name__ == "__main__":
    main()
