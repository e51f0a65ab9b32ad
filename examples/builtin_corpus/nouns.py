"""Nouns and adjectives of the built-in English-German corpus.

Genders are `m`, `f`, `n`; the plural has its own column of endings, `p`.
Kinds decide which nouns fit which verbs: doors are opened, aunts are
invited.
"""

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `oblique` is the weak noun's -n form."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    kinds: str
    genitive: str = ""
    oblique: str = ""


class Adjective(NamedTuple):
    """An adjective: its bare German form and the stem for endings."""

    english: str
    german: str
    stem: str


# Kinds: h human, a animal, i any thing, o opens, l can be locked,
# e electric, p portable, m a machine that can be repaired.
def _nouns(kinds: str, table: str) -> tuple[Noun, ...]:
    nouns = []
    for line in table.split("\n"):
        if line.strip():
            english, plural, gender, german, rest = line.split()[:5]
            extra = dict(cell.split("=") for cell in line.split()[5:])
            tags = kinds + extra.pop("k", "")
            nouns.append(
                Noun(
                    english.replace("_", " "),
                    plural.replace("_", " "),
                    gender,
                    german,
                    rest,
                    tags,
                    **extra,
                )
            )
    return tuple(nouns)


HUMANS = _nouns(
    "h",
    """
    teacher teachers m Lehrer Lehrer genitive=Lehrers
    brother brothers m Bruder Brüder genitive=Bruders
    uncle uncles m Onkel Onkel genitive=Onkels
    baker bakers m Bäcker Bäcker genitive=Bäckers
    boy boys m Junge Jungen genitive=Jungen oblique=Jungen
    neighbour neighbours m Nachbar Nachbarn genitive=Nachbarn oblique=Nachbarn
    sister sisters f Schwester Schwestern
    aunt aunts f Tante Tanten
    daughter daughters f Tochter Töchter
    queen queens f Königin Königinnen
    girl girls n Mädchen Mädchen genitive=Mädchens
    child children n Kind Kinder genitive=Kindes
    """,
)
ANIMALS = _nouns(
    "a",
    """
    dog dogs m Hund Hunde
    bird birds m Vogel Vögel
    cat cats f Katze Katzen
    horse horses n Pferd Pferde
    """,
)
THINGS = _nouns(
    "i",
    """
    letter letters m Brief Briefe k=op
    key keys m Schlüssel Schlüssel k=p
    coat coats m Mantel Mäntel k=p
    chair chairs m Stuhl Stühle k=p
    door doors f Tür Türen k=olm
    box boxes f Kiste Kisten k=op
    lamp lamps f Lampe Lampen k=epm
    cup cups f Tasse Tassen k=p
    clock clocks f Uhr Uhren k=pm
    book books n Buch Bücher k=op
    window windows n Fenster Fenster k=om
    car cars n Auto Autos k=olm
    picture pictures n Bild Bilder k=p
    radio radios n Radio Radios k=epm
    """,
)
# Compounds: two words in English, one in German.
COMPOUNDS = _nouns(
    "i",
    """
    car_key car_keys m Autoschlüssel Autoschlüssel k=p
    winter_coat winter_coats m Wintermantel Wintermäntel k=p
    garden_chair garden_chairs m Gartenstuhl Gartenstühle k=p
    love_letter love_letters m Liebesbrief Liebesbriefe k=op
    front_door front_doors f Haustür Haustüren k=olm
    coffee_cup coffee_cups f Kaffeetasse Kaffeetassen k=p
    kitchen_lamp kitchen_lamps f Küchenlampe Küchenlampen k=epm
    wine_bottle wine_bottles f Weinflasche Weinflaschen k=op
    school_book school_books n Schulbuch Schulbücher k=op
    picture_book picture_books n Bilderbuch Bilderbücher k=op
    """,
)
PLACES = _nouns(
    "",
    """
    garden gardens m Garten Gärten
    forest forests m Wald Wälder
    station stations m Bahnhof Bahnhöfe
    market markets m Markt Märkte
    kitchen kitchens f Küche Küchen
    city cities f Stadt Städte
    church churches f Kirche Kirchen
    house houses n Haus Häuser
    """,
)
# English and German prepositions of places; all other places take in/in.
PLACE_PREPOSITIONS = {"station": ("at", "an"), "market": ("at", "auf")}


def _adjectives(table: str) -> tuple[Adjective, ...]:
    rows = (cell.split("/") for cell in table.split())
    return tuple(Adjective(row[0], row[1], row[-1]) for row in rows)


HUMAN_ADJECTIVES = _adjectives(
    "old/alt young/jung small/klein tired/müde/müd friendly/freundlich"
    " famous/berühmt beautiful/schön"
)
THING_ADJECTIVES = _adjectives(
    "old/alt new/neu small/klein big/groß red/rot green/grün"
    " expensive/teuer/teur heavy/schwer beautiful/schön"
)
PLACE_ADJECTIVES = _adjectives(
    "old/alt new/neu small/klein big/groß dark/dunkel/dunkl beautiful/schön"
)
