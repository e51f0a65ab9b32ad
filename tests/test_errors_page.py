"""Error messages that docs/errors.md quotes, compared with the source."""

import ast
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"
FOLDERS = (ROOT / "luong_keras", ROOT / "export" / "client")
# Text that a terminal prints before the message of an error.
BEGIN = re.compile(r"(?:luong-keras \w+: error|\w+Error): ")
# Shorter templates would match too many messages.
LEAST_LENGTH = 30
LEAST_SHARE = 0.4


def in_one_line(text):
    return " ".join(text.split())


def quoted_messages(text):
    """Yield the messages of the page, except those of other libraries."""
    text = re.sub(
        r"^<!-- from \w+ -->\n```\n.*?^```$", "", text, flags=re.S | re.M
    )
    for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.M):
        if found := BEGIN.match(block):
            yield in_one_line(block[found.end() :])
    for example in doctest.DocTestParser().get_examples(text):
        if example.exc_msg is not None:
            message = in_one_line(example.exc_msg.partition("```")[0])
            yield BEGIN.sub("", message, count=1)


def template(node):
    """Return the pattern and length of a string; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(in_one_line(node.value)), len(node.value)
    if not isinstance(node, ast.JoinedStr):
        return None
    fixed = [v.value for v in node.values if isinstance(v, ast.Constant)]
    # A mark represents each value until white space is normalised.
    marked = "".join(
        v.value if isinstance(v, ast.Constant) else "\0" for v in node.values
    )
    pattern = re.escape(in_one_line(marked)).replace(re.escape("\0"), ".*?")
    return pattern, len("".join(fixed))


def templates():
    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                found = template(node)
                if found is not None and found[1] >= LEAST_LENGTH:
                    yield re.compile(found[0])


def share_found(message, patterns):
    """Return the share of a message that strings of the source match."""
    found = set()
    for pattern in patterns:
        if match := pattern.search(message):
            found.update(range(*match.span()))
    return len(found) / len(message)


def test_every_quoted_message_is_in_the_source():
    messages = list(quoted_messages(PAGE.read_text("utf-8")))
    assert len(messages) >= 17
    patterns = list(templates())
    # The rest of a message is values, such as addresses or example pairs.
    stale = [m for m in messages if share_found(m, patterns) < LEAST_SHARE]
    assert not stale


def test_changed_messages_are_noticed():
    node = ast.parse("f'`{name}` must be {what}, True = use.'").body[0].value
    pattern, size = template(node)
    assert size == len("`` must be , True = use.")
    assert re.match(pattern, "`mask` must be boolean, True = use. Received: 1")
    assert not re.match(pattern, "`mask` must be boolean, False = use.")
