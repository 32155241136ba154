"""What `vocab` says of the texts."""


def test_characters_of_the_target_side_that_no_translation_can_have_are_counted(run, write_lines):
    texts = ("--source_dataset", write_lines("en", ["a² b"]), "--target_dataset")
    texts += (write_lines("de", ["a\u200cb m² ™²", "…"]), "--size", 12, "--to", "vocab")
    status, _, said = run("vocab", *texts, "--joint")
    assert (status, "changes 5 characters of the target" in said) == (0, True)
    assert "U+200C" in said
    assert "--normalization_rule identity" in said
    said = run("vocab", *texts, "--joint", "--normalization_rule", "identity")[2]
    assert ("changes" in said, "normalizer" in said) == (False, False)
