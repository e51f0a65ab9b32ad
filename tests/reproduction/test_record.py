import pytest

from luong_keras import PRESETS, override
from reproduction.record import comparable_settings, read_record, write_record
from tests.reproduction.made_up_records import builtin_plan, record


def test_records_are_read_as_written(tmp_path):
    made = record("feed", 3, aer=0.2)
    path = tmp_path / "rows" / "feed-3.json"
    write_record(path, made)
    assert read_record(path) == made
    # One line per column and setting, for readable differences.
    lines = path.read_text().splitlines()
    assert any(line.startswith('"length": [5, ') for line in lines)
    assert 100 < len(lines) < 250


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a file that is damaged .* Remove the file"),
        (
            '{"form": 2}',
            "Expected: a record of format version 1 .*Received: .*base-1.json",
        ),
    ],
)
def test_damaged_records_are_refused(tmp_path, text, message):
    path = tmp_path / "base-1.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_record(path)


def test_differences_from_the_plan():
    made = record("base")
    config = builtin_plan().rows["base"].config
    made.settings["model.units"] = 7
    # In older records, settings that were added later have their default.
    del made.settings["model.cell_clip"]
    assert made.differences(config) == ["model.units"]
    # Scores do not depend on these settings.
    same = override(config, ["training.seed=9", "training.snapshot_steps=3"])
    assert made.differences(same) == ["model.units"]


def test_settings_that_no_longer_exist_are_left_out(tmp_path):
    made = record("base")
    old = record("base", settings={"data.gone": 1} | made.settings)
    write_record(tmp_path / "base-1.json", old)
    assert read_record(tmp_path / "base-1.json") == made


@pytest.mark.parametrize("trained", ["float32", "mixed_bfloat16", "auto"])
def test_auto_precision_accepts_any_precision(trained):
    made = record("base")
    made.settings["model.precision"] = trained
    config = builtin_plan().rows["base"].config
    assert made.differences(override(config, ["model.precision=auto"])) == []
    single = override(config, ["model.precision=float32"])
    differs = [] if trained == "float32" else ["model.precision"]
    assert made.differences(single) == differs


def test_records_of_several_training_files(tmp_path):
    files = ["data.dataset=files", 'data.train=["a.tsv", "b.tsv"]']
    config = override(PRESETS["small"], files)
    settings = comparable_settings(config)
    made = record("base", settings=settings)
    write_record(tmp_path / "base-1.json", made)
    assert read_record(tmp_path / "base-1.json").differences(config) == []


@pytest.mark.parametrize(
    "name, value, key, same",
    [
        ("decoding.beam_size", 7, "training_key", True),
        ("data.test_set", "wmt15", "training_key", True),
        ("model.units", 7, "training_key", False),
        ("data.lowercase", True, "reference_key", False),
        ("data.target_language", "fr", "reference_key", False),
        ("data.tokenizer", "sentencepiece", "reference_key", True),
        ("decoding.beam_size", 7, "reference_key", True),
    ],
)
def test_keys_depend_on_some_settings(name, value, key, same):
    one = record("base")
    other = record("base", settings=one.settings | {name: value})
    assert (getattr(other, key) == getattr(one, key)) == same


def test_another_text_is_another_training_run():
    one = record("base")
    other = record("base", text=one.text | {"corpus": "another"})
    assert other.training_key != one.training_key
