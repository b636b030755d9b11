"""What a number names rather than counts: rooms, files, norms, places on the map, moves.

Regular expressions, linear as those in patterns. The tables of words are small: a label that is in
none of them may be parted from its number.
"""

from __future__ import annotations

import re

_LABELS = (
    r"days?|wards?|rooms?|items?|steps?|lines?|rows?|levels?|phases?|weeks?|gates?|chapters?|tables?"
    r"|figures?|tickets?|orders?|options?|grades?|workers?|nodes?|ports?|buildings?|suites?|apt\.?"
    r"|apartments?|flights?|sections?|sect?\.|paragraphs?|clauses?|exhibits?|annex"
    r"|appendix|seats?|platforms?"
    r"|tracks?|floors?|units?|lots?|parts?|volumes?|cases?|dockets?|articles?|terminal|invoices?|claims?"
    r"|zimmer|seite|schritt|zeile|tag|raum|gleis|haus|wohnung|tor|absatz|artikel|kapitel|etage|stock"
    r"|étape|ligne|salle|chambre|quai|voie|page|porte|bâtiment|paso|línea|sala|habitación|puerta|andén|piso"
    r"|дом|кв\.|комната|каб\.|кабинет|пункт|п\.|статья|ст\.|глава|этаж|платформа|путь"
)
_VALUE = r"(?:[A-Z]{1,2}-?)?\d{1,6}[A-Z]?(?:[-./][A-Z0-9]{1,8}){0,4}(?![\w]|[.,:/-]\d)"
_MOVE = r"(?:[KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](?:=[QRBN])?|O-O(?:-O)?)[+#]?[!?]{0,2}"
_MINUTES = r"[ ]?\d{1,2}(?:[.,]\d{1,6})?"
_PLACE = rf"\d{{1,3}}(?:[.,]\d{{1,9}})?°(?:{_MINUTES}[′'](?:{_MINUTES}[″\"])?)?[ \u00a0]?[NSEWO]\b"
_SIZE = r"\d{1,6}(?:[.,]\d{1,6})?"


def designations(unit: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return kinds and patterns; ``unit`` is the pattern of a unit of measurement."""
    return tuple(
        ("number", re.compile(pattern, flags))
        for pattern, flags in (
            (
                rf"(?<![\w.°-])[+-]?{_PLACE}(?:,?[ ][+-]?{_PLACE})?",
                0,
            ),
            (rf"(?<![\w-])(?:{_LABELS})[ ](?:(?:no|nr)\.?[ ])?{_VALUE}", re.IGNORECASE),
            (
                r"(?<![\w-])(?:[Ff]light[ ])?(?:[A-Z]{2,6}[ ]){1,2}(?=\d)\d[\w.:/-]{0,30}\w"
                r"|(?<![\w-])[A-Z]{2,6}[ ]\d(?![\w,])"
                r"|(?<![\w-])[B-HJ-Z][ ]\d{1,6}-\w{1,6}(?!\w)"
                r"|(?<!\w)[A-Z]{2}-\d{2,6}[ ][A-Z]{1,2}(?!\w)"
                r"|(?<!\w)(?:[QH][1-4]|FY|KW|CW)[ ](?:20)?\d{2}(?:/\d{2,4})?(?!\w)",
                0,
            ),
            (
                r"(?:(?<!\w)(?:Art\.|Artikel)|§{1,2})[ ]?\d{1,4}[a-z]?"
                r"(?:[ ](?:Abs\.|Absatz|Satz|S\.|Nr\.|lit\.|Buchst\.)[ ]?\w{1,4}){0,4}"
                r"(?:[ ][A-ZÄÖÜ][A-Za-zäöü]{0,8}[A-Z])?(?!\w)",
                0,
            ),
            (
                r"(?<!\w)(?:(?:Az|Rs)\.:?[ ])?(?:[IVX]{1,5}|\d{1,3})[ ]"
                r"[A-Z][A-Za-z]{0,3}[ ]\d{1,6}/\d{2,4}(?!\w)",
                0,
            ),
            (
                rf"(?<![\w.,]){_SIZE}(?:[ ]?[x×][ ]?{_SIZE}){{1,4}}"
                rf"(?:[ \u00a0]?{unit}(?!\w))?(?!\w)",
                0,
            ),
            (rf"(?<![\w.])\d{{1,3}}\.{{1,3}}[ ]?{_MOVE}(?:[ ]{_MOVE})?(?!\w)", 0),
            (
                r"(?<!\w)[A-Za-zα-ω]{1,2}[ ]?[<>=≤≥≈][ ]?[-−]?"
                r"\d{1,9}(?:[.,]\d{1,12})?(?![\w.,]?\d)",
                0,
            ),
            (rf"(?<!\w)(?:\d{{1,6}}[ ]?)?[½¼¾⅓⅔⅛][ ]?{unit}(?!\w)", re.IGNORECASE),
            (r"(?<![\w.])\d{1,3}[ ]?(?:ft|feet)\.?[ ]\d{1,2}(?:\.\d)?[ ]?(?:in|inches)\b\.?", 0),
        )
    )
