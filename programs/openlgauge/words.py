"""The words of error annotations in the languages that models answer in: names of fields, severities, omissions.

A location line may hold quotes, several places, an ellipsis, a comment or an omission; `read_places` tells them apart.
"""

from __future__ import annotations

import re


def _names(words: str) -> str:
    """Alternatives of names that are given with `|` between them, longest first; a space stands for spaces, hyphens
    and underscores."""
    names = {" ".join(word.split()) for word in words.split("|")} - {""}
    return "|".join(re.escape(name).replace(r"\ ", r"[ \t_-]+") for name in sorted(names, key=lambda n: (-len(n), n)))


# --- a line of location ----------------------------------------------------------------------------------------------

#: Words in quotes of any kind. No pair may hold its own opening mark, so that looking stays linear.
QUOTED = re.compile(
    r""""([^"\n]+)"|“([^“”\n]+)”|„([^„“”"\n]+)[“”"]|«([^«»\n]+)»|»([^«»\n]+)«|「([^「」\n]+)」|『([^『』\n]+)』"""
    r"""|＂([^＂\n]+)＂|‹([^‹›\n]+)›|‘((?:[^‘’\n]|(?<=\w)’(?=\w))+)’|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))+)'(?!\w)"""
    r"""|``([^`\n]+?)''|`([^`\n]+)`"""
)
ELLIPSIS = re.compile(r"(?<!\s)\s*+(?:[\[(]\s*(?:\.{3,6}|…+)\s*[\])]|\.{3,6}|…+|⋯+)\s*")
_JOIN = re.compile(
    r"\s*+(?:\([^()\n]*\)\s*+)?(?:(?:,|;|/|&|\+|\||、|，|；)\s*+)?"
    r"(?:\b(?:and|or|vs\.?|und|oder|et|ou|y|e|o|i|a|en|of|ve|và|dan|и|или)\b\s*+|(?:和|与|與|及|或|と)\s*+)?(?:also\s+)?",
    re.IGNORECASE,
)
_REACH = re.compile(rf"{ELLIPSIS.pattern}|\s*(?:-+>|→|to|through|until|bis|jusqu'à|hasta|到|至)\s*", re.IGNORECASE)
_OMISSION = re.compile(
    r"""[\W_]*(?:(?:the\ |an?\ )?omissions?|omitted|missing|left\ out|not\ (?:mentioned|included|present|stated)|absent
    |auslassung(?:en)?|ausgelassen|fehlt|fehlend\w*|omisi[oó]n(?:es)?|omitid[oa]|falta|ausente|manquant\w*|oubli
    |omissione|mancante|omissão|opomenutí|chybí|pominięcie|brak|weglating|ontbreekt|пропуск|пропущено|отсутствует
    |упущение|遗漏|遺漏|缺失|省略|漏译|欠落|抜け|누락|생략|حذف|إغفال|eksik|thiếu|kelalaian)
    (?=[\W_]*$|\ *[:：,;([（–—-]|\ +(?:of|in|from|at|on|information|info|details?|content|facts?)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
#: No place is named.
NOWHERE = re.compile(
    r"[\W_]*+(?:n/?a|none|null|nil|unknown|not applicable|keine?|aucune?|ninguno|无|無|なし|нет)?[\W_]*", re.IGNORECASE
)
#: An explanation of something that the output lacks.
ABSENT = re.compile(
    r"\b(?:omit\w*|omission|missing|miss(?:es)?|lacks?|left out|leaves out"
    r"|(?:not|n't|never) (?:mention|includ|stat|say|cover)\w*"
    r"|fehl\w+|omet\w*|omis\w*|manqu\w+|falta\w*)\b|遗漏|缺少|未提",
    re.IGNORECASE,
)
_COUNTING = {
    "1": r"first|1st|beginning|erste[nrsm]?|premi[eè]re?|primer[oa]?|prim[oa]|primeir[oa]|první|pierwsz\w+|перв\w+",
    "2": r"second|2nd|zweite[nrsm]?|deuxième|seconde|segund[oa]|second[oa]|druh\w+|drug\w+|втор\w+",
    "3": r"third|3rd|dritte[nrsm]?|troisième|tercer[oa]?|terz[oa]|terceir[oa]|třetí|trzeci\w*|трет\w+",
    "4": r"fourth|4th|vierte[nrsm]?|quatrième|cuart[oa]|quart[oa]|četvrt\w+|четверт\w+|четвёрт\w+",
    "5": r"fifth|5th|fünfte[nrsm]?|cinquième|quint[oa]|пят\w+",
    "last": r"last|final|letzte[nrsm]?|dernière?|últim[oa]|ultim[oa]|posledn\w+|ostatni\w*|последн\w+|最后|最後",
}
_UNITS = (
    r"sentences?|lines?|paragraphs?|occurrences?|instances?|mentions?|words?|satz|sätze|zeile|absatz|vorkommen|mal"
    r"|phrase|ligne|paragraphe|oración|frase|línea|párrafo|riga|linha|предложени\w+|абзац\w*|строк\w+|věta|odstavec"
)
_CHINESE_DIGITS = "一二三四五六七八九十"
_ORDINAL = re.compile(
    rf"\b(?:{_UNITS}|no\.|nr\.|#)\s*(?P<after>\d{{1,3}})\b|\b(?P<before>\d{{1,3}})(?:st|nd|rd|th|\.|º|ª|e|ème|-?[яей]+)\s"
    rf"|第\s*(?P<chinese>[{_CHINESE_DIGITS}]|\d{{1,3}})|"
    + "|".join(rf"(?<!\w)(?P<n{number}>{words})(?!\w)" for number, words in _COUNTING.items()),
    re.IGNORECASE,
)
_ABOUT = re.compile(
    rf"\b(?:{_UNITS}|phrases?|text|clause|expression|terms?|statement|parts?|title|heading|summary|response|output"
    r"|wort|wörter|ausdruck|stelle|mots?|expresión|palabras?|texto|слов\w*|фраз\w*|текст\w*)\b|第|词|詞|句|段|文",
    re.IGNORECASE,
)


def ordinal(text: str) -> int | None:
    """The number that a comment gives a place: 2 for "the second one", "2nd", "sentence 2"; -1 for the last."""
    match = _ORDINAL.search(text)
    if match is None or match.lastgroup is None:
        return None
    if match.lastgroup.startswith("n"):
        return -1 if match.lastgroup == "nlast" else int(match.lastgroup[1:])
    said = match[match.lastgroup]
    return int(said) or None if said.isdecimal() else _CHINESE_DIGITS.find(said) + 1


def plain(text: str) -> str:
    """A text with one kind of quotes and spaces, in lower case: enough to see whether words stand in it."""
    return " ".join(re.sub(r"[\"'`´“”„‟‘’‚«»‹›]", "'", text).casefold().split())


def read_places(line: str, output: str = "") -> list[tuple[str | None, str]]:
    """(words, comment) for every place that a location line names; None for an omission, "" for no place.

    With `output`, a line that stands there as it is, is one place, whatever quotes or commas are in it.
    """
    line = _undecorated(line)
    if re.fullmatch(r"[\W_]*omissions?[\W_]*", line, re.IGNORECASE):
        return [(None, "")]
    within = plain(output)
    if output and line and (line in output or (len(line) > 3 and plain(line) in within)):
        return [(line, "")]
    if NOWHERE.fullmatch(line) and not (QUOTED.fullmatch(line) and not re.search(r"\w", line)):
        return [("", "")]  # but "," in quotes is a place
    if match := _OMISSION.match(line):
        rest = line[match.end() :].strip(" \t\n:：–—-,.()[]（）\"'“”*_")
        return [(None, " ".join(rest.split()))]
    rows = [row for row in line.split("\n") if row.strip()]
    if len(rows) > 1 and all(is_row(row) for row in rows[1:]):
        return [place for row in rows for place in read_places(row, output)]
    return _quoted_places(line) or _bare_places(line, output, within)


def is_row(line: str) -> bool:
    """Whether a line is an entry of a list."""
    return re.match(r"\s*(?:[-*•]|\d{1,3}[.)])\s", line) is not None


def _undecorated(line: str) -> str:
    """Without a list's mark, markdown emphasis and tags around it."""
    line = re.sub(r"^\s*(?:[-*•>]\s+|\d{1,3}[.)]\s+)?", "", line).strip()
    line = re.sub(r"^<\w{1,20}>\s*", "", line)
    line = re.sub(r"</\w{1,20}>$", "", line).strip("| \t\n")
    for mark in ("***", "**", "__", "*", "_", "`"):
        if len(line) > 2 * len(mark) and line.startswith(mark) and line.endswith(mark):
            line = line[len(mark) : -len(mark)].strip()
    return line


def _quoted_places(line: str) -> list[tuple[str | None, str]]:
    """Places of a line whose words are in quotes; empty where the quotes are part of the words."""
    found = list(QUOTED.finditer(line))
    if not found:
        return []
    lead = line[: found[0].start()].strip()
    if lead and not (len(lead) <= 60 and (_ABOUT.search(lead) or ordinal(lead))):
        return []
    places: list[tuple[str, str]] = []
    comment = lead.strip(" :,-–—")
    end = found[0].start()
    for match in found:
        words = inside(match)
        gap = line[end : match.start()]
        if not places:
            places.append((words, comment))
        elif _REACH.fullmatch(gap):
            places[-1] = (f"{places[-1][0]} … {words}", places[-1][1])
        elif gap.strip() and _JOIN.fullmatch(gap):
            if beside := re.search(r"\(([^()]*)\)", gap):
                places[-1] = (places[-1][0], beside[1])
            places.append((words, ""))
        else:
            break  # from here on it is a comment: "foo" instead of "bar"
        end = match.end()
    rest = line[end:].strip(" \t\n,;:.->→–—")
    if rest and not places[-1][1]:
        bracketed = rest[0] in "([（" and rest[-1] in ")]）"
        places[-1] = (places[-1][0], rest[1:-1] if bracketed else rest)
    return [*places]


def inside(quoted: re.Match[str]) -> str:
    """The words of a match of QUOTED."""
    return next(filter(None, quoted.groups()), "").strip()


def _bare_places(line: str, output: str, within: str) -> list[tuple[str | None, str]]:
    """Places of a line without quotes around its words."""
    if match := re.fullmatch(r"([^:：\n]{1,40})[:：]\s*(\S.*)", line, re.DOTALL):  # "Line 3: words"
        lead, words = match.groups()
        if ordinal(lead) and _ABOUT.search(lead):
            return [(words, lead)]
    if match := re.fullmatch(r"(.*\S)\s*[(\[（]([^()\[\]（）\n]{1,200})[)\]）][.,]?", line, re.DOTALL):
        words, comment = match.groups()
        if ordinal(comment) or (_ABOUT.search(comment) and len(comment) < 60) or plain(words) in within:
            return [(words, comment)]
    for mark in (";", " / ", " | ", ", ", " and ", "\n"):
        parts = [part.strip() for part in line.split(mark)] if output and len(line) < 2000 else []
        if len(parts) > 1 and all(len(part) > 1 and plain(part) in within for part in parts):
            return [(part, "") for part in parts]
    return [(line, "")]


# --- fields ----------------------------------------------------------------------------------------------------------

_LOCATION = _names(
    """location|error location|exact location|location of the error|place|position|span|error span|text span|error text
    |quote|quoted text|exact words|exact text|passage|ort|stelle|fundstelle|textstelle|emplacement|localisation|lieu
    |endroit|extrait|ubicación|ubicacion|lugar|localización|fragmento|posizione|passaggio|localização|trecho
    |местоположение|место|расположение|фрагмент|umístění|místo|lokalizacja|miejsce|locatie|plaats|konum|yer|vị trí
    |lokasi|位置|地点|地點|错误位置|錯誤位置|原文|場所|箇所|위치|الموقع|موقع|مكان الخطأ|स्थान"""
)
_WHY = _names(
    """explanation|explanation of the error|error explanation|reason|reasoning|justification|rationale|description
    |error description|why|details|comment|issue description|erklärung|begründung|beschreibung|explication|raison
    |explicación|explicacion|razón|motivo|descripción|spiegazione|motivazione|explicação|razão|объяснение|пояснение
    |причина|обоснование|vysvětlení|důvod|zdůvodnění|wyjaśnienie|uzasadnienie|powód|uitleg|reden|toelichting|açıklama
    |gerekçe|giải thích|lý do|penjelasan|alasan|解释|解釋|说明|說明|理由|原因|説明|설명|이유|الشرح|التفسير|السبب
    |व्याख्या|कारण"""
)
_SEVERITY = _names(
    """severity|severity level|severity score|severity rating|error severity|level of severity|schweregrad|schwere
    |gravité|sévérité|severidad|gravedad|gravità|severità|gravidade|severidade|серьезность|серьёзность|тяжесть
    |критичность|závažnost|powaga|waga|dotkliwość|ernst|zwaarte|şiddet|ciddiyet|mức độ nghiêm trọng|tingkat keparahan
    |keparahan|严重程度|嚴重程度|严重性|嚴重性|深刻度|重大度|重要度|심각도|الخطورة|الشدة|गंभीरता"""
)
_OVERALL_WHY = (
    r"(?:explanation|reason|justification|rationale|reasoning)[ \t]+(?:of|for|behind)[ \t]+(?:the[ \t]+|this[ \t]+)?"
    r"(?:overall[ \t]+|final[ \t]+)?(?:score|rating|label|grade|assessment|evaluation|verdict)"
    r"|(?:overall|final|score|rating)[ \t_-]+(?:score[ \t_-]+|rating[ \t_-]+)?"
    r"(?:explanation|reason(?:ing)?|justification|rationale|comments?|summary)"
)
_OVERALL = r"(?:overall|final)(?:[ \t_-]+(?!errors?\b|severity\b)[^\W\d_]{1,20}){0,3}|" + _names(
    """verdict|conclusion|gesamt|gesamtbewertung|gesamtnote|gesamturteil|gesamteindruck|insgesamt|bewertung|note globale
    |évaluation globale|évaluation générale|appréciation globale|global|puntuación general|puntuación global
    |valoración general|valoración global|evaluación general|evaluación global|valutazione complessiva
    |giudizio complessivo|punteggio complessivo|complessivo|avaliação geral|nota geral|pontuação geral|geral
    |общая оценка|итоговая оценка|итог|оценка|celkové hodnocení|celkově|hodnocení|ogólna ocena|ocena ogólna|ocena
    |algemeen oordeel|eindoordeel|algemene beoordeling|genel değerlendirme|genel puan|genel|đánh giá chung|tổng thể
    |penilaian keseluruhan|keseluruhan|总体评价|总体评分|总体|總體評價|總評|总评|整体评价|整體評價|综合评价|総合評価
    |全体評価|総評|종합 평가|전체 평가|전반적 평가|التقييم العام|التقييم الإجمالي|समग्र मूल्यांकन|समग्र"""
)
_WEAK = r"(?:[^\W\d_]{1,20}[ \t]+){0,2}(?:scores?|ratings?|label|grade|assessment|evaluation)"
_OTHER = _names(
    """type|error type|category|error category|correction|suggested correction|suggestion|suggested fix|fix|revision
    |confidence|impact|evidence|source|analysis|note|notes|recommendation|improvement|typ|kategorie|korrektur|vorschlag
    |catégorie|tipo|categoría|corrección|тип|категория|исправление|类型|類型|修改建议|种类|修正"""
)
_HEADER = _names(
    """error|issue|mistake|problem|fehler|erreur|errore|erro|ошибка|chyba|błąd|fout|hata|lỗi|kesalahan|错误|錯誤|问题
    |問題|エラー|誤り|오류|خطأ|الخطأ|त्रुटि|annotation"""
)
_HEADING = (
    r"(?:(?:list|summary)[ \t]+of[ \t]+)?(?:(?:identified|detected|found|error|final|merged)[ \t]+)?"
    r"(?:errors|issues|mistakes|problems|annotations|fehlerliste|erreurs|errores|errori|erros|ошибки|chyby|błędy|错误列表)"
    r"(?:[ \t]+(?:found|identified|detected|list))?"
)
_COUNT = r"(?:[ \t]*[#№]?[ \t]*(?:no\.|nr\.|n°)?[ \t]*\d{1,5})?"
#: A field's name at the start of a line (with any marks before it), or after punctuation within one, and its colon.
#: Within a line only a capital or a bracket begins one, so that "the location: …" in a sentence does not.
FIELD = re.compile(
    rf"""(?:^(?P<line>(?:[^\w\n"“”„«»「」『』‘’'/{{]|[\d_])*+)
      |(?:(?:(?<=[.;,|)\]*!?。；，"”»」’'—–\d>-])|(?<=\d:))[ \t]+[*_(\[|]{{0,4}}(?=(?-i:[^\Wa-z\d_]))
        |(?<=[(\[|（【])[ \t]?))
    (?:(?P<overall_why>{_OVERALL_WHY})
      |(?P<location>(?:{_LOCATION}){_COUNT})
      |(?P<severity>{_SEVERITY})
      |(?P<why>(?:{_WHY}){_COUNT})
      |(?P<overall>{_OVERALL})
      |(?P<weak>{_WEAK})
      |(?P<other>{_OTHER})
      |(?P<heading>{_HEADING})
      |(?P<numbered>(?:{_HEADER})[ \t_]*[#№]?[ \t]*(?:(?:no\.|nr\.|n°)[ \t]*)?
          (?:\d{{1,6}}|[ivx]{{1,5}}|[A-H]|[{_CHINESE_DIGITS}]{{1,2}})(?:[ \t]*(?:/|of)[ \t]*\d+)?
          |第[ \t]*[\d{_CHINESE_DIGITS}]{{1,3}}[ \t]*(?:个|個|处|處)?(?:错误|錯誤|エラー|问题|誤り))
      |(?P<error>{_HEADER}))
    (?![^\W_])(?:[ \t]*[(（](?![ \t]*(?:{_SEVERITY}))[^()（）\n]{{0,40}}[)）])?[*_`\]]{{0,4}}
    (?(line)[ \t]*+(?:[:：=>|→]|->|[-–—](?=[ \t\n]|$)|[.)](?=[ \t\n]|$)|$|(?<=[*_`])(?=[ \t]))
      |[ \t]*(?:[:：=]|(?(severity)(?=\d)|(?!))))[*_`]{{0,4}}""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
#: The head of a table's column.
FIELD_OF_CELL = re.compile(
    rf"(?:(?P<location>{_LOCATION}|text)|(?P<severity>{_SEVERITY})|(?P<why>{_WHY})|(?P<error>{_HEADER}))(?:\s*\([^()]*\))?",
    re.IGNORECASE,
)
#: A line that says that there is no error.
NOTHING = re.compile(
    r"""^[^\w\n{]{0,40}(?:
      (?:there[ ](?:are|is|were)[ ]|i[ ](?:found|see|find)[ ])?no[ ](?:[a-z-]{3,20}[ ]){0,2}
        (?:errors?|issues?|mistakes?|problems?)(?![a-z])
        (?![ ](?:\d|in[ ]the[ ](?:first|second|third))|[^\n.]{0,60}\b(?:but|except|however|although)\b)
      |(?:the[ ](?:text|output|summary|response)[ ])?(?:is[ ]error-free|contains[ ]no[ ]errors)
      |keine?[ ]fehler|aucune?[ ]erreur|pas[ ]d['’]erreur|(?:sin|ningún|no[ ]hay)[ ]error(?:es)?|nessun[ ]errore
      |(?:nenhum|sem|não[ ]há)[ ]erros?|ошибок[ ](?:нет|не[ ]обнаружено)|нет[ ]ошибок|без[ ]ошибок
      |žádn[áé][ ]chyb[ay]|brak[ ]błędów|geen[ ]fouten|hata[ ]yok|không[ ]có[ ]lỗi|tidak[ ]ada[ ]kesalahan
      |(?:没有|無|无|沒有|未发现)(?:任何)?(?:错误|錯誤)|エラー(?:なし|はありません)|誤りなし|오류[ ]?없음
      |لا[ ]توجد[ ]أخطاء|لا[ ]يوجد[ ]خطأ|कोई[ ]त्रुटि[ ]नहीं)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def _words(severity: float, names: str) -> dict[str, float]:
    return {" ".join(name.split()): severity for name in names.split("|")}


#: What models say in place of a severity from 1 to 5, besides the paper's five names.
SEVERITY_WORDS = {
    **_words(
        1.0, "very low|trivial|negligible|cosmetic|minimal|sehr gering|unerheblich|négligeable|muy baja|незначительная"
    ),
    **_words(
        2.0,
        """low|mild|slight|small|gering|leicht|niedrig|klein|faible|mineur|mineure|léger|légère|leve|bajo|baja|menor|basso
        |bassa|lieve|baixa|низкая|малая|nízká|niska|laag|düşük|thấp|rendah|轻微|輕微|低|軽微|낮음|منخفضة""",
    ),
    **_words(
        3.0,
        """medium|intermediate|mittel|mittelschwer|mäßig|moyen|moyenne|modéré|modérée|medio|media|moderado|moderada
        |moderato|moderata|média|médio|средняя|střední|średnia|gemiddeld|orta|trung bình|sedang|中等|中度|中|보통
        |متوسطة""",
    ),
    **_words(
        4.0,
        """high|serious|severe|significant|strong|hoch|schwer|groß|erheblich|élevé|élevée|grave|majeur|majeure|important
        |importante|alto|alta|mayor|maior|высокая|серьёзная|серьезная|vysoká|wysoka|hoog|ernstig|yüksek|cao|tinggi|严重
        |嚴重|高|重大|높음|عالية""",
    ),
    **_words(
        5.0,
        """very high|extreme|fatal|catastrophic|blocker|kritisch|sehr hoch|critique|très élevée|crítico|crítica|critico
        |critica|muy alta|критическая|очень высокая|kritická|krytyczna|kritiek|kritik|致命|极高|極高|심각|حرجة""",
    ),
}


# --- small things ----------------------------------------------------------------------------------------------------


def prose(text: str, *, whole: bool = False) -> str:
    """An explanation on one line without markdown around it. whole: all of it, not only its first paragraph."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip())
    if not whole:
        text = paragraphs[0]
    rows = [re.sub(r"^\s*(?:[-*•>#]+\s+)?", "", row) for row in text.split("\n") if re.search(r"\w", row)]
    words = " ".join(" ".join(rows).split())
    words = re.sub(r"\*\*([^*]+)\*\*|(?<!\w)\*([^*]+)\*(?!\w)", r"\1\2", words)
    words = re.sub(r"</\w{1,20}>$", "", words).strip(" \t*_|#")
    words = words.lstrip(":–—-,;)]> ").strip()
    if words[:1] == "(" and words.endswith(")") and words.count("(") == 1:
        words = words[1:-1]
    whole_quote = QUOTED.fullmatch(words)
    return inside(whole_quote) if whole_quote else words


def short(text: str, most: int = 100) -> str:
    """The beginning of a text, quoted, for a message."""
    text = " ".join(text[: 4 * most].split())
    return repr(text if len(text) <= most else text[: most - 1] + "…")
