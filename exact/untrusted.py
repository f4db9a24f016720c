"""Files that users write and strangers give: read within bounds, and YAML and JSON that are plain data or an error in one line.

Pictures that strangers give: in a task, a run folder, an export, or from a server.

Regular expressions that users write and strangers give.

Python's engine tries all ways to match: `(a+)+$` takes years for a text of 60 letters. A linear engine would refuse patterns that it cannot
run (lookarounds, references), so time is bounded instead: the engine lets signals through.
"""

from __future__ import annotations

import base64
import functools
import io
import os
import re
import signal
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from exact.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from io import FileIO

    import yaml
    from PIL.Image import Image


T = TypeVar("T")

_MOST_BYTES = 2 << 20
"""Bytes of the largest document, unless its reader says otherwise."""
_CHUNK = 1 << 24
_MOST_VALUES = 500_000
"""Values of the largest document, each counted as often as aliases repeat it."""
_LONGEST_NUMBER = 100
"""Characters of the longest number."""
_DEEPEST = 100
"""Most values in each other."""
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Beginnings of paths at which a shell gives a command its input: these may be pipes."""


def read_bounded(path: Path, most: int = _MOST_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes, or of a shell's pipe.

    Raises UsageError for a larger file, a pipe or a device, and OSError for one that cannot be read.
    """
    with open_regular(path) as file:
        data = bytearray()
        while len(data) <= most and (part := file.read(min(most + 1 - len(data), _CHUNK))):
            data += part
    if len(data) > most:
        raise UsageError(f"{path} has more than {most:,} bytes: name a smaller file")
    return bytes(data)


def open_regular(path: Path) -> FileIO:
    """Open a regular file, or a shell's pipe, for reading. Raises UsageError for a pipe or a device, and OSError."""
    text = os.fspath(path)
    if "\0" in text:
        raise UsageError(f"the path {text!r} holds a zero byte: name a file")
    file = open(path, "rb", opener=_without_waiting, buffering=0)  # noqa: SIM115
    try:
        kind = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(21, "Is a directory", text)
        if not stat.S_ISREG(kind) and not text.startswith(_STREAMS):
            raise UsageError(f"{path} is a pipe or a device: name a regular file")
        os.set_blocking(file.fileno(), True)
    except BaseException:
        file.close()
        raise
    return file


def decoded(data: bytes | str, kind: type[T]) -> T:
    """Return untrusted JSON as a type. Raises ValueError for anything else, and if it is nested too deeply."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_yaml(path: Path, most: int = _MOST_BYTES) -> Any:
    """Return the plain data of a YAML file; None for an empty one.

    Raises UsageError for any other file, and OSError if it cannot be read.
    """
    try:
        text = read_bounded(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not YAML: {error}") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> Any:
    """Return the plain data of a YAML text. `name`: its name in errors. Raises UsageError in one line.

    Unlike PyYAML's own safe loading it refuses keys that stand twice, aliases that contain or multiply themselves, and numbers of more than
    a hundred digits.
    """
    import yaml

    try:
        loader = _loader()(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        why = " ".join(str(error).split()).replace(' in "<unicode string>",', " at")
        raise UsageError(f"{name} is not YAML: {why}") from error
    except (OverflowError, ValueError) as error:  # the scanner's: an escape that is not a character
        raise UsageError(f"{name} is not YAML: an escape in it is no character: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{name} is nested too deeply: write `key: {{key: value}}`") from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a file. A pipe without a writer is opened at once."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@functools.cache
def _loader() -> type[yaml.SafeLoader]:
    """Return the loader, a class that is made at the first use because PyYAML is imported then."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A safe loader whose every error is a YAMLError."""

        _deep = 0

        def get_single_node(self) -> yaml.Node | None:
            node: yaml.Node | None = super().get_single_node()
            if node is not None:
                _check_size(node)
            return node

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            self._deep += 1
            if self._deep > _DEEPEST:  # Python's own limit is met late: the time grows with the square of the depth
                raise RecursionError
            node: yaml.Node | None = super().compose_node(parent, index)
            self._deep -= 1
            return node

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            try:
                if isinstance(node, yaml.ScalarNode) and len(node.value) > _LONGEST_NUMBER and node.tag.endswith((":int", ":float")):
                    raise ValueError(f"a number of {len(node.value):,} characters")
                if isinstance(node, yaml.ScalarNode):
                    node.value.encode()  # half a character, such as "\\ud800", can be neither stored nor sent
                return super().construct_object(node, deep)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                what = node.value[:_LONGEST_NUMBER] if isinstance(node, yaml.ScalarNode) else node.tag.rpartition(":")[2]
                raise _fault(f"{what!r} is no {node.tag.rpartition(':')[2]}", node) from error

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            _check_keys(node)
            return super().construct_mapping(node, deep)

    return Loader


def _check_keys(node: yaml.Node) -> None:
    """Raise a YAMLError if a key of a mapping stands twice. PyYAML keeps the last one, and a reader sees the first."""
    import yaml

    seen = set()
    for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)] if isinstance(node, yaml.MappingNode) else []:
        if (key.tag, key.value) in seen:
            raise _fault(f"the key {key.value[:100]!r} stands twice", key)
        seen.add((key.tag, key.value))


def _check_size(root: yaml.Node) -> None:
    """Raise a YAMLError if a document holds too many values, with aliases written out, or an alias stands in the value that it names.

    Raises RecursionError if it is too deep.
    """
    import yaml

    found: dict[int, tuple[int, int]] = {}

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Return how many values a node holds, and how many stand in each other."""
        if id(node) not in found:
            found[id(node)] = (0, 0)
            pairs = [] if isinstance(node, yaml.ScalarNode) else [each if isinstance(each, tuple) else (each,) for each in node.value]
            parts = [each for pair in pairs for each in pair]
            below = [measure(each) for each in parts]
            found[id(node)] = 1 + sum(count for count, _ in below), 1 + max((depth for _, depth in below), default=0)
        count, depth = found[id(node)]
        if not count:
            raise _fault("an alias stands in what it names", node)
        if count > _MOST_VALUES:
            raise _fault(f"it holds more than {_MOST_VALUES:,} values", node)
        if depth > _DEEPEST:
            raise RecursionError
        return count, depth

    measure(root)


def _fault(what: str, node: yaml.Node) -> yaml.YAMLError:
    """Return the error of a node, which names its place."""
    import yaml

    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)


MOST_PIXELS = 40_000_000
"""Pixels of the largest picture that is opened."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
"""Formats that are read. Pillow knows others, such as EPS, which it gives to another program."""


def open_picture(data: bytes) -> Image:
    """Return a picture, decoded; of an animation the first frame.

    Raises UnidentifiedImageError, which is an OSError, for data that is not a picture of the usual formats, is damaged, or has more pixels
    than any screen has.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
            if image.width * image.height > MOST_PIXELS:
                raise UnidentifiedImageError(f"it has {image.width} by {image.height} pixels, too many for a screenshot")
            image.load()
    except UnidentifiedImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnidentifiedImageError("it has too many pixels") from error
    except Exception as error:  # a decoder of pictures may raise anything for a hostile one
        raise UnidentifiedImageError(f"it cannot be decoded: {' '.join(str(error).split()) or type(error).__name__}") from error
    return image


def pixels_of(picture: bytes) -> list[list[list[int]]]:
    """Return the rows of a picture's pixels, each as red, green and blue. Raises UnidentifiedImageError."""
    import numpy as np

    rows: list[list[list[int]]] = np.asarray(open_picture(picture).convert("RGB")).tolist()
    return rows


def picture_of(given: object) -> Image:
    """Return a picture that a server gave: in base64, or as rows of pixels. Raises UnidentifiedImageError."""
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        if isinstance(given, list):
            return Image.fromarray(np.asarray(given, dtype=np.uint8)).convert("RGB")
        return open_picture(base64.b64decode(given, validate=True))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise UnidentifiedImageError("it is neither a picture in base64 nor rows of pixels") from error


_LONGEST = 10_000
"""Characters of the longest pattern."""
_SECONDS = 1.0
"""Most seconds that a pattern is looked for in one text."""
_REPEATED_GROUP, _REPEAT = re.compile(r"\)\s*[*+{]|\(\?[a-zA-Z-]*x"), re.compile("[*+{]")
"""Match the places at which a pattern repeats a group, or may do so in its verbose form; and each repeat."""
_FEW, _SHORT = 3, 200
"""Number of repeats, none inside another, that take milliseconds to search in a text of so many characters: no clock is set for them."""


R = TypeVar("R")


class BoundedPattern:
    """Regular expression that is looked for within a second; one that takes longer is not tried again.

    Time is bounded in a process's main thread, where searches run, on systems with POSIX timers.
    """

    def __init__(self, pattern: re.Pattern[str], where: str) -> None:
        """Wrap a pattern. `where`: the key that holds it."""
        self.pattern, self._where, self._pattern = pattern.pattern, where, pattern
        self._is_slow, self._may_be_slow = False, bool(_REPEATED_GROUP.search(self.pattern)) or len(_REPEAT.findall(self.pattern)) > _FEW

    def found_in(self, text: str, *, otherwise: bool) -> bool:
        """Return whether the pattern is found in a text; `otherwise` if that takes too long."""
        found = self._within(lambda: self._pattern.search(text) is not None, len(text))
        return otherwise if found is None else found

    def replaced(self, by: str, text: str) -> str:
        """Return a text with all that the pattern matches replaced. Raises EnvironmentFailure if that takes too long."""
        found = self._within(lambda: self._pattern.sub(by, text), len(text))
        if found is None:
            fact = f"the pattern {_shown(self.pattern)} in {self._where} takes more than {_SECONDS:g} s on a text"
            raise EnvironmentFailure(f"{fact}: write it without repeats in repeats, such as (a+)+").final()
        return found

    def _within(self, work: Callable[[], R], length: int) -> R | None:
        """Return the result of a search; None if it takes too long, or did before."""
        if self._is_slow:
            return None
        try:
            with _alarm(_SECONDS) if self._may_be_slow or length > _SHORT else nullcontext():
                return work()
        except _TooSlow:
            self._is_slow = True
            return None


class _TooSlow(BaseException):
    """Raised when the time is up. It is not an Exception, so that no handler in between catches it."""


@functools.lru_cache(maxsize=256)
def compiled(pattern: str, where: str, way_out: str = "write a regular expression of Python") -> BoundedPattern:
    """Return a pattern. `where`: the key that holds it. Raises UsageError if it is not a pattern, or too large or deep."""
    try:
        if len(pattern) > _LONGEST:
            raise OverflowError(f"it has {len(pattern):,} characters, and may have {_LONGEST:,}")
        return BoundedPattern(re.compile(pattern), where)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"invalid pattern {_shown(pattern)} in {where}: {error}: {way_out}") from error


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 100 else f"{pattern[:100]}...")


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooSlow after some seconds of the block. A timer that other code has set continues afterwards."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    is_over = False

    def ring(number: int, frame: object) -> None:
        if not is_over:
            raise _TooSlow

    began, before = time.monotonic(), signal.signal(signal.SIGALRM, ring)
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001), every)
