"""The lexer of MLIR text: one cursor, moved by compiled patterns. Each pattern also consumes the blanks and comments
after its token, so that the cursor is always at the start of a token. There are no token objects: a reader asks for the
token that it expects."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from trivium.ir.attributes import MAX_DEPTH
from trivium.ir.errors import ParseError

Item = TypeVar("Item")

BLANKS = r"[ \t\r\n]*(?://[^\n]*[ \t\r\n]*)*"


def token(pattern: str) -> re.Pattern[str]:
    """Compiles the pattern of a token and the blanks after it; the token's text is the first group."""
    return re.compile(f"({pattern}){BLANKS}", re.ASCII)


SPACE = re.compile(BLANKS)
VALUE = token(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
WORD = token(r"[A-Za-z_][\w$.]*")
INTEGER = token(r"-?(?:0x[0-9a-fA-F]+|\d+)")
NUMBER = token(r"-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+)")
STRING = token(r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"')
SYMBOL = token(r'@(?:[A-Za-z_][\w$.]*|"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")')
ALIAS = token(r"[#!](?:\d+|[A-Za-z_][\w$.-]*)")
_ESCAPE = re.compile(rb"\\(?:([0-9a-fA-F]{2})|(.))", re.DOTALL)
_NAMED_ESCAPES = {b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}
_ANYTHING = re.compile(r"[%@#!^]?[\w$.]+|->|.", re.ASCII)
_VERBATIM = re.compile(r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|->|[<>()\[\]{}]|[^"<>()\[\]{}-]+|-')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}


class Lexer:
    """A text and a position in it."""

    def __init__(self, text: str, file: str = ""):
        self.text = text
        self.file = file
        self.depth = self.deepest = 0
        self._line_starts: list[int] | None = None
        self.pos = SPACE.match(text).end()  # type: ignore[union-attr]
        if not text.isascii():
            self._refuse_surrogates()

    def _refuse_surrogates(self) -> None:
        """Refuses surrogates, which Python strings can contain but files cannot."""
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            character = ascii(self.text[error.start])
            raise self.error(f"has {character}, which is half of a character", error.start) from None

    # Places and errors

    def place(self, pos: int) -> tuple[int, int]:
        """Returns the line and column of a position, counted from 1."""
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._line_starts, pos)
        return line, pos - self._line_starts[line - 1] + 1

    def error(self, message: str, pos: int | None = None) -> ParseError:
        """Returns a `ParseError` at a position (by default the cursor), to be raised."""
        pos = self.pos if pos is None else pos
        line, column = self.place(pos)
        start = self.text.rfind("\n", 0, pos) + 1
        end = self.text.find("\n", pos)
        source = self.text[start : end if end >= 0 else len(self.text)].rstrip().replace("\t", " ")
        source = source.encode("utf-8", "replace").decode()  # surrogates cannot be shown
        # Lines with a tensor are long: only the text around the caret is shown.
        cut = max(0, column - 80) if len(source) > 160 else 0
        shown = ("..." if cut else "") + source[cut : cut + 160] + ("..." if len(source) > cut + 160 else "")
        error = ParseError(message, file=self.file, line=line, column=column)
        caret = column - cut + (3 if cut else 0)
        if shown:
            error.message += f"\n  {shown}\n  {' ' * (caret - 1)}^"
            error.args = (error.message,)
        return error

    def found(self) -> str:
        """Describes the text at the cursor, for messages."""
        if self.pos >= len(self.text):
            return "the end of the text"
        match = _ANYTHING.match(self.text, self.pos)
        return f"'{match[0] if match else self.text[self.pos]}'"

    def unexpected(self, expected: str) -> ParseError:
        return self.error(f"has {self.found()}, expected {expected}")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enters one more level of nesting, up to the limit."""
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep")
        yield
        self.depth -= 1

    # Tokens

    def at(self, literal: str) -> bool:
        return self.text.startswith(literal, self.pos)

    def accept(self, literal: str) -> bool:
        """Takes a punctuation mark if it is next."""
        if not self.text.startswith(literal, self.pos):
            return False
        self.pos = SPACE.match(self.text, self.pos + len(literal)).end()  # type: ignore[union-attr]
        return True

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            raise self.unexpected(f"'{literal}'")

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        """Takes the token that must be next, and returns its text."""
        match = pattern.match(self.text, self.pos)
        if match is None:
            raise self.unexpected(expected)
        self.pos = match.end()
        return match[1]

    def try_take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        return match[1]

    def at_word(self, word: str) -> bool:
        match = WORD.match(self.text, self.pos)
        return match is not None and match[1] == word

    def accept_word(self, word: str) -> bool:
        match = WORD.match(self.text, self.pos)
        if match is None or match[1] != word:
            return False
        self.pos = match.end()
        return True

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            raise self.unexpected(f"'{word}'")

    def integer(self) -> int:
        return self.to_integer(self.take(INTEGER, "an integer"))

    def to_integer(self, text: str) -> int:
        """Converts digits that were taken to a 64-bit integer."""
        value = int(text, 16 if "x" in text else 10) if len(text) <= 20 else 1 << 63
        if not -(1 << 63) <= value < 1 << 63:
            raise self.error(f"the integer {text[:40]} does not fit in 64 bits")
        return value

    def string(self) -> str:
        return unescape(self.take(STRING, "a string"))

    def symbol_name(self) -> str:
        """Reads the name after `@`."""
        name = self.take(SYMBOL, "a symbol, as in @name")[1:]
        return unescape(name) if name.startswith('"') else name

    def listed(self, item: Callable[[], Item], opening: str, closing: str) -> list[Item]:
        """Reads comma-separated items in brackets."""
        self.expect(opening)
        items: list[Item] = []
        if self.accept(closing):
            return items
        items.append(item())
        while self.accept(","):
            items.append(item())
        self.expect(closing)
        return items

    def integers(self) -> tuple[int, ...]:
        """`[1, 2]`"""
        return tuple(self.listed(self.integer, "[", "]"))

    def verbatim(self, start: int) -> str:
        """Returns the text from `start` to the bracket that closes the one at the cursor."""
        if self.text[self.pos : self.pos + 1] not in _CLOSING:
            raise self.unexpected("an opening bracket")
        expected = []
        pos = self.pos
        while True:
            match = _VERBATIM.match(self.text, pos)
            if match is None:
                raise self.error(f"has no closing '{expected[-1]}'")
            pos, found = match.end(), match[0]
            if found in _CLOSING:
                expected.append(_CLOSING[found])
            elif expected and found == expected[-1]:
                expected.pop()
            elif found in ">)]}":
                raise self.error(f"has '{found}', expected '{expected[-1]}'", match.start())
            if not expected:
                break
        self.pos = SPACE.match(self.text, pos).end()  # type: ignore[union-attr]
        return self.text[start:pos]


def unescape(literal: str) -> str:
    """Returns the string that a quoted literal stands for: `\\n`, `\\t`, `\\\\`, `\\"`, and `\\XX` for a byte. Bytes
    that are not UTF-8 are kept as surrogates."""
    if "\\" not in literal:
        return literal[1:-1]

    def replace(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 16)]) if match[1] else _NAMED_ESCAPES.get(match[2], match[2])

    raw = _ESCAPE.sub(replace, literal[1:-1].encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def quote(text: str) -> str:
    """Quotes a string as MLIR does: everything except printable ASCII becomes `\\XX`, byte by byte."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    pieces = []
    for byte in text.encode("utf-8", "surrogateescape"):
        character = chr(byte)
        if character == "\\":
            pieces.append("\\\\")
        elif 32 <= byte < 127 and character != '"':
            pieces.append(character)
        else:
            pieces.append(f"\\{byte:02X}")
    return f'"{"".join(pieces)}"'


_BARE_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def symbol_text(name: str) -> str:
    """Returns `@name`, quoted if the name needs it."""
    return f"@{name}" if _BARE_SYMBOL.fullmatch(name) else f"@{quote(name)}"
