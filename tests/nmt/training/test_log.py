"""The log of a training that resumes."""

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from nmt.training.log import TrainingLog
from nmt.training.progress import Progress


def figures(directory):
    (file,) = directory.iterdir()
    events = [Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(file))]
    values = [(event.step, value) for event in events for value in event.summary.value]
    return [(step, value.tag, float(tf.make_ndarray(value.tensor))) for step, value in values]


def test_figures_up_to_the_last_checkpoint_are_kept_once(tmp_path):
    log = TrainingLog(tmp_path, Progress())
    for update in (1, 2, 3):
        log.update(update, loss=update / 2)
    log.writer.close()
    (first,) = tmp_path.iterdir()
    left = first.read_bytes()
    TrainingLog(tmp_path, Progress(update=2)).writer.close()
    first.write_bytes(left)  # as if a process had been killed before it removed the file
    TrainingLog(tmp_path, Progress(update=2)).writer.close()
    assert figures(tmp_path) == [(1, "update/loss", 0.5), (2, "update/loss", 1.0)]
