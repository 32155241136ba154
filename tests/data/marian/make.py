"""Makes the smallest model of Marian that has every part, and what transformers computes of it.

`python make.py` with transformers 5 and PyTorch writes the folder of the model and `expected.json`
here. Then `python make.py h5` with transformers 4 and tf-keras writes `tf_model.h5`.
"""

import json
import os
import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
CODES = {">>deu<<": str.upper, ">>fra<<": lambda text: f"é {text}"}  # what a translation is
WORDS = ["a", "bb", "cat", "dog", "eel", "fox", "goat", "hen"]


def make_text(count):
    rows = []
    for i in range(count):
        words = " ".join(random.choices(WORDS, k=random.randint(1, 5)))
        code = list(CODES)[i % 2]
        rows.append((f"{code} {words}", CODES[code](words)))
    return rows


def make_vocabularies(rows):
    import sentencepiece

    pieces = []
    for side, number in (("source", 0), ("target", 1)):
        lines = [row[number].partition("<< ")[2] if number == 0 else row[1] for row in rows]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(HERE / side),
            vocab_size=60,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            minloglevel=2,
        )
        (HERE / f"{side}.model").rename(HERE / f"{side}.spm")
        (HERE / f"{side}.vocab").unlink()
        model = sentencepiece.SentencePieceProcessor(model_file=str(HERE / f"{side}.spm"))
        pieces += [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    names = ["</s>", "<unk>", *dict.fromkeys(pieces), *CODES, "<pad>"]
    ids = {name: i for i, name in enumerate(names)}
    (HERE / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    return len(ids)


def make_model():
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    random.seed(1)
    torch.manual_seed(1)
    rows = make_text(400)
    size = make_vocabularies(rows)
    pad = size - 1
    config = MarianConfig(
        vocab_size=size,
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        activation_function="swish",
        scale_embedding=True,
        static_position_embeddings=True,
        normalize_before=False,
        max_position_embeddings=64,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
    )
    model = MarianMTModel(config)
    files = [HERE / name for name in ("source.spm", "target.spm", "vocab.json")]
    tokenizer = MarianTokenizer(*map(str, files), source_lang="en", target_lang="de")
    with torch.no_grad():
        model.final_logits_bias.normal_(0, 0.1)
        model.final_logits_bias[0, pad] = 0

    def read(pairs):
        source = tokenizer([pair[0] for pair in pairs], padding=True, return_tensors="pt")
        return source, tokenizer(
            text_target=[pair[1] for pair in pairs], padding=True, return_tensors="pt"
        ).input_ids

    def logits(source, target):
        begin = torch.full((len(target), 1), pad)
        return model(**source, decoder_input_ids=torch.cat([begin, target[:, :-1]], 1)).logits

    optimizer = torch.optim.Adam(model.parameters(), 5e-3, (0.9, 0.98))
    for _ in range(400):
        source, target = read(random.sample(rows, 32))
        loss = torch.nn.functional.cross_entropy(
            logits(source, target).flatten(0, 1), target.flatten(), ignore_index=pad
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.model.shared.weight[pad] = 0  # as in published models
    model.eval()
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(HERE)
    pairs = [*make_text(12), (">>xxx<< a cat é", "É Ça"), ("fox", "<< fox >>")]
    expected = {
        "sources": [],
        "targets": [],
        "source_ids": [],
        "target_ids": [],
        "costs": [],
        "greedy": [],
        "beams": [],
    }
    for pair in pairs:
        source, target = read([pair])
        cost = torch.nn.functional.cross_entropy(
            logits(source, target)[0], target[0], reduction="sum"
        )
        expected["sources"].append(pair[0])
        expected["targets"].append(pair[1])
        expected["source_ids"].append(source.input_ids[0].tolist())
        expected["target_ids"].append(target[0].tolist())
        expected["costs"].append(cost.item())
        for name, beams in (("greedy", 1), ("beams", 4)):
            found = model.generate(
                **source, num_beams=beams, max_length=33, length_penalty=1.0, do_sample=False
            )[0]
            expected[name].append(tokenizer.decode(found, skip_special_tokens=True))
    (HERE / "expected.json").write_text(
        json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(float(loss), expected["greedy"], expected["source_ids"][-2:])


def make_h5():
    """Writes the weights as transformers 4 does on TensorFlow, without PyTorch."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    from safetensors.numpy import load_file
    from transformers import MarianConfig, TFMarianMTModel

    arrays = load_file(HERE / "model.safetensors")
    model = TFMarianMTModel(MarianConfig.from_pretrained(HERE))
    model(model.dummy_inputs)
    for weight in model.weights:
        if "embed_positions" in weight.name:
            continue
        name = re.sub(r".*(model\.shared|model/(en|de)coder|final_logits_bias)", r"\1", weight.name)
        name = name.removesuffix(":0").replace("/", ".").replace("embeddings", "weight")
        for theirs, ours in (("kernel", "weight"), ("gamma", "weight"), ("beta", "bias")):
            name = re.sub(rf"\.{theirs}$", f".{ours}", name)
        weight.assign(arrays[name].T if weight.name.endswith("kernel:0") else arrays[name])
    model.save_weights(HERE / "tf_model.h5")


if __name__ == "__main__":
    make_h5() if sys.argv[1:] == ["h5"] else make_model()
