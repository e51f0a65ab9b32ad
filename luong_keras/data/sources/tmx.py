"""Translation memories and test sets: TMX and WMT's XML.

No widely maintained TMX package streams, so this module reads the elements
with lxml, which sacreBLEU depends on. Entities are refused: with them, a small
file can become huge, or include other files of this machine.
"""

import functools
import html
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from luong_keras.data.sources.columns import RequestedColumns, describe_columns
from luong_keras.data.sources.source_kinds import (
    PlacedPair,
    TextSource,
    make_pair,
    one_line,
)
from luong_keras.files.text_lines import (
    open_decompressed,
    without_compression,
)
from luong_keras.missing_package import needs

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNITS_SEARCHED = 100  # units searched for the languages
# Elements that contain codes of the program in which the text was written.
_CODES = ("bpt", "ept", "it", "ph", "ut", "sub")


def open_tmx(path: Path, requested: RequestedColumns) -> TextSource:
    """Open a file of units; the languages must be in its first units."""
    names = []
    for _, unit in itertools.islice(_read_units(path), _UNITS_SEARCHED):
        names += [name for name in unit if name not in names]
    languages = _complete_languages(requested.languages, names)
    reason = "by the languages"
    if requested.columns is not None:
        languages, reason = requested.columns, "as data.columns says"
    sides = (languages, languages[::-1])
    codes = [name for side in sides for name in _side_names(names, *side)[:1]]
    if len({*codes}) < 2:
        raise ValueError(
            f"{path} lacks one of the languages in its first {_UNITS_SEARCHED} "
            f"units. Expected: {requested.description}. Received: "
            f"{', '.join(names) or 'no unit'}. Set data.source_language and "
            "data.target_language, or data.columns."
        )
    indices = names.index(codes[0]), names.index(codes[1])
    columns = describe_columns(names, indices, path.name, reason)
    return TextSource(
        functools.partial(_read_tmx, path, [*zip(codes, sides, strict=True)]),
        columns.note,
        columns.languages,
    )


def _complete_languages(
    languages: tuple[str | None, str | None], names: list[str]
) -> tuple[str, str]:
    """Replace an unknown language by the only other one, or by ""."""
    source, target = languages
    known = source or target or ""
    others = {
        re.split("[-_]", name.lower())[0]
        for name in names
        if not _matches_language(name, known)
    }
    other = others.pop() if len(others) == 1 else ""
    return source or other, target or other


def _read_tmx(
    path: Path,
    sides: Sequence[tuple[str, tuple[str, str]]],
    skip_bad_lines: bool,
) -> Iterator[PlacedPair]:
    """Read the pairs of a file; `sides` are codes with both languages.

    A unit without the code has another variant of the first language.
    """
    for number, (line, unit) in enumerate(_read_units(path), start=1):
        source, target = (
            unit.get(code)
            or next((unit[name] for name in _side_names(unit, *side)), None)
            for code, side in sides
        )
        yield make_pair(
            source,
            target,
            f"{path.name}:{line}",
            not skip_bad_lines,
            f"Unit {number} of {path}, line {line},",
        )


def _side_names(names: Iterable[str], language: str, other: str) -> list[str]:
    """Return the codes of a side, that of the language itself first.

    Codes of a variant that the other side requests are not of this side.
    """
    found = [
        name
        for name in names
        if _matches_language(name, language)
        and (len(other) <= len(language) or not _matches_language(name, other))
    ]
    return sorted(found, key=lambda name: len(name) > len(language))


def _matches_language(name: str, language: str) -> bool:
    """Test whether a code names a language, with or without a country."""
    name, language = (
        code.lower().replace("_", "-") for code in (name, language)
    )
    return name == language or name.startswith(f"{language}-")


def _read_units(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the texts by language of each unit or segment."""
    with needs("lxml"):
        from lxml import etree
    with open_decompressed(path) as file:
        try:
            for _, unit in etree.iterparse(
                file,
                tag=("tu", "{*}tu", "doc"),
                resolve_entities=False,
                load_dtd=False,
                no_network=True,
            ):
                _refuse_entities(unit, path)
                if unit.tag == "doc":
                    yield from _wmt_segments(unit)
                else:
                    yield unit.sourceline, _unit_texts(unit)
                unit.clear()
                # Otherwise empty earlier units would fill the memory.
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
        except etree.XMLSyntaxError as error:
            log_entry = error.error_log.last_error
            problem = (
                f"line {log_entry.line}: {log_entry.message}"
                if log_entry
                else str(error)
            )
            kind = without_compression(path)[-3:].upper()
            raise ValueError(
                f"{path} is not a complete {kind} file ({problem}). Get it "
                "again, or export it again from the program that wrote it."
            ) from error


def _refuse_entities(unit: Any, path: Path) -> None:
    info = unit.getroottree().docinfo
    has_entities = info.internalDTD is not None and any(
        True for _ in info.internalDTD.iterentities()
    )
    if has_entities:
        raise ValueError(
            f"{path} declares entities in its DOCTYPE, which are not "
            "resolved. Expected: a TMX file without `<!ENTITY …>`. Write it "
            "again without them."
        )


def _unit_texts(unit: Any) -> dict[str, str]:
    texts: dict[str, str] = {}
    for variant in unit.iterchildren("{*}tuv"):
        name = variant.get(_LANGUAGE) or variant.get("lang")
        segment = next(variant.iterchildren("{*}seg"), None)
        if name and segment is not None:
            texts.setdefault(name, one_line("".join(_text_runs(segment))))
    return texts


def _wmt_segments(document: Any) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield WMT's segments by number: the source and first references."""
    units: dict[str, tuple[int, dict[str, str]]] = {}
    for side in document.iterchildren("src", "ref"):
        name = side.get("lang", side.tag)
        for number, segment in enumerate(side.iter("seg"), start=1):
            unit = segment.get("id", str(number))
            _, texts = units.setdefault(unit, (segment.sourceline, {}))
            texts.setdefault(name, one_line("".join(_text_runs(segment))))
    yield from units.values()


def _text_runs(element: Any) -> Iterator[str]:
    """Yield the text of a segment without the codes in it."""
    yield element.text or ""
    for child in element:
        tag = child.tag
        # The tag of a comment or an entity is the function that makes it.
        if not isinstance(tag, str):
            yield html.unescape(child.text) if tag.__name__ == "Entity" else ""
        elif tag.rpartition("}")[2] not in _CODES:
            yield from _text_runs(child)
        yield child.tail or ""
