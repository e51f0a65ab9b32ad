"""Joey NMT's command, adapted to a newer torch.

It has the arguments of `python -m joeynmt`.
"""

from joeynmt import builders
from joeynmt.__main__ import main


class Plateau(builders.ReduceLROnPlateau):
    """Plateau schedule without `verbose`, which torch 2.13 removed."""

    def __init__(self, *arguments, verbose=False, **options):
        del verbose
        super().__init__(*arguments, **options)


if __name__ == "__main__":
    builders.ReduceLROnPlateau = Plateau
    main()
