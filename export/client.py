"""Translates through a server that serves an export.

    python export/client.py "The old teacher opens the door."
    python export/client.py --url grpc://localhost:8500 < sentences.txt

Reads standard input where no sentence is given. `--n-best` and `--alignments`
print JSON lines instead of text. `--score` prints the log-probability of each
line of another file as the translation.
"""

import argparse
import json
import sys

from luong_keras import TranslationClient
from luong_keras.client import TranslationServerError
from luong_keras.evaluation import plot_alignment

LINES_A_CALL = 256  # are read before they are translated and printed


def main() -> None:
    """Runs what the command line asks for."""
    arguments = parser().parse_args()
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    sys.stdout.reconfigure(encoding="utf-8")
    with TranslationClient(
        arguments.url,
        arguments.model,
        arguments.version,
        timeout=arguments.timeout,
    ) as client:
        try:
            run(client, arguments)
        except (
            TranslationServerError,
            ImportError,
            ValueError,
            OSError,
        ) as error:
            sys.exit(f"error: {error}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("sentences", nargs="*", metavar="SENTENCE")
    options.add_argument(
        "--url",
        default="http://localhost:8501",
        help="http://HOST:PORT or grpc://HOST:PORT (default: %(default)s)",
    )
    options.add_argument(
        "--model",
        default="translator",
        help="its name on the server (default: %(default)s)",
    )
    options.add_argument(
        "--version",
        type=lambda text: int(text) if text.isdecimal() else text,
        help="number or label (default: the newest)",
    )
    options.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        help=f"seconds for {LINES_A_CALL} lines (default: %(default)s)",
    )
    options.add_argument("--beam-size", type=int, help="default: as exported")
    options.add_argument("--length-penalty", type=float)
    options.add_argument(
        "--prefix", help="words that every translation must begin with"
    )
    options.add_argument(
        "--n-best", type=int, default=1, help="translations a sentence"
    )
    options.add_argument(
        "--alignments",
        action="store_true",
        help="also the links [source position, target position] of each word",
    )
    options.add_argument(
        "--plot",
        metavar="FILE.png",
        help="draw the attention weights of the first sentence",
    )
    options.add_argument(
        "--score",
        metavar="TARGETS_FILE",
        help="print the log-probabilities of these translations",
    )
    return options


def run(client, arguments) -> None:
    """Prints the answers, and draws the first of them if asked to."""
    lines = arguments.sentences or read(sys.stdin)
    targets = None
    if arguments.score is not None:
        with open(arguments.score, encoding="utf-8", errors="replace") as file:
            targets = read(file)
        if len(targets) != len(lines):
            raise ValueError(
                f"Expected: {len(lines)} lines in {arguments.score}, one for "
                f"each sentence. Received: {len(targets)}."
            )
    for start in range(0, len(lines), LINES_A_CALL):
        part = slice(start, start + LINES_A_CALL)
        if targets is not None:
            drawn = print_scores(client, lines[part], targets[part])
        else:
            drawn = print_translations(client, lines[part], arguments)
        if arguments.plot is not None and start == 0 and drawn.tokens:
            plot_alignment(
                drawn.source_tokens,
                drawn.tokens,
                drawn.alignments,
                arguments.plot,
            )


def read(file) -> list[str]:
    """The lines of a file."""
    return [line.rstrip("\n") for line in file]


def print_scores(client, lines, targets):
    """Prints log-probabilities and returns the first line's result."""
    scored = client.score(lines, targets)
    for pair in scored:
        print(f"{pair.log_probability:.6f}")
    return scored[0]


def print_translations(client, lines, arguments):
    """Prints translations and returns the first one."""
    options = {
        "beam_size": arguments.beam_size,
        "length_penalty": arguments.length_penalty,
        "prefix": arguments.prefix,
    }
    as_json = arguments.n_best != 1 or arguments.alignments
    if not as_json and arguments.plot is None:
        for text in client.translate(lines, **options):
            print(text)
        return None
    found = client.nbest(lines, **options)
    for translations in found:
        if as_json:
            entries = [
                translation.as_dict(links=arguments.alignments)
                for translation in translations[: arguments.n_best or None]
            ]
            print(json.dumps(entries, ensure_ascii=False))
        else:
            print(translations[0].text)
    return found[0][0]


if __name__ == "__main__":
    main()
