"""BLEU of n-best lists: reranked, nearest to the references, averaged weights.

    python benchmarks/nbest_lists.py RUN SOURCES REFERENCES \
        --reverse REVERSE-RUN --average FINE-TUNED-RUN --nearest NEAREST.de

The reverse run translates in the other direction. The mean log-probability a
word that it gives the source, times a weight, is added to the score of each
translation. A file of the translations that are nearest to the references, by
sentence BLEU, is a target text for `luong-keras train --init-from RUN`.
"""

from pathlib import Path
from statistics import mean

import sacrebleu
from speed.command_line import make_parser

from luong_keras import Translator

WEIGHTS = (0, 0.1, 0.2, 0.3, 0.5)


def main() -> None:
    """Translate the sources and print the scores that the options name."""
    parser = make_parser(__doc__)
    parser.add_argument("run")
    parser.add_argument("sources", type=Path)
    parser.add_argument("references", type=Path)
    parser.add_argument("--n-best", type=int, default=10)
    parser.add_argument("--reverse", help="run of the other direction")
    parser.add_argument("--average", help="run whose weights are averaged in")
    parser.add_argument("--nearest", type=Path, help="file to write")
    options = parser.parse_args()
    sources = options.sources.read_text("utf-8").splitlines()
    references = options.references.read_text("utf-8").splitlines()
    translator = Translator.from_run(options.run)
    if options.average:
        model = translator.translation_model.model
        other = Translator.from_run(options.average).translation_model.model
        pairs = zip(model.get_weights(), other.get_weights(), strict=True)
        model.set_weights([(first + second) / 2 for first, second in pairs])
    lists = [
        {translation.text: translation.score for translation in nbest}
        for nbest in translator.nbest(
            sources, beam_size=options.n_best, n_best=options.n_best
        )
    ]
    print(
        "BLEU of the best:",
        bleu([max(x, key=x.get) for x in lists], references),
    )
    if options.reverse:
        rerank(lists, sources, references, Translator.from_run(options.reverse))
    if options.nearest:
        write_nearest(lists, references, options.nearest)


def rerank(lists, sources, references, reverse):
    """Print the BLEU with each weight of the reverse scores."""
    pairs = [
        (t, s) for s, nbest in zip(sources, lists, strict=True) for t in nbest
    ]
    scored = iter(reverse.score(*map(list, zip(*pairs, strict=True))))
    backward = [
        {text: per_word(next(scored)) for text in nbest} for nbest in lists
    ]
    for weight in WEIGHTS:
        chosen = [
            max(nbest, key=lambda text: nbest[text] + weight * back[text])  # noqa: B023
            for nbest, back in zip(lists, backward, strict=True)
        ]
        print(f"reranked, weight {weight}:", bleu(chosen, references))


def per_word(scored):
    """Return the mean log-probability of the words of a translation."""
    return scored.log_probability / len(scored.tokens)


def write_nearest(lists, references, path):
    """Write the translation nearest to each reference, and print scores."""
    scores = [
        {text: sentence_bleu(text, reference) for text in nbest}
        for nbest, reference in zip(lists, references, strict=True)
    ]
    nearest = [max(found, key=found.get) for found in scores]
    path.write_text("".join(f"{text}\n" for text in nearest), "utf-8")
    print("BLEU of the nearest:", bleu(nearest, references))
    best = mean(next(iter(found.values())) for found in scores)
    print(f"mean sentence BLEU of the best: {best:.1f}")
    print(f"of the nearest: {mean(max(x.values()) for x in scores):.1f}")


def sentence_bleu(text, reference):
    """Return the BLEU of one sentence, lower-cased."""
    return sacrebleu.sentence_bleu(text, [reference], lowercase=True).score


def bleu(texts, references):
    """Return the BLEU of a text, lower-cased, in two decimals."""
    score = sacrebleu.corpus_bleu(texts, [references], lowercase=True).score
    return f"{score:.2f}"


if __name__ == "__main__":
    main()
