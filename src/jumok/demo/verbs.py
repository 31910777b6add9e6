"""The verbs of the built-in corpus: their English and Korean forms, who does what to what, where, how, and why."""

from dataclasses import dataclass
from enum import Enum

from jumok.demo.korean import Predicate
from jumok.demo.lexicon import Noun, predicate, select_nouns


class Form(Enum):
    """Tense and modality as English marks them."""

    PAST = "did"
    PRESENT = "does"
    PROGRESSIVE = "is doing"
    FUTURE = "will do"
    GOING = "is going to do"
    CAN = "can do"
    COULD = "could do"
    WANT = "wants to do"
    MUST = "has to do"


# What is said most stands twice.
_ALL = (Form.PAST, Form.PRESENT, Form.PROGRESSIVE, *(form for form in Form if form is not Form.COULD))
_STATE = (Form.PRESENT, Form.PAST)
_ONCE = (Form.PAST, Form.PAST, Form.FUTURE, Form.GOING, Form.CAN, Form.WANT, Form.MUST)
_HAPPENS = (Form.PAST, Form.PRESENT, Form.PROGRESSIVE, Form.FUTURE)


@dataclass(frozen=True, slots=True)
class Frame:
    """Who may do this to what. `objects` is empty for intransitive verbs."""

    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with all that English and Korean need to know about it."""

    name: str
    """Unlike `base`, tells play soccer from play, walk to from walk."""
    base: str
    past: str
    ing: str
    preposition: str
    """What English puts before the object: listen *to* the song."""
    korean: Predicate
    frames: tuple[Frame, ...]
    particle: str
    """What Korean puts after the object: 을, 이, 에 or 으로, each in the form that fits the noun."""
    forms: tuple[Form, ...]
    places: tuple[Noun, ...]
    manners: tuple[str, ...]
    recipients: bool
    """Takes 'to someone': give, send, show, teach."""
    requested: bool
    """Makes sense as a request: Please open the door."""
    honoured: Predicate | None
    """The word that replaces it when its subject is honoured: 먹다 → 드시다."""
    negated: Predicate | None
    """The word that means its opposite: 알다 → 모르다."""
    negation: Predicate
    """않다 for what one does not do, 못하다 for what does not happen to one: 찾지 못했어요."""
    by_object: dict[str, Predicate]
    """Where Korean chooses the verb by its object: wear a hat 쓰다, a coat 입다, shoes 신다."""

    @property
    def transitive(self) -> bool:
        return bool(self.frames[0].objects)

    @property
    def state(self) -> bool:
        """like, have, live in: their present needs no 'every day'."""
        return self.forms == _STATE or self.forms == (Form.PRESENT,)

    @property
    def third(self) -> str:
        if self.base == "have":
            return "has"
        if self.base.endswith("y") and self.base[-2] not in "aeou":
            return self.base[:-1] + "ies"
        first, *rest = self.base.split()
        return " ".join([first + ("es" if first.endswith(("s", "x", "ch", "sh", "o")) else "s"), *rest])


def _verb(
    english: str,
    korean: str,
    frames: dict[str, str],
    *,
    particle: str = "을",
    forms: tuple[Form, ...] = _ALL,
    places: str = "",
    manners: str = "",
    recipients: bool = False,
    requested: bool = False,
    honoured: str = "",
    negated: str = "",
    involuntary: bool = False,
    by_object: dict[str, str] | None = None,
) -> Verb:
    """`english` is "base past ing [preposition]"; an underscore joins the words of one form (pick_up)."""
    base, past, ing, *preposition = (form.replace("_", " ") for form in english.split())
    transitive = any(frames.values())
    return Verb(
        name=" ".join([base, *preposition]) + ("" if transitive else " (intransitive)"),
        base=base,
        past=past,
        ing=ing,
        preposition=" ".join(preposition),
        korean=predicate(korean),
        frames=tuple(Frame(select_nouns(who), select_nouns(what)) for who, what in frames.items()),
        particle=particle,
        forms=forms,
        places=select_nouns(places),
        manners=tuple(manners.split()),
        recipients=recipients,
        requested=requested,
        honoured=predicate(honoured) if honoured else None,
        negated=predicate(negated) if negated else None,
        negation=predicate("못하다" if involuntary else "않다"),
        by_object={noun: predicate(word) for noun, word in (by_object or {}).items()},
    )


_WHO = "person name"
_GOODS = "thing clothing food book novel magazine newspaper milk juice coffee -picture -soup -rice -key"
_LOST = "bag key umbrella hat ticket pencil map camera ball doll gloves letter dog cat rabbit"
_HANDED = "book apple flower ticket key bag hat doll ball map letter umbrella cookie cake pencil cup bread"


def _both(objects: str) -> dict[str, str]:
    """What people and animals do alike."""
    return {_WHO: objects, "animal": objects}


VERBS: tuple[Verb, ...] = (
    _verb("eat ate eating", "먹다", {_WHO: "food", "animal": "apple bread potato carrot banana rice"},
          honoured="드시다",
          places="restaurant kitchen park garden school", manners="slowly quickly"),
    _verb("drink drank drinking", "마시다", {_WHO: "drink", "animal": "water milk juice"}, honoured="드시다",
          places="restaurant kitchen office park garden", manners="slowly quickly"),
    _verb("cook cooked cooking", "요리하다", {_WHO: "meat fish potato egg carrot"}, places="kitchen restaurant house",
          requested=True),
    _verb("make made making", "만들다", {_WHO: "bread cake soup pizza cookie doll chair desk box bag hat coffee"},
          requested=True,
          places="kitchen house restaurant"),
    _verb("buy bought buying", "사다", {_WHO: _GOODS}, places="market station", requested=True),
    _verb("sell sold selling", "팔다", {_WHO: _GOODS + " horse cow pig rabbit house"}, places="market station"),
    _verb("read read reading", "읽다", {_WHO: "reading"}, requested=True,
          places="library room park school house garden office",
          manners="slowly quickly quietly"),
    _verb("write wrote writing", "쓰다", {_WHO: "letter poem novel story book"},
          places="library room house office garden"),
    _verb("like liked liking", "좋아하다",
          {_WHO: "food drink reading sport study person animal song music flower movie",
          "animal": "food child boy girl water milk -soup -pizza -cake -egg"}, forms=_STATE),
    _verb("hate hated hating", "싫어하다", {_WHO: "food drink study sport dog cat bear monkey pig soldier driver"},
          forms=_STATE),
    _verb("have had having", "있다",
          {_WHO: "thing clothing book dog cat horse cow rabbit pig -flower -shoes -gloves"},
          particle="이", forms=_STATE, honoured="있으시다", negated="없다"),
    _verb("know knew knowing", "알다", {_WHO: "person name song story movie restaurant park museum"},
          forms=(Form.PRESENT,),
          negated="모르다 르"),
    _verb("see saw seeing", "보다", _both("person name animal car flower river house"),
          places="park street forest garden", involuntary=True,
          forms=(Form.PAST, Form.CAN, Form.WANT)),
    _verb("watch watched watching", "보다", {_WHO: "movie soccer baseball tennis"}, places="house room school"),
    _verb("find found finding", "찾다", {_WHO: _LOST}, forms=_ONCE, places="house room park school station",
          involuntary=True),
    _verb("lose lost losing", "잃어버리다", {_WHO: _LOST}, forms=(Form.PAST,),
          places="park station market school museum"),
    _verb("open opened opening", "열다", {_WHO: "opening box bag"}, manners="slowly quickly quietly", requested=True),
    _verb("close closed closing", "닫다", {_WHO: "opening box bag"}, manners="slowly quickly quietly",
          requested=True),
    _verb("cross crossed crossing", "건너다", _both("crossing"), manners="slowly quickly"),
    _verb("enter entered entering", "들어가다", _both("house room forest park kitchen garden village museum"),
          particle="에",
          forms=_ONCE, manners="slowly quickly quietly"),
    _verb("listen listened listening to", "듣다 ㄷ", {_WHO: "hearing story"}, places="room house park office",
          manners="quietly"),
    _verb("sing sang singing", "부르다 르", {_WHO: "song"}, places="park school room garden", manners="quietly",
          requested=True),
    _verb("draw drew drawing", "그리다", {_WHO: "flower picture map animal house bridge"}, requested=True,
          places="school park room garden"),
    _verb("carry carried carrying", "옮기다", {_WHO: "box chair desk bag computer bicycle"}, manners="slowly quickly",
          requested=True),
    _verb("wash washed washing", "씻다", {_WHO: "apple carrot potato cup"}, places="kitchen garden",
          requested=True),
    _verb("fix fixed fixing", "고치다", {_WHO: "bicycle car computer clock camera chair desk door window bridge"},
          requested=True),
    _verb("use used using", "사용하다", {_WHO: "computer camera map pencil car bicycle cup"},
          places="school office library"),
    _verb("clean cleaned cleaning", "청소하다", {_WHO: "room house kitchen office library restaurant museum garden"},
          requested=True),
    _verb("build built building", "짓다 ㅅ", {_WHO: "house school hospital library museum station"},
          forms=(Form.PAST, Form.PROGRESSIVE, Form.FUTURE, Form.GOING, Form.CAN, Form.WANT)),
    _verb("pick_up picked_up picking_up", "줍다 ㅂ", {_WHO: "ball key pencil ticket hat doll"},
          places="park street school station"),
    _verb("borrow borrowed borrowing", "빌리다",
          {_WHO: "book novel umbrella bicycle camera computer pencil map chair car"}),
    _verb("help helped helping", "돕다 ㅂ", {_WHO: "person name"}, places="school hospital station office"),
    _verb("meet met meeting", "만나다", {_WHO: "person name"},
          places="park station library restaurant market museum school beach"),
    _verb("wait waited waiting for", "기다리다", {_WHO: "person name"},
          places="park station library restaurant hospital school"),
    _verb("follow followed following", "따라가다", _both("person name animal"), manners="slowly quickly quietly"),
    _verb("send sent sending", "보내다", {_WHO: "letter picture book box flower ticket"}, recipients=True,
          requested=True),
    _verb("give gave giving", "주다", {_WHO: _HANDED}, forms=_ONCE, recipients=True, requested=True),
    _verb("show showed showing", "보여 주다", {_WHO: "picture map ticket letter camera book"}, recipients=True,
          requested=True),
    _verb("teach taught teaching", "가르치다", {_WHO: "study"}, recipients=True, places="school library"),
    _verb("receive received receiving", "받다", {_WHO: "letter flower ticket book picture box"}, involuntary=True,
          forms=(Form.PAST, Form.FUTURE, Form.WANT)),
    _verb("study studied studying", "공부하다", {_WHO: "study"}, places="library school room house office"),
    _verb("learn learned learning", "배우다", {_WHO: "study instrument"}, places="school house library"),
    _verb("wear wore wearing", "입다", {_WHO: "clothing"}, places="office school",
          by_object={"hat": "쓰다", "coat": "입다", "sweater": "입다", "shoes": "신다", "gloves": "끼다"}),
    _verb("play played playing", "하다", {_WHO: "instrument sport"}, places="school park",
          by_object={"piano": "치다", "guitar": "치다",
          "violin": "켜다", "soccer": "하다", "baseball": "하다", "tennis": "치다"}),
    _verb("go went going to", "가다", {_WHO: "place -kitchen -room -garden -house"}, particle="에",
          forms=(Form.PAST, Form.PAST, Form.PRESENT, Form.FUTURE, Form.CAN, Form.WANT, Form.MUST)),
    _verb("come came coming to", "오다", _both("place -hospital -city -room -kitchen -garden -office"), particle="에",
          forms=(Form.PAST, Form.PRESENT, Form.FUTURE, Form.GOING)),
    _verb("walk walked walking to", "걸어가다", _both("river park station beach house school library market"),
          particle="으로",
          manners="slowly quickly"),
    _verb("run ran running to", "달려가다", _both("river park station beach house school hospital forest"),
          particle="으로"),
    _verb("live lived living in", "살다", {_WHO: "city village house", "animal": "forest village park garden"},
          particle="에",
          forms=_STATE),
    _verb("sleep slept sleeping", "자다", _both(""), places="room house garden office park", honoured="주무시다",
          manners="quietly"),
    _verb("run ran running", "달리다", _both(""), places="park field beach forest", manners="slowly quickly"),
    _verb("walk walked walking", "걷다 ㄷ", _both(""), places="park forest beach field garden",
          manners="slowly quickly quietly"),
    _verb("swim swam swimming", "수영하다", _both(""), places="river beach", manners="slowly quickly"),
    _verb("rest rested resting", "쉬다", _both(""), places="park room house beach garden forest"),
    _verb("play played playing", "놀다", {"child boy girl name": "", "animal": ""},
          places="park garden beach field room school"),
    _verb("dance danced dancing", "춤추다", {_WHO: ""}, places="park street school room beach"),
    _verb("work worked working", "일하다", {_WHO: ""},
          places="office hospital restaurant museum market garden library"),
    _verb("cry cried crying", "울다", {_WHO: ""}, places="room house park street", forms=_HAPPENS, manners="quietly"),
    _verb("laugh laughed laughing", "웃다", {_WHO: ""}, places="room park school restaurant", forms=_HAPPENS,
          manners="quietly"),
)  # fmt: skip
DO = _verb("do did doing", "하다", _both(""), places="library park kitchen school room garden office")
"""Only asked: What is the student doing?"""
VERB: dict[str, Verb] = {verb.name: verb for verb in VERBS}
