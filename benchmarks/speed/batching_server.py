"""The test double of TensorFlow Serving, with its batches and its printing.

Its options are those of `tests.serving.loopback_server`, and a file with the
parameters of batching.
"""

import sys
from pathlib import Path

# The double is in the tests, which are not installed.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from speed.server_answers import write  # noqa: E402
from speed.server_batching import Batching, read_parameters  # noqa: E402
from tests.serving import loopback_server  # noqa: E402
from tests.serving.loopback_session import CheckedSession  # noqa: E402
from tests.serving.loopback_version import Settings  # noqa: E402


def main():
    """Serve until a signal arrives."""
    parser = loopback_server.parser()
    parser.add_argument(
        "--batching-parameters-file",
        metavar="FILE",
        help="a BatchingParameters proto as text; without it no batching",
    )
    arguments = parser.parse_args()
    batching = None
    if arguments.batching_parameters_file:
        text = Path(arguments.batching_parameters_file).read_text()
        batching = Batching(read_parameters(text))

    def load(folder):
        session = CheckedSession(folder, arguments.threads)
        return session if batching is None else batching.wrap(session)

    loopback_server.serve(arguments, Settings(load, write))


if __name__ == "__main__":
    main()
