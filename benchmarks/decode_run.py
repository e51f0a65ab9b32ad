r"""Time of a trained run to translate real text, measured by turns.

    python benchmarks/decode_run.py runs/mine test.en --before ../checkout \
        --shortlist runs/mine/shortlist.txt --references test.de

Sentences have their natural lengths and end with `</s>`. "ours" searches all
words, "shortlist" the words of `--shortlist` (written by `luong-keras
lexicon`), "before" is ours of another checkout, with `--before-run` if it
cannot read runs of this one. The table has the times, the number of
translations that differ from "ours" and, with references, lower-cased BLEU.
"""

from pathlib import Path

from speed import driver


def main() -> None:
    """Print and write one table per batch size and beam size."""
    parser = driver.parser(__doc__, 5, 1, "ours")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("text", type=Path, help="a sentence a line, also .gz")
    parser.add_argument("--references", type=Path, help="the references")
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32])
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[10])
    parser.add_argument("--shortlist", type=Path)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--before-run", type=Path, help="the run, for it")
    options = parser.parse_args()
    driver.finish(options, "decode-run")
    from luong_keras.files.text_lines import read_lines

    lines = list(read_lines(options.text))[: options.sentences]
    if not lines:
        parser.error(f"Expected: sentences. Received: {options.text}, empty.")
    path = options.output / "decode-run-sentences.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    written = driver.Report(options)
    for beam_size in options.beam_sizes:
        for batch_size in options.batch_sizes:
            found = programs(options, path, batch_size, beam_size)
            results = driver.measure(found, options)
            written.environments(results)
            written.times(
                f"beam {beam_size}, batch {batch_size}",
                results,
                columns(options, len(lines)),
                f"{len(lines)} sentences",
            )
    written.write("Translations by a run")


def programs(options, path, batch_size, beam_size):
    """Return the requested programs: ours, with a shortlist, and before."""

    def program(name, variables, **others):
        arguments = {
            "run": str(options.run.resolve()),
            "sentences_file": str(path.resolve()),
            "batch_size": batch_size,
            "beam_size": beam_size,
            "found_file": str(driver.found_file(options, name)),
            **others,
        }
        return driver.Program(
            name, "ours_model:translating", arguments, variables=variables
        )

    found = [program("ours", {})]
    if options.shortlist is not None:
        shortlist = str(options.shortlist.resolve())
        found.append(program("shortlist", {}, shortlist=shortlist))
    if options.before is not None:
        run = str((options.before_run or options.run).resolve())
        variables = driver.of_checkout(options.before)
        found.append(program("before", variables, run=run))
    return found


def columns(options, count):
    """Return the tables' columns for the translations."""
    from luong_keras.files.text_lines import read_lines

    def texts(name):
        path = driver.found_file(options, name)
        return path.read_text("utf-8").split("\n")

    def changed(found):
        pairs = zip(texts("ours"), texts(found.program.name), strict=True)
        return sum(one != other for one, other in pairs)

    if options.references is None:
        return {"other than ours": changed}
    references = list(read_lines(options.references))[:count]
    bleu = driver.bleu_column(options, references)
    return {"other than ours": changed, "BLEU": bleu}


if __name__ == "__main__":
    main()
