"""Private values of all kinds, and sentences that they are planted in."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from string import ascii_letters, ascii_uppercase, digits, hexdigits

from faker import Faker

__all__ = ["Planted", "Values", "filled", "gb_11643"]

_SLOT = re.compile(r"\{(\w+)\}")
_TYPES = {
    "spelled": "email, spelled out",
    "bank_card": "card",
    "ip6": "ip",
    "token": "key",
    "dsn": "key",
    "pem": "key",
    "cn_id": "cn-id",
    "landline": "phone",
    "internal": "url",
    "birth": "birth-date",
    "first": "name",
    "given": "name",
}
"""Types of slots that are called otherwise."""

_PLAIN = frozenset(
    "total version version4 isbn time count small badcard badid hash hash64 word timestamp date percent latitude longitude".split()
)
_LETTERS = ascii_letters + digits


@dataclass(frozen=True, slots=True)
class Planted:
    """A private value in a sentence."""

    start: int
    end: int
    type: str
    value: str


def filled(template: str, values: Values) -> tuple[str, tuple[Planted, ...]]:
    """Return a template with values in its slots, and where the private ones stand.

    Args:
        template: Text with slots.
        values: Where values come from.
    """
    planted: list[Planted] = []
    parts: list[str] = []
    before = at = 0
    values.begin()
    for slot in _SLOT.finditer(template):
        text, value = template[before : slot.start()], values.of(slot[1])
        at += len(text)
        parts += text, value
        if slot[1] not in _PLAIN:
            planted.append(Planted(at, at + len(value), _TYPES.get(slot[1], slot[1]), value))
        at += len(value)
        before = slot.end()
    return "".join([*parts, template[before:]]), tuple(planted)


class Values:
    """Values for slots, in one language.

    Args:
        language: "en" or "zh".
        random: Where all chance comes from.
    """

    def __init__(self, language: str, random: Random) -> None:
        self._random = random
        self._chinese = language == "zh"
        self._fakers = [Faker(locale) for locale in (("zh_CN",) if self._chinese else ("en_US", "en_GB"))]
        for faker in self._fakers:
            faker.seed_instance(random.getrandbits(32))
        self._makers: Mapping[str, Callable[[], str]] = {**self._private(), **self._technical(), **self._public()}
        self._person: tuple[str, str] | None = None
        self.colleagues = tuple("".join(self._full_name()) for _ in range(5)) if self._chinese else ()
        """Other names that the sharer knows."""

    def begin(self) -> None:
        """Forget who was named in the last sentence."""
        self._person = None

    def of(self, slot: str) -> str:
        """Return a value for a slot.

        Args:
            slot: Its name.
        """
        return self._makers[slot]()

    @property
    def _faker(self) -> Faker:
        return self._random.choice(self._fakers)

    def _private(self) -> dict[str, Callable[[], str]]:
        return {
            "email": self._email,
            "spelled": self._spelled_email,
            "phone": lambda: str(self._faker.phone_number()),
            "mobile": self._mobile,
            "landline": lambda: f"{self._one('010', '021', '0755', '028')}-{self._number(8, first='2345678')}",
            "card": lambda: self._grouped(self._faker.credit_card_number()),
            "bank_card": self._bank_card,
            "iban": self._iban,
            "ssn": lambda: str(self._fakers[0].ssn()),
            "cn_id": lambda: str(self._faker.ssn()),
            "plate": self._plate,
            "passport": lambda: self._one("E" + self._number(8), self._number(9, first="123456")),
            "birth": self._birth,
            "address": lambda: str(self._faker.street_address()),
            "name": self._name,
            "first": self._first,
            "given": self._first,
            "account": self._account,
        }

    def _technical(self) -> dict[str, Callable[[], str]]:
        return {
            "ip": lambda: self._one(self._faker.ipv4_public(), self._faker.ipv4_private()),
            "ip6": lambda: self._one(self._faker.ipv6(), f"2001:db8:{self._hex(3)}::{self._hex(2)}"),
            "mac": lambda: self._one(self._faker.mac_address(), self._faker.mac_address().upper().replace(":", "-")),
            "path": self._path,
            "internal": self._internal,
            "host": lambda: f"{self._word()}-{self._number(2)}.{self._one('corp.local', 'prod.internal', 'lan')}",
            "key": self._key,
            "token": lambda: self._one(
                self._text(_LETTERS, 32) + "7", self._hex(40), self._jwt(), self._random_key(42)
            ),
            "password": self._password,
            "dsn": self._dsn,
            "pem": self._pem,
        }

    def _public(self) -> dict[str, Callable[[], str]]:
        roll = self._random.randint
        return {
            "total": lambda: f"{roll(1, 99_999):,}.{roll(0, 99):02}",
            "version": lambda: ".".join(str(roll(0, 30)) for _ in range(3)),
            "version4": lambda: f"{roll(90, 130)}.0.{roll(4000, 6999)}.{roll(1, 200)}",
            "isbn": lambda: self._one(self._faker.isbn13(), self._faker.isbn10()),
            "time": lambda: self._one(f"{roll(0, 23):02}:{roll(0, 59):02}", f"{roll(0, 23)}:{roll(0, 59):02}:30"),
            "count": lambda: self._one(str(roll(10, 99_999_999)), f"{roll(1000, 99_999_999):,}"),
            "small": lambda: str(roll(1, 12)),
            "percent": lambda: f"{roll(1, 40)}.{roll(0, 9)}",
            "badcard": self._bad_card,
            "badid": self._bad_id,
            "hash": lambda: self._hex(40),
            "hash64": lambda: self._hex(64),
            "word": self._word,
            "timestamp": lambda: str(roll(1_800_000_000, 1_999_999_999)) + self._one("", "000"),
            "date": lambda: self._faker.date(pattern="%Y年%m月%d日" if self._chinese else "%d %B %Y"),
            "latitude": lambda: f"{roll(-89, 89)}.{roll(0, 99_999):05}",
            "longitude": lambda: f"{roll(-179, 179)}.{roll(0, 99_999):05}",
        }

    # ------------------------------------------------------------------------------------------ chance

    def _one(self, *values: str) -> str:
        return self._random.choice(values)

    def _random_key(self, length: int) -> str:
        return self._text(_LETTERS + "-_", length) + "A3"

    def _text(self, alphabet: str, length: int) -> str:
        return "".join(self._random.choices(alphabet, k=length))

    def _number(self, length: int, first: str = digits) -> str:
        return self._random.choice(first) + self._text(digits, length - 1)

    def _hex(self, length: int) -> str:
        return self._text(hexdigits[:16], length)

    def _word(self) -> str:
        return self._text("bcdfglmnprst", 1) + "".join(
            self._text("aeiou", 1) + self._text("bdlmnrst", 1) for _ in range(self._random.randint(1, 3))
        )

    # ------------------------------------------------------------------------------------------ people

    def _full_name(self) -> tuple[str, str]:
        faker = self._faker
        return (faker.last_name(), faker.first_name()) if self._chinese else (faker.first_name(), faker.last_name())

    def _name(self) -> str:
        self._person = self._full_name()
        return ("" if self._chinese else " ").join(self._person)

    def _first(self) -> str:
        self._person = self._person or self._full_name()
        return self._person[1 if self._chinese else 0]

    def _email(self) -> str:
        tagged = f"{self._word()}.{self._word()}+{self._word()}@{self._word()}-{self._word()}.co.uk"
        return self._one(self._faker.email(), self._faker.company_email(), self._faker.free_email(), tagged)

    def _birth(self) -> str:
        english, chinese = ("%d %B %Y", "%B %d, %Y", "%m/%d/%Y", "%Y-%m-%d"), ("%Y年%m月%d日", "%Y-%m-%d")
        return format(self._faker.date_of_birth(), self._one(*(chinese if self._chinese else english)))

    def _spelled_email(self) -> str:
        at, dot = self._random.choice(((" (at) ", " (dot) "), ("[at]", "[dot]"), (" at ", " dot "), (" (at) ", ".")))
        return f"{self._word()}.{self._word()}{at}{self._word()}{dot}{self._random.choice(('com', 'org', 'net'))}"

    # ----------------------------------------------------------------------------------------- numbers

    def _mobile(self) -> str:
        number = str(self._faker.phone_number()) if self._chinese else "13" + self._number(9)
        apart = f"{number[:3]}{{0}}{number[3:7]}{{0}}{number[7:]}"
        return self._random.choice(
            (number, number, apart.format(" "), apart.format("-"), f"+86 {number}", f"+86{number}")
        )

    def _grouped(self, number: str) -> str:
        apart = self._random.choice(("", " ", "-"))
        return apart.join(re.findall(".{1,4}", number)) if len(number) == 16 else number

    def _bank_card(self) -> str:
        body = "62" + self._number(self._random.choice((13, 16)))
        return self._random.choice((body + _luhn_digit(body), " ".join(re.findall(".{1,4}", body + _luhn_digit(body)))))

    def _bad_card(self) -> str:
        body = "4" + self._number(14)
        return body + str((int(_luhn_digit(body)) + self._random.randint(1, 9)) % 10)

    def _iban(self) -> str:
        country = self._random.choice(("DE", "GB"))
        body = self._text(digits, 18) if country == "DE" else self._text(ascii_uppercase, 4) + self._text(digits, 14)
        number = f"{country}{98 - int(''.join(str(int(c, 36)) for c in body + country + '00')) % 97:02}{body}"
        return self._random.choice((number, " ".join(re.findall(".{1,4}", number))))

    def _bad_id(self) -> str:
        body = f"11{self._number(4)}19900307{self._number(3)}"
        return body + str((int(gb_11643(body).replace("X", "10")) + 1) % 10)

    def _plate(self) -> str:
        electric = f"{self._random.choice('京沪粤浙川苏')}{self._random.choice('ABCDE')}{self._random.choice('DF')}{self._number(5)}"
        return self._random.choice((str(self._faker.license_plate()), electric)) if self._chinese else electric

    # --------------------------------------------------------------------------------------- machines

    def _account(self) -> str:
        number = self._number(self._random.randint(8, 16), first="123456789")
        marked = self._text(ascii_uppercase, 2) + self._number(9)
        return self._one(number, marked, f"{self._word()}_{self._hex(12)}1", str(self._faker.uuid4()))

    def _path(self) -> str:
        a, b = self._word(), self._word()
        return self._random.choice(
            (
                f"/home/{a}/{b}/notes.txt",
                f"/var/log/{a}/{b}.log",
                f"C:\\Users\\{a}\\Documents\\{b}.docx",
                f"~/.config/{a}/{b}.yaml",
                f"\\\\fs01\\{a}\\{b}.xlsx",
                f"/Users/{a}/Library/{b}",
            )
        )

    def _internal(self) -> str:
        a, b = self._word(), self._word()
        return self._random.choice(
            (
                f"http://{a}.corp.local/{b}",
                f"https://intranet/{a}/{b}",
                f"http://localhost:8080/{a}",
                f"http://10.1.2.3:9000/{a}",
                f"https://{a}.internal:8443/{b}",
            )
        )

    # ---------------------------------------------------------------------------------------- secrets

    def _password(self) -> str:
        made = self._faker.password(length=self._random.randint(8, 16))
        words = f"{self._word().title()}-{self._number(2)}-{self._word()}!"
        return self._one(made, f"{self._word()}{self._number(3)}", words)

    def _dsn(self) -> str:
        scheme = self._one("postgres", "mysql", "redis", "mongodb", "postgresql+psycopg")
        return f"{scheme}://{self._word()}:{self._text(_LETTERS, 12)}@db.example.com:5432/{self._word()}"

    def _key(self) -> str:
        text, capitals, some = self._text, ascii_uppercase + "234567", self._random_key
        return self._one(
            f"AKIA{text(capitals, 16)}",
            f"ASIA{text(capitals, 16)}",
            f"sk-{text(_LETTERS, 48)}",
            f"sk-proj-{some(80)}",
            f"sk-ant-api03-{some(90)}",
            f"ghp_{text(_LETTERS, 36)}",
            f"github_pat_{text(_LETTERS, 22)}_{text(_LETTERS, 59)}",
            f"glpat-{some(18)}",
            f"xoxb-{self._number(12)}-{self._number(12)}-{text(_LETTERS, 24)}",
            f"AIza{some(33)}",
            f"sk_live_{text(_LETTERS, 24)}",
            f"SG.{some(20)}.{some(41)}",
            f"npm_{text(_LETTERS, 36)}",
            f"hf_{text(ascii_letters, 34)}",
            f"LTAI5t{text(_LETTERS, 18)}",
            f"AKID{text(_LETTERS, 32)}",
            f"dop_v1_{self._hex(64)}",
            f"pypi-AgEIcHlwaS5vcmc{some(80)}",
            f"{self._number(9)}:AA{some(31)}",
            self._jwt(),
        )

    def _jwt(self) -> str:
        parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{self._word()}"}}')
        head, body = (urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
        return f"{head}.{body}.{self._text(_LETTERS + '-_', 43)}"

    def _pem(self) -> str:
        kind = self._random.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY"))
        body = "\n".join(self._text(_LETTERS + "+/", 64) for _ in range(4))
        return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


def _luhn_digit(body: str) -> str:
    total = 0
    for at, digit in enumerate(reversed(body)):
        value = int(digit) * (2 if at % 2 == 0 else 1)
        total += value // 10 + value % 10
    return str(-total % 10)


def gb_11643(body: str) -> str:
    """Return the check digit of a Chinese identity number.

    Args:
        body: Its first 17 digits.
    """
    remainder = sum(int(digit) * (2 ** (17 - at) % 11) for at, digit in enumerate(body)) % 11
    return "10X98765432"[remainder]
