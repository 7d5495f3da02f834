"""Private values of all kinds, and sentences that they are planted in."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from string import ascii_letters, ascii_uppercase, digits, hexdigits

from faker import Faker

__all__ = ["Planted", "Values", "filled"]

_SLOT = re.compile(r"\{(\w+)\}")
_TYPES = {
    "spelled": "email, spelled out", "bank_card": "card", "ip6": "ip", "token": "key", "dsn": "key", "pem": "key", "cn_id": "cn-id", "landline": "phone",
    "internal": "url", "birth": "birth-date", "first": "name", "given": "name",
}  # fmt: skip
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
        self._makers: Mapping[str, Callable[[], str]] = {**self._private(), **self._public()}
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
        any_of, faker = self._any, lambda: self._faker
        return {
            "email": lambda: any_of(faker().email, faker().company_email, faker().free_email, self._tagged_email),
            "spelled": self._spelled_email,
            "phone": lambda: faker().phone_number(),
            "mobile": self._mobile,
            "landline": lambda: f"{self._random.choice(('010', '021', '0755', '028'))}-{self._number(8, first='2345678')}",
            "card": lambda: self._grouped(faker().credit_card_number()),
            "bank_card": self._bank_card,
            "iban": self._iban,
            "ssn": self._ssn,
            "cn_id": self._cn_id,
            "ip": lambda: any_of(faker().ipv4_public, faker().ipv4_private),
            "ip6": lambda: any_of(faker().ipv6, lambda: f"2001:db8:{self._hex(3)}::{self._hex(2)}"),
            "mac": lambda: any_of(faker().mac_address, lambda: faker().mac_address().upper().replace(":", "-")),
            "plate": self._plate,
            "passport": lambda: any_of(lambda: "E" + self._number(8), lambda: self._number(9, first="123456")),
            "birth": lambda: faker().date_of_birth().strftime(self._random.choice(("%Y年%m月%d日", "%Y-%m-%d") if self._chinese else ("%d %B %Y", "%B %d, %Y", "%m/%d/%Y", "%Y-%m-%d"))),
            "address": lambda: faker().street_address(),
            "name": self._name,
            "first": self._first,
            "given": self._first,
            "path": self._path,
            "internal": self._internal,
            "host": lambda: f"{self._word()}-{self._number(2)}.{self._random.choice(('corp.local', 'prod.internal', 'lan', 'intranet'))}",
            "account": lambda: any_of(lambda: self._number(self._random.randint(8, 16), first="123456789"), lambda: self._text(ascii_uppercase, 2) + self._number(9), lambda: f"{self._word()}_{self._hex(12)}1", lambda: str(faker().uuid4())),
            **self._secret(),
        }  # fmt: skip

    def _secret(self) -> dict[str, Callable[[], str]]:
        return {
            "key": lambda: self._random.choice(self._key_forms())(),
            "token": lambda: self._any(lambda: self._text(_LETTERS, 32) + "7", lambda: self._hex(40), self._jwt, lambda: self._text(_LETTERS + "-_", 42) + "3"),
            "password": lambda: self._any(lambda: self._faker.password(length=self._random.randint(8, 16)), lambda: f"{self._word()}{self._number(3)}", lambda: f"{self._word().title()}-{self._number(2)}-{self._word()}!"),
            "dsn": lambda: f"{self._random.choice(('postgres', 'mysql', 'redis', 'mongodb', 'postgresql+psycopg'))}://{self._word()}:{self._text(_LETTERS, 12)}@db.example.com:5432/{self._word()}",
            "pem": self._pem,
        }  # fmt: skip

    def _public(self) -> dict[str, Callable[[], str]]:
        roll = self._random.randint
        return {
            "total": lambda: f"{roll(1, 99_999):,}.{roll(0, 99):02}",
            "version": lambda: ".".join(str(roll(0, 30)) for _ in range(3)),
            "version4": lambda: f"{roll(90, 130)}.0.{roll(4000, 6999)}.{roll(1, 200)}",
            "isbn": lambda: self._any(self._faker.isbn13, self._faker.isbn10),
            "time": lambda: f"{roll(0, 23):02}:{roll(0, 59):02}" + self._random.choice(("", f":{roll(0, 59):02}")),
            "count": lambda: self._any(lambda: str(roll(10, 99_999_999)), lambda: f"{roll(1000, 99_999_999):,}"),
            "small": lambda: str(roll(1, 12)),
            "percent": lambda: f"{roll(1, 40)}.{roll(0, 9)}",
            "badcard": self._bad_card,
            "badid": self._bad_id,
            "hash": lambda: self._hex(40),
            "hash64": lambda: self._hex(64),
            "word": self._word,
            "timestamp": lambda: self._any(lambda: str(roll(1_800_000_000, 1_999_999_999)), lambda: str(roll(1_800_000_000_000, 1_999_999_999_999))),
            "date": lambda: self._faker.date(pattern="%Y年%m月%d日" if self._chinese else "%d %B %Y"),
            "latitude": lambda: f"{roll(-89, 89)}.{roll(0, 99_999):05}",
            "longitude": lambda: f"{roll(-179, 179)}.{roll(0, 99_999):05}",
        }  # fmt: skip

    # ------------------------------------------------------------------------------------------ chance

    def _any(self, *makers: Callable[[], str]) -> str:
        return str(self._random.choice(makers)())

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

    def _tagged_email(self) -> str:
        return f"{self._word()}.{self._word()}+{self._word()}@{self._word()}-{self._word()}.co.uk"

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

    def _ssn(self) -> str:
        return str(self._fakers[0].ssn())

    def _cn_id(self) -> str:
        body = f"{self._random.choice(('11', '31', '44', '51', '33'))}{self._number(4)}{self._faker.date_of_birth():%Y%m%d}{self._number(3)}"
        return body + _gb_11643(body)

    def _bad_id(self) -> str:
        body = f"11{self._number(4)}19900307{self._number(3)}"
        return body + str((int(_gb_11643(body).replace("X", "10")) + 1) % 10)

    def _plate(self) -> str:
        electric = f"{self._random.choice('京沪粤浙川苏')}{self._random.choice('ABCDE')}{self._random.choice('DF')}{self._number(5)}"
        return self._random.choice((str(self._faker.license_plate()), electric)) if self._chinese else electric

    # --------------------------------------------------------------------------------------- machines

    def _path(self) -> str:
        a, b = self._word(), self._word()
        return self._random.choice(
            (f"/home/{a}/{b}/notes.txt", f"/var/log/{a}/{b}.log", f"C:\\Users\\{a}\\Documents\\{b}.docx", f"~/.config/{a}/{b}.yaml", f"\\\\fs01\\{a}\\{b}.xlsx", f"/Users/{a}/Library/{b}")
        )  # fmt: skip

    def _internal(self) -> str:
        a, b = self._word(), self._word()
        return self._random.choice(
            (f"http://{a}.corp.local/{b}", f"https://intranet/{a}/{b}", f"http://localhost:8080/{a}", f"http://10.1.2.3:9000/{a}", f"https://{a}.internal:8443/{b}")
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------- secrets

    def _key_forms(self) -> tuple[Callable[[], str], ...]:
        text = self._text
        return (
            lambda: "AKIA" + text(ascii_uppercase + "234567", 16),
            lambda: "sk-" + text(_LETTERS, 48),
            lambda: "sk-proj-" + text(_LETTERS + "-_", 80) + "A",
            lambda: "sk-ant-api03-" + text(_LETTERS + "-_", 90) + "A",
            lambda: "ghp_" + text(_LETTERS, 36),
            lambda: "github_pat_" + text(_LETTERS, 22) + "_" + text(_LETTERS, 59),
            lambda: "glpat-" + text(_LETTERS + "-_", 19) + "A",
            lambda: f"xoxb-{self._number(12)}-{self._number(12)}-{text(_LETTERS, 24)}",
            lambda: "AIza" + text(_LETTERS + "-_", 34) + "A",
            lambda: "sk_live_" + text(_LETTERS, 24),
            lambda: f"SG.{text(_LETTERS + '-_', 22)}.{text(_LETTERS + '-_', 42)}A",
            lambda: "npm_" + text(_LETTERS, 36),
            lambda: "hf_" + text(ascii_letters, 34),
            lambda: "LTAI5t" + text(_LETTERS, 18),
            lambda: "AKID" + text(_LETTERS, 32),
            lambda: "dop_v1_" + self._hex(64),
            lambda: "pypi-AgEIcHlwaS5vcmc" + text(_LETTERS + "-_", 80) + "A",
            lambda: f"{self._number(9)}:AA{text(_LETTERS + '-_', 32)}A",
            lambda: f"ASIA{text(ascii_uppercase + '234567', 16)}",
            self._jwt,
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


def _gb_11643(body: str) -> str:
    remainder = sum(int(digit) * (2 ** (17 - at) % 11) for at, digit in enumerate(body)) % 11
    return "10X98765432"[remainder]
