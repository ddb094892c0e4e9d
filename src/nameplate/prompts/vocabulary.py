"""The words and sentence patterns that prompts are made of.

Common words that large tokenizers keep in one piece after a space. The sizes of the lists are not free: one
*period* (`ROUNDS_PER_PERIOD` rounds of all patterns) uses every list a whole number of times, so that a text
which is one period longer costs the same number of tokens more, whatever the length and the tokenizer.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS: Final = _words(
    """
    border film meat pearl steam tiger juice image jar rocket energy vest vine model singer song poet jewel
    snake storm corn network cat bridge house taxi rabbit land museum pupil doll steel wheel nest bread youth
    paint market grain cage roof village pump plastic cable miner bubble tube table flash flame saddle shirt
    marble hammer photo leader soil hero pool empire brush player shade town radio canal scene elbow face heat
    chest chain nose palm coral feather novel boy college potato cannon stick board boot olive hawk shore timber
    doctor cream note knee brass sauce station jet goal farm money wallet cherry poem dawn drawer needle branch
    whale honey ladder hunter rock morning crab yard car comet lake clay van water temple wheat glass seal
    target throat lens king pole hook organ hall lemon curtain garden rose wagon wing gift duck fort ribbon crew
    skin tunnel bone meal corner dress evening giant camp pilot apple brother smile lock button broom toy ball
    park coin joke menu cord bottle knife letter level carpet secret estate port violin guard straw soap horse
    colony baby prince turtle chicken ice noise sheet tray rope wood gate winner flower channel melon map flood
    cap country sky servant page toast crystal ocean pig mirror oak weather puzzle frame square eye dock field
    pirate music folder berry office sack spring coast cargo stem trade lawyer couch chalk glove girl battery
    cloth father stage lamb dog clinic lawn castle shark guitar finger drill hill graph whistle valve twin truck
    street tower creek badge cart city snow medal sign candle cow piano mask name teacher peach arrow space
    panel team wine sound nail canvas brick circle shell pocket tool night grape view stove vessel tea prison
    flag head barrel brand sailor mud tent lamp magnet mouse deer purse cave shadow train police jungle bench
    palace point game ray chapter butter neck egg leg island foot bell coach frog label trail wave pond lunch
    camera bucket painter blanket boat heart cradle sport wall valley family ferry pine milk seat pipe pie
    ceiling wire iron robot winter jacket beach sail dollar word post fence ghost scale pen problem smoke drum
    scout slope fork tune key machine salt track sister prize uncle spirit pin garage cook bowl lion suit engine
    tire story oil summer sword path fever screen mother bear dance hat cabin food sea cliff knight exit cake
    pepper guest bicycle stable crane book box shoe dream pillow ruler friend door stone church worker silk oven
    throne spider guide season seed priest cotton rail cell bird dust crop mill leaf thread coffee swamp wizard
    sock orbit leather room nurse fire card pot world insect copper master vase banana wolf jury rug powder ink
    dinner dish gold step hand window oxygen tide bank vision rain lesson sleeve nut home clock shape column
    bean fleet baker tooth root list fuel knot voice star tail blade tribe hole line candy dragon cup mouth band
    flour string curve bus rice yacht harbor planet ship hair queen deck bush army fruit hotel coal coat donkey
    ticket factory kite
    """
)
"""Concrete nouns of 3 to 7 letters; the first word of a prompt is drawn from here."""

ADJECTIVES: Final = _words(
    """
    quiet bright narrow golden ancient heavy gentle hollow bitter broken clean clever cold crooked curious dark
    deep distant dry early empty famous faint fast final fine firm foreign fresh frozen funny giant glad grand
    gray great green happy hard hidden high honest hungry large late lazy little local lonely long loose loud
    lovely low lucky mad main modern nervous new nice noisy odd open pale perfect plain pleasant polite poor
    pretty private proud public pure quick rare raw ready red rich rough round royal rude sad safe secret
    serious severe sharp short shy sick silent silly simple slow small smart smooth soft solid sour special
    square steady stiff strange strict strong sudden sweet tall thick thin tiny tired tough useful usual vast
    warm weak wet white wide wild
    """
)
"""Adjectives."""

VERBS: Final = _words(
    """
    carried followed watched found opened closed painted repaired moved covered crossed visited noticed
    remembered praised borrowed returned wanted needed kept held lost sold bought built broke brought caught
    changed chased cleaned collected copied counted described designed discovered dropped examined explained
    filled finished forgot gathered guarded guided heard helped hid ignored improved joined liked lifted loved
    marked measured mentioned ordered passed planned pulled pushed reached
    """
)
"""Transitive verbs in the past tense."""

ADVERBS: Final = _words(
    """
    slowly quickly quietly carefully gladly sadly softly loudly rarely often nearly really finally suddenly
    gently easily firmly badly deeply closely clearly directly exactly fully greatly happily highly kindly
    mostly openly partly safely
    """
)
"""Adverbs."""

NAMES: Final = _words(
    """
    Anna Peter Maria David Laura Thomas Sarah Martin Emma Daniel Julia Robert Alice Simon Helen Oliver Clara
    Henry Nina Victor Rosa Albert Diana Oscar Lucy Frank Ruth Edward Grace Paul Irene George Sofia Arthur Ellen
    Michael Karen Stephen Linda Adam Nora Leo Eva Walter Jane Hugo Mary Max Rachel Ben Carol Felix Susan Jack
    Amy Louis Kate Philip Molly Samuel Lisa Andrew Betty James
    """
)
"""First names."""

PLACES: Final = _words(
    """
    London Paris Berlin Rome Madrid Vienna Boston Chicago Dublin Oslo Tokyo Cairo Athens Lisbon Prague Moscow
    Delhi Sydney Toronto Denver Dallas Texas Kansas Wales Norway Spain Italy France Greece Egypt India Brazil
    """
)
"""Places."""

NUMBERS: Final = _words(
    """
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    """
)
"""Number words."""

POOLS: Final = {
    "n": NOUNS,
    "a": ADJECTIVES,
    "v": VERBS,
    "d": ADVERBS,
    "m": NAMES,
    "p": PLACES,
    "q": NUMBERS,
}
"""Slot letter of a pattern -> the list that fills it."""

OPENERS: Final = (
    "In {p}, the {a} {n} {v} the {n} before the rain.",
    "During the winter, {m} {v} the {a} {n} behind the {n}.",
    "Later that year, people in {p} {v} the {n} and the {a} {n}.",
    "After the meeting, the {n} {d} {v} every {a} {n}.",
)
"""First sentences of a paragraph. They begin with fixed words, for a word after a line break costs other tokens
than the same word after a space."""

SENTENCES: Final = (
    "The {a} {n} {v} the {n}.",
    "{m} {v} the {a} {n} with the {n}.",
    "Nobody {v} the {n} until the {a} {n} arrived.",
    "Because the {n} was {a}, the {n} {d} {v} it.",
    "When the {n} {v} the {n}, the other one stayed {a}.",
    "There were {q} {a} boxes near the {n}.",
    "Each {n} {d} {v} the {n} while the {n} took the {a} road.",
    "It was {a} and {a}, yet the {n} {d} {v} the hall.",
    "The old {n} had {v} the {n} for {q} days.",
    "{m} asked whether the {a} {n} had {v} the {n}.",
    "Between the {n} and the {n} lay one {a} {n}.",
    "The {n}, the {n} and the {n} were rather {a}.",
    "Their {n} {v} the {a} {n} in {p}.",
    "Some {a} {n} {v} the {n} again.",
    "They {v} the {a} {n}, then {v} the {a} one again.",
    "Without the {n}, the {a} {n} never {v} {m}.",
    "What the {n} {v} was not {a} but rather {a}.",
    "Only {q} of the letters {v} the {a} {n}.",
    "Every {n} {v} the {n} more {d} than the {a} {n}.",
    "Under the {a} {n}, {m} {v} the {n}.",
    "The {n} that {v} the {n} was {a}.",
    "Most of the {n} {v} the {a} {n}.",
    "Although the {n} {v} the {n}, {m} {v} the {a} {n}.",
    "Perhaps the {a} {n} {d} {v} the {n} from {p}.",
    "Then the {n} and the {a} {n} {v} the {n}.",
    "Neither {m} nor the {n} {v} the {a} {n}.",
    "At night the {n} {d} {v} {q} of them.",
    "This {n} {d} {v} the {n} that {m} {v}.",
)
"""The other sentences of a paragraph."""

SENTENCES_PER_PARAGRAPH: Final = len(SENTENCES) // len(OPENERS)
"""After an opener; so a round of paragraphs, one for each opener, uses every pattern once."""

ROUNDS_PER_PERIOD: Final = 8
"""A round has 64 nouns, 32 adjectives, 32 verbs, 8 adverbs, 8 names, 4 places, 4 numbers: after 8 rounds the
512 nouns are used up exactly once and the shorter lists once or more."""
