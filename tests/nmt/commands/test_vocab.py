"""What `vocab` says of the texts."""


def test_characters_of_the_target_side_that_no_translation_can_have_are_counted(run, write_lines):
    texts = ("--source_dataset", write_lines("en", ["a² b"]), "--target_dataset")
    texts += (write_lines("de", ["a\u200cb m² ™²", "…"]), "--size", 30, "--to", "vocab")
    status, _, said = run("vocab", *texts, "--joint")
    assert (status, "changes 5 characters of the target side (²," in said) == (0, True)
    assert "U+200C" in said
    assert "--normalization_rule identity" in said
    assert "changes" not in run("vocab", *texts, "--normalization_rule", "identity")[2]
