"""Time of the forms of attention by source and target length, by turns.

    python benchmarks/which_attention.py

One forward and backward pass through a decoder of one LSTM layer on a given
memory, without the encoder and the output layer, which all forms share. The
last table has the time of each form relative to general attention with input
feeding (the median over the rounds), and its parameters at U = M = 512.
`docs/which_attention.md` discusses the results.
"""

import statistics

from speed import attention_forms, driver

SIZES = (8, 256, 10)  # B, U, D
LENGTHS = ("14x14", "256x14", "2048x14", "256x112")  # S x T
WIDTH, MAX_LENGTH = 512, 50  # sizes for the count of parameters


def main() -> None:
    """Print and write a table per pair of lengths, and a summary."""
    parser = driver.parser(__doc__, 7, 2, "general")
    parser.add_argument("--lengths", nargs="+", default=LENGTHS, metavar="SxT")
    parser.add_argument(
        "--forms",
        nargs="+",
        choices=attention_forms.FORMS,
        default=attention_forms.FORMS,
    )
    options = parser.parse_args()
    driver.finish(options, "which_attention")
    written = driver.Report(options)
    relative = {form: [] for form in options.forms}
    for lengths in options.lengths:
        source, target = map(int, lengths.split("x"))
        programs = [
            driver.Program(
                form,
                "attention_forms:training",
                {
                    "form": form,
                    "source_length": source,
                    "target_length": target,
                    "sizes": SIZES,
                },
            )
            for form in options.forms
        ]
        results = driver.measure(programs, options)
        written.environments(results)
        written.times(f"S = {source}, T = {target}", results)
        reference = driver.reference_of(results, options)
        for form, numbers in relative.items():
            if form in results:
                faster = driver.ratios(results, form, reference, options.clock)
                numbers.append(f"{1 / statistics.median(faster):.2f}")
            else:
                numbers.append("-")
    written.say(f"Time by that of {options.reference}, for S x T, parameters")
    written.table(
        ["form", *options.lengths, f"parameters at {WIDTH}"],
        [
            [
                form,
                *numbers,
                attention_forms.count_parameters(form, WIDTH, MAX_LENGTH),
            ]
            for form, numbers in relative.items()
        ],
    )
    written.write("Forms of attention, forward and backward")


if __name__ == "__main__":
    main()
