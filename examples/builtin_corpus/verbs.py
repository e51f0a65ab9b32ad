"""Verbs of the built-in English-German corpus.

The prefix of a separable verb is stored separately, because it is a separate
word in a main clause (`ruft ... an`) and joined elsewhere (`anruft`).
"""

from typing import NamedTuple


class Verb(NamedTuple):
    """A verb in both languages.

    `frame` lists its objects; `particle` is the second English word of a
    two-word verb, `prefix` the German separable prefix.
    """

    english: str
    third: str
    past: str
    participle: str
    german: str
    german_third: str
    german_past: str
    german_participle: str
    frame: str
    kinds: str = ""
    auxiliary: str = "have"
    prefix: str = ""
    particle: str = ""
    preposition: tuple[str, str] = ("", "")


def _verbs(frame: str, table: str) -> tuple[Verb, ...]:
    verbs = []
    # A line that is indented one column deeper continues the previous line.
    for line in table.replace("\n         ", " ").split("\n"):
        if line.strip():
            cells = line.split()
            extra = dict(cell.split("=") for cell in cells[8:])
            pair = extra.get("p", "/").split("/")
            english, _, particle = cells[0].partition("_")
            prefix, _, infinitive = cells[4].rpartition("|")
            auxiliary, _, participle = cells[7].rpartition(":")
            verbs.append(
                Verb(
                    english,
                    cells[1],
                    cells[2],
                    cells[3],
                    infinitive,
                    cells[5],
                    cells[6],
                    participle,
                    frame,
                    kinds=extra.get("k", ""),
                    auxiliary=auxiliary or "have",
                    prefix=prefix,
                    particle=particle,
                    preposition=(pair[0], pair[1]),
                )
            )
    return tuple(verbs)


# English base form (with its particle), third person, past, participle;
# German infinitive (with its separable prefix), third person, past,
# participle (with be: if the perfect takes sein).
VERBS = {
    frame: _verbs(frame, table)
    for frame, table in {
        "none": """
        sleep sleeps slept slept schlafen schläft schlief geschlafen
        work works worked worked arbeiten arbeitet arbeitete gearbeitet
        sing sings sang sung singen singt sang gesungen
        arrive arrives arrived arrived an|kommen kommt kam be:gekommen
        """,
        "direction": """
        walk walks walked walked gehen geht ging be:gegangen
        return returns returned returned zurück|kehren kehrt kehrte be:gekehrt
        """,
        "accusative": """
        buy buys bought bought kaufen kauft kaufte gekauft k=ia
        sell sells sold sold verkaufen verkauft verkaufte verkauft k=ia
        find finds found found finden findet fand gefunden k=pha
        see sees saw seen sehen sieht sah gesehen k=hai
        carry carries carried carried tragen trägt trug getragen k=p
        open opens opened opened öffnen öffnet öffnete geöffnet k=o
        repair repairs repaired repaired reparieren repariert reparierte
         repariert k=m
        visit visits visited visited besuchen besucht besuchte besucht k=h
        lock locks locked locked ab|schließen schließt schloss geschlossen k=l
        call calls called called an|rufen ruft rief gerufen k=h
        invite invites invited invited ein|laden lädt lud geladen k=h
        pick_up picks picked picked ab|holen holt holte geholt k=h
        switch_on switches switched switched ein|schalten schaltet schaltete
         geschaltet k=e
        """,
        "dative": """
        help helps helped helped helfen hilft half geholfen k=h
        thank thanks thanked thanked danken dankt dankte gedankt k=h
        follow follows followed followed folgen folgt folgte be:gefolgt k=ha
        """,
        "both": """
        give gives gave given geben gibt gab gegeben k=p
        show shows showed shown zeigen zeigt zeigte gezeigt k=ia
        send sends sent sent schicken schickt schickte geschickt k=p
        """,
        "preposition": """
        wait waits waited waited warten wartet wartete gewartet k=h p=for/auf
        think thinks thought thought denken denkt dachte gedacht k=hi p=of/an
        """,
        "that": """
        say says said said sagen sagt sagte gesagt
        believe believes believed believed glauben glaubt glaubte geglaubt
        know knows knew known wissen weiß wusste gewusst
        """,
        "whether": """
        ask asks asked asked fragen fragt fragte gefragt
        """,
        "to": """
        try tries tried tried versuchen versucht versuchte versucht
        forget forgets forgot forgotten vergessen vergisst vergaß vergessen
        promise promises promised promised versprechen verspricht versprach
         versprochen
        """,
    }.items()
}
