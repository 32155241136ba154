from benchmarks.updates import real_work, width


def test_each_batch_represents_the_same_number_of_updates(options):
    work = real_work(options, 10)
    assert [width(batch) for batch in work.batches] == [8] * 6 + [12] * 3 + [24]
    assert all(batch.source.shape == (2, width(batch)) for batch in work.batches)


def test_the_rarest_widths_are_left_out(options):
    assert [width(batch) for batch in real_work(options, 2).batches] == [8, 12]
