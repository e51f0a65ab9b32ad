"""Run folders with invented logs, scores and translations."""

import json

from luong_keras.config.values import config_to_dict, with_values
from luong_keras.presets import PRESETS
from luong_keras.training.run_folder import RunFolder

PAIRS = [
    ("the cat sees a dog .", "die Katze sieht einen Hund ."),
    ("a house", "ein Haus"),
    ("the dog", "der Hund"),
    ("the old man sees the small house", "der alte Mann sieht das kleine Haus"),
    ('<b>bold</b> & "quoted"', "<script>alert('x')</script>"),
    ("a dog in a house", "ein Hund in einem Haus"),
]
GOOD = [target for _, target in PAIRS]
BAD = [
    "die Katze",
    "ein Haus",
    "Haus",
    "der Mann sieht",
    "<img src=x onerror=alert(1)>",
    "ein Hund",
]


def made_up_run(
    path, translations=None, pairs=PAIRS, epochs=3, sessions=True, **settings
):
    run = RunFolder(path)
    config = with_values(PRESETS["demo"], {"epochs": 5, **settings})
    run.write_config(config_to_dict(config))
    logs = [
        {
            "epoch": number,
            "loss": 3.0 / number,
            "val_loss": 3.5 / number,
            "word_perplexity": 20.0 / number,
            "val_word_perplexity": 25.0 / number,
            "val_bleu": None if number == 1 else 10.0 * number,
            "learning_rate": 0.5**number,
            "tokens_per_second": 1000.0 * number,
        }
        for number in range(1, epochs + 1)
    ]
    run.log.write_text("".join(json.dumps(line) + "\n" for line in logs))
    rows = [json.dumps([*pair, None], ensure_ascii=False) for pair in pairs]
    run.test.write_text("".join(f"{row}\n" for row in rows))
    if translations is not None:
        run.translations.write_text("".join(f"{t}\n" for t in translations))
        results = {"set": "test", "weights": "best", "perplexity": 4.25}
        run.results.write_text(json.dumps(results | {"aer": 0.125}) + "\n")
    if sessions:
        machine = {"processor": "A processor, 7 cores", "devices": "1 × cpu"}
        session = {"steps": 5, "began": "2026-01-01", "machine": machine}
        lines = [session | {"seconds": s} for s in (3600.0, 120.0)]
        run.sessions.write_text("".join(json.dumps(x) + "\n" for x in lines))
    return run
