"""Words that carry little or much, in the languages prompts are mostly written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: Mapping[str, frozenset[str]] = {
    "en": _words(
        """
        a about above after again all also am an and any are as at be because been before being
        below between both but by can could did do does doing down during each even few for from
        further had has have having he her here hers him his how i i'd i'll i'm i've if in into
        is it it's its itself just let like me more most much my myself of off on once only or
        other our out over own really same she should so some such than that that's the their
        theirs them then there there's these they they're this those through to too under until
        up us very was we we'd we'll we're we've were what when where which while who whom whose
        why will with would you you'd you'll you're you've your yours 'm 're 's 've 'd 'll got
        get going go gonna kind sort thing things quite rather maybe perhaps well mean know
        actually basically right
        """
    ),
    "de": _words(
        """
        aber als also am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem
        den der des die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem
        einen einer eines er es etwas euch für hat hatte hatten hier ich ihm ihn ihr ihre im in
        ins ist ja jede jeden jeder jedes kann können man mehr mein meine mich mir mit muss nach
        noch nun nur ob oder sehr sein seine sich sie sind so soll über um und uns unser unter
        vom von vor war waren warum was weil welche wenn wer werden wie wieder wir wird wo wurde
        wurden zu zum zur zwischen
        """
    ),
    "fr": _words(
        """
        à afin ai ainsi alors après au aucun aussi autre aux avec avoir c'est ce cela celle
        celui ces cet cette ceux chaque comme comment d'un d'une dans de des donc dont du elle
        elles en encore entre est et été être eux fait il ils je l la le les leur leurs lui ma
        mais me même mes moi mon nos notre nous on ont ou où par parce peu plus pour pourquoi
        qu'il quand que quel quelle qui s'il sa se ses si soit son sont sous sur ta te tes toi
        ton tous tout très tu un une vos votre vous y
        """
    ),
    "es": _words(
        """
        a al algo algunos ante antes aquí así aunque como con contra cual cuando de del desde
        donde durante el él ella ellas ellos en entre era es esa ese eso esta está están este
        esto estos fue fueron ha había han hasta hay la las le les lo los más me mi mis muy nos
        nosotros o os otra otro para pero por porque que qué quien se ser si sí sobre son su sus
        también tan te tiene todo todos tu un una uno unos y ya yo
        """
    ),
    "it": _words(
        """
        a abbiamo ad agli ai al alla alle anche ancora avere c'è che chi ci come con cosa da
        dagli dal dalla dei del della delle di dove e è ed era essere fra gli ha hanno ho i il
        in io l la le lei lo loro lui ma mi molto ne nei nel nella noi o ogni per perché più poi
        quale quando quello questa questo qui se si sia sono su sua sue sul sulla suo tra tu
        tutti tutto un una uno vi voi
        """
    ),
    "pt": _words(
        """
        a ao aos as até com como da das de dela dele do dos e é ela elas ele eles em entre era
        essa esse esta está este eu foi há isso isto já lhe mais mas me mesmo meu minha muito na
        nas no nos nós o os ou para pela pelo por porque quando que quem se ser seu sua são
        também te tem um uma você vos
        """
    ),
    "nl": _words(
        """
        aan al alles als altijd bij daar dan dat de der deze die dit doch doen door dus een en
        er ge haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan
        kunnen maar me meer men met mij mijn moet na naar nog nu of om omdat onder ons ook op
        over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat we wel werd
        wie wij wil worden zal ze zelf zich zij zijn zo zonder zou
        """
    ),
    "ru": _words(
        """
        а бы был была были было быть в вам вас во вот все всё всех вы где да для до его ее её
        если есть еще ещё же за здесь и из или им их к как ко когда кто ли мне мы на над нас
        него она они оно от о об по под при с со так также такой там то того тоже только ты у
        уже что чтобы чем эта эти это этот я
        """
    ),
    "ar": _words(
        """
        في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم أن إن كان كانت قد ثم أو و
        كل بعد قبل عند حيث كما ما يمكن أي بين هنا هناك لكن أيضا أيضًا
        """
    ),
    "hi": _words(
        """
        का के की को में से है हैं और यह वह पर ने था थे थी इस उस भी तो ही कर एक हो जो या लिए साथ
        अपने
        """
    ),
}
"""Function words by language."""

FILLERS = _words(
    """
    um uh uhm mm hmm hm mm-hmm uh-huh huh yeah yep okay ok oh ah er erm anyway äh ähm euh eh
    este pues {vocalsound} {disfmarker} {gap} {pause}
    """
)
"""Sounds of speech: said, but nothing meant."""

NEGATIONS = _words(
    """
    no not never none nobody nothing neither nor nowhere without cannot except unless n't hardly
    deny denies denied denying lack lacks lacked lacking
    nicht kein keine keinen keinem keiner keinesfalls keineswegs nie niemals niemand nichts ohne
    weder außer ne pas
    jamais rien aucun aucune sans sauf personne nunca jamás nada nadie ningún ninguno sin não
    nem nenhum sem non mai niente nessuno senza niet geen nooit niets не нет ни без никогда ні
    ніколи nie żaden żadna żadne nigdy bez inte ikke ikkje ingen inga inget aldrig aldri utan uden
    δεν μην όχι χωρίς لا ليس لم لن غير بدون नहीं न मत 不 没 無 非 勿
    """
)
"""Words that turn a sentence around: they stay while any word of their sentence does."""

LIMITS = _words(
    """
    if unless until till except only rather instead barely hardly fewer few
    wenn falls sofern solange bis außer nur statt anstatt kaum wenige höchstens mindestens
    si jusqu'à jusqu'au sauf seulement uniquement plutôt sinon peu
    hasta excepto salvo sólo solo solamente únicamente apenas pocos pocas
    """
)
"""Words that limit a statement: it is another one without them. They stay as negations do."""

BINDERS = (
    NEGATIONS
    | LIMITS
    | _words(
        """
        dont doesnt didnt isnt wasnt wont cant shouldnt before after than less more under over
        would could should might must may shall i'd he'd she'd we'd you'd they'd it'd
        bevor nachdem ehe weniger mehr könnte könnten sollte sollten würde würden
        müsste müssten dürfte dürften muss müssen darf dürfen soll sollen
        avant après moins plus pourrait pourraient devrait devraient serait seraient aurait auraient
        doit doivent
        antes después menos más podría podrían debería deberían sería serían habría habrían debe
        deben
        """
    )
)
"""Words that turn or limit what follows, in languages written with spaces."""

PHRASES: Mapping[str, frozenset[str]] = {
    "at": _words("most least"),
    "no": _words("longer"),
    "up": _words("to"),
    "other": _words("than"),
    "bis": _words("zu"),
    "au": _words("moins plus"),
    "al": _words("menos"),
    "como": _words("máximo mínimo"),
}
"""Binders of two words: the first, and what makes it one."""

DENIALS: Mapping[str, frozenset[str]] = {
    "far": _words("from"),
    **dict.fromkeys(["fail", "fails", "failed", "failing"], _words("to")),
    **dict.fromkeys(["refuse", "refuses", "refused", "refusing"], _words("to")),
}
"""Negators of two words, as ``PHRASES`` are binders."""

AUXILIARIES = _words(
    """
    do does did can could will would shall should may might must is are was were am has have had
    """
)
"""Verbs that are one with a *not* after them, and with the verb behind it."""

DEADLINES = _words(
    """
    before after until till by since vor nach bis seit ab spätestens frühestens avant après depuis
    dès antes después hasta desde prima dopo fino entro dal до после с по antes após até
    """
)
"""Words that stay with the date or number after them."""

CLAUSES: tuple[str, ...] = (
    "provided that", "as long as", "so long as", "on condition that", "in case", "only if",
    "es sei denn", "außer wenn", "nur wenn", "vorausgesetzt dass", "solange bis",
    "à moins que", "à moins de", "à condition que", "pourvu que", "sauf si", "tant que",
    "a menos que", "a no ser que", "siempre que", "con tal de que", "salvo que",
    "a meno che", "a condizione che", "a patto che", "salvo che", "tranne se", "solo se",
    "если только", "при условии что", "до тех пор пока", "только если", "разве что",
    "a não ser que",
)  # fmt: skip
"""Conditions of several words: each is one, and what stands around it is nothing without it."""

_SPLIT = [one.split() for one in CLAUSES]
_CLAUSES = {first: [one for one in _SPLIT if one[0] == first] for first, *_ in _SPLIT}
_MOST = max(map(len, _SPLIT))

RELATIVES = _words(
    """
    which who whom whose that where der die das den dem deren dessen welche welcher welches qui que
    dont quien quienes che cui который которая которое которые которого которой которых
    """
)
"""Words that begin a relative clause after a comma."""

YEARS = _words(
    """
    in since of by until before after year im seit jahr ab en depuis année an desde año nel dal
    anno в с году
    """
)
"""Words after which a number of four digits is a year."""

QUALITIES = _words(
    """
    new old other more further different separate large small big good full whole total open first
    last long short young major minor free extra business calendar non
    nouveaux nouvelles autres grands grandes petits petites premiers premières derniers dernières
    jeunes bons bonnes nuevos nuevas otros otras primeros primeras últimos últimas grandes pequeños
    nuovi nuove altri altre grandi piccoli primi prime ultimi ultime giovani
    """
)
"""Words that may stand between a number and what it counts."""

RATES = _words("per pro par por each every")
"""Words before what an amount is of."""

_TIMES = {
    "a": "second minute hour day night week month quarter year time piece",
    "an": "hour",
    "am": "tag",
    "im": "jahr monat",
    "al": "día mes año giorno mese",
    "à": "heure",
    "par": "an",
    "la": "semana",
    "l'": "heure",
    "в": "секунду минуту час день сутки неделю месяц год",
}
FREQUENCIES: Mapping[str, frozenset[str]] = {
    time: frozenset(link for link, times in _TIMES.items() if time in times.split())
    for time in " ".join(_TIMES.values()).split()
}
"""Spans of time, and the small words that make an amount a rate before them."""

WHO = _words("who whom whose wer wem wen wessen qui quién quiénes chi quem wie кто")
"""Question words that ask for a name."""

HOW_MANY = _words(
    "when many much old long far date year wann wieviel viele viel combien quand cuándo cuánto"
    " cuántos quando quanto quanti когда сколько"
)
"""Question words that ask for a number or a date."""

LINKS = _words(
    """
    ever yet always still been be am is are was were have has had to of the a an any anyone anything
    much many so as by it he she they we you i their his her its our your my this that
    будет будут буду будем может могут могла должен должна должны стал стала быть
    wird werden wurde wurden ist sind hat haben kann können mehr noch
    est sont sera seront serait peut peuvent plus encore été
    será serán es son puede pueden ha han sido está están
    è sono sarà può possono stato stata pode podem foi são
    zal zullen kan kunnen mag wordt worden is zijn zostanie będzie może ska kan kommer skal vil blir
    bliver är er буде може θα
    """
)
"""Words that stand between a binder and what it governs, also where a text is in no language."""

CONDITIONS = _words("if wenn falls sofern solange si s'il s'ils se als")
"""Limits that are nothing without all of their clause: a negation in it stays with them."""

EXCEPTIONS = _words(
    """
    unless except until till only außer bis nur sofern solange sauf jusqu'à jusqu'au excepto salvo
    hasta sólo solamente únicamente
    """
)
"""Limits without which what stands before them is another statement."""

CONTRASTS = _words(
    """
    but because although though whereas while however aber sondern weil obwohl denn mais car parce
    puisque pero sino porque aunque mas ma perché maar но а
    """
)
"""Words that begin a clause of its own, which a negation before them does not reach."""

OPENINGS = _words(
    """
    and so then which who when where there these those the here und dann der die das ich er sie wir
    et puis qui je il elle nous vous y entonces que quien yo él ella
    """
)
"""Words that may begin a clause after a comma."""

SIGNALS = _words(
    """
    error errors failed failure fail fails exception fatal critical panic warning warn denied
    refused timeout timed crash crashed abort aborted invalid missing must required important
    decision decided deadline agreed action todo because therefore however only fehler warnung
    wichtig erreur avertissement advertencia ошибка 错误 警告 重要 エラー
    """
)
"""Words that announce what people look for."""


def is_negation(word: str) -> bool:
    """Whether a word in lower case turns its sentence around.

    >>> is_negation("doesn't"), is_negation("n'est"), is_negation("note")
    (True, True, False)
    """
    return word in NEGATIONS or word.endswith("n't") or (word[:2] == "n'" and len(word) > 2)


def turns(word: str) -> bool:
    """Whether a statement without this word, in lower case, would be another one."""
    return word in LIMITS or is_negation(word)


def denies(words: Sequence[str]) -> bool:
    """Whether words in lower case hold one that turns, or two that do together.

    >>> denies("far from it".split()), denies("so far".split())
    (True, False)
    """
    return any(map(turns, words)) or any(b in DENIALS.get(a, ()) for a, b in pairwise(words))


def clause(words: Sequence[str]) -> int:
    """Return how many words in lower case, from the first on, are one of ``CLAUSES``.

    >>> clause("à moins qu'il vienne".split()), clause("à moins".split())
    (3, 0)
    """
    near = ["que" if word.startswith("qu'") else word for word in words[:_MOST]]
    return max(
        (len(one) for one in _CLAUSES.get("".join(near[:1]), ()) if near[: len(one)] == one),
        default=0,
    )


def binds(word: str) -> bool:
    """Whether a word in lower case governs the next content word."""
    return word in BINDERS or is_negation(word)


def language(words: Iterable[str]) -> str:
    """Return the language whose stop words are most often among the words, English if none.

    >>> language("das ist der Hund und die Katze".split())
    'de'
    """
    seen = list(words)
    scores = {name: sum(word in stop for word in seen) for name, stop in STOP_WORDS.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > scores["en"] else "en"
