"""BLEU of two runs by source length: the effect of attention.

Train both on the built-in corpus, then compare them:

    python examples/wmt14_train.py --run-dir runs/demo
    python examples/wmt14_train.py --run-dir runs/demo-no-attention \
        --set model.attention.kind=none
    python benchmarks/attention_by_length.py runs/demo runs/demo-no-attention

Neither system replaces unknown words, which needs attention.
"""

import dataclasses

from speed.command_line import make_parser

from luong_keras import Translator
from luong_keras.data import load_datasets
from luong_keras.evaluation import bleu_by_length, plot_length_analysis
from luong_keras.recipe.stored_settings import run_config


def main() -> None:
    """Translate the test pairs with both runs and print a table."""
    parser = make_parser(__doc__)
    parser.add_argument("with_attention")
    parser.add_argument("without_attention")
    parser.add_argument("--plot", help="file for a figure")
    arguments = parser.parse_args()
    folders = {
        "attention": arguments.with_attention,
        "no attention": arguments.without_attention,
    }
    coarse = {name: groups(path, (9, 30)) for name, path in folders.items()}
    print(f"{'source words':>14} {'sentences':>9}", *folders, "gap", sep="  ")
    for attended, other in zip(*coarse.values(), strict=True):
        words = f"{attended.low}-{attended.high or ''}"
        print(
            f"{words:>14} {attended.sentences:>9}  {attended.bleu:9.1f}  "
            f"{other.bleu:12.1f}  {attended.bleu - other.bleu:.1f}"
        )
    if arguments.plot:
        fine = {name: groups(path) for name, path in folders.items()}
        plot_length_analysis(fine, arguments.plot)
        print(arguments.plot)


def groups(run_dir, limits=(10, 20, 30, 40, 50)):
    """Return BLEU of one run for groups of source lengths."""
    config = run_config(run_dir)
    decoding = dataclasses.replace(config.decoding, replace_unknown=False)
    translator = Translator.from_run(run_dir, decoding=decoding)
    sources, references = zip(*load_datasets(config.data).test, strict=True)
    translations = translator.translate(sources)
    lengths = [len(source.split()) for source in sources]
    return bleu_by_length(lengths, translations, references, limits=limits)


if __name__ == "__main__":
    main()
