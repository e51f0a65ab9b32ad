"""Training and scores of one model on Multi30k English-German.

    LUONG_KERAS_DATA=folder python benchmarks/multi30k.py
    LUONG_KERAS_DATA=folder python benchmarks/multi30k.py --cased
    LUONG_KERAS_DATA=folder python benchmarks/multi30k.py --preset small-fast

`folder/multi30k` holds train, val and test_2016_flickr as `.en.gz` and
`.de.gz`. sacremoses normalises the punctuation and tokenises the text, which is
lower-cased unless `--cased`. The model is chosen on val; test 2016 is scored
once, with a beam of 10. The scores are in `results.jsonl` of the run:
`bleu_tokenized` compares tokenised text, `bleu` and `bleu_lowercase`
detokenised text with the original references. For several seeds and models see
`examples/reproduction/plans/multi30k_small.yaml`.
"""

import subprocess
import sys

from speed.command_line import data_folder, make_parser


def main() -> None:
    """Run the command with the settings of this benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--preset", choices=("small", "small-fast"), default="small"
    )
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--run-dir", help="default: runs/multi30k[-cased]")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE"
    )
    arguments = parser.parse_args()
    corpus = data_folder("multi30k")
    name = "multi30k-cased" if arguments.cased else "multi30k"
    settings = [
        f"data.train={corpus / 'train'}",
        f"data.dev={corpus / 'val'}",
        f"data.test={corpus / 'test_2016_flickr'}",
        "data.normalize_punctuation=true",
        "data.tokenize=true",
        f"data.lowercase={str(not arguments.cased).lower()}",
        *arguments.set,
    ]
    command = [sys.executable, "-m", "luong_keras", "train"]
    command += ["--preset", arguments.preset]
    command += ["--run-dir", arguments.run_dir or f"runs/{name}"]
    command += ["--set", *settings]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
