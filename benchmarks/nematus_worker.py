# ruff: noqa: B905, I001, SIM115, UP031 -- Python 2.7
"""Updates a model of real Nematus v0.3 for benchmarks/training.py. Runs on Python 2.7 and TensorFlow 1.

    python nematus_worker.py NEMATUS BATCHES.npz EMBEDDING STATE VOCABULARY none|layernorm

Reads lines from standard input. For the number of a batch, it runs an update with that batch and prints the seconds;
for "memory", it prints the peak memory of the process in KiB.
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
    """Returns a function that runs one update with a batch of four arrays `[batch, time]`."""
    import nmt
    import tensorflow as tf

    session = tf.Session()
    model, _, _ = nmt.create_model(read_config(nmt, sizes, kind), session, train=True)
    fetches = [model.get_global_step(), model.get_apply_grads(), model.get_objective()]

    def update(source, source_mask, target, target_mask):
        # Time-major; the words of the source have one factor.
        arrays = (source.T[None], source_mask.T, target.T, target_mask.T, True)
        session.run(fetches, feed_dict=dict(zip(model.get_score_inputs(), arrays)))

    return update


def main():
    checkout, path, sizes, kind = sys.argv[1], sys.argv[2], sys.argv[3:6], sys.argv[6]
    answers, sys.stdout = sys.stdout, sys.stderr  # keep what Nematus prints out of the answers
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
