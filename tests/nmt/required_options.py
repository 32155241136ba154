"""The options without which no training starts."""

REQUIRED = {
    "source_dataset": "train.en",
    "target_dataset": "train.de",
    "dictionaries": ("en.model", "de.model"),
    "valid_source_dataset": "dev.en",
    "valid_target_dataset": "dev.de",
}
