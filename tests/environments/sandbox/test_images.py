import asyncio
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from exact.environments.sandbox.images import ImagePacker, ImageStore, SandboxImage, folder_size
from exact.errors import EnvironmentFailure


def image(folder: Path, id: str, bytes: int = 10) -> SandboxImage:
    (folder / id).mkdir()
    (folder / id / "pages.img").write_bytes(b"x" * bytes)
    return SandboxImage(id=id, folder=folder / id, bundle=folder, bytes=bytes, versions={})


def kept(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_least_recently_used_image_is_evicted(tmp_path: Path) -> None:
    images = ImageStore(limit=20)
    first, second = image(tmp_path, "first"), image(tmp_path, "second")
    images.add(first)
    images.add(second)
    with images.use(first):
        pass
    images.add(image(tmp_path, "third"))
    assert kept(tmp_path) == {"first", "third"}
    assert images.bytes == 20


def test_an_image_in_use_and_a_pinned_one_stay(tmp_path: Path) -> None:
    images = ImageStore(limit=20)
    images.add(image(tmp_path, "pinned"), pinned=True)
    used = image(tmp_path, "used")
    images.add(used)
    with images.use(used):
        images.add(image(tmp_path, "new"))
    images.add(image(tmp_path, "newer"))
    assert kept(tmp_path) == {"pinned", "newer"}


def test_an_image_that_is_gone_says_so(tmp_path: Path) -> None:
    images = ImageStore(limit=20)
    images.add(image(tmp_path, "one"))
    images.drop("one")
    images.drop("one")
    assert "one" not in images and kept(tmp_path) == set()
    with pytest.raises(EnvironmentFailure, match="snapshot one is gone"):
        images.find("one")


def test_the_newest_is_kept_although_it_is_larger_than_the_limit(tmp_path: Path) -> None:
    images = ImageStore(limit=5)
    images.add(image(tmp_path, "large"))
    assert kept(tmp_path) == {"large"}
    assert folder_size(tmp_path / "large") == 10


def test_where_space_gets_scarce_the_least_recently_used_is_to_be_packed_but_not_the_newest(tmp_path: Path) -> None:
    images = ImageStore(limit=100)
    images.add(image(tmp_path, "pinned", 20), pinned=True)
    first = image(tmp_path, "first", 20)
    images.add(first)
    assert images.next_to_pack() is None
    images.add(image(tmp_path, "second", 20))
    assert images.next_to_pack() == first and images.next_to_pack({"first"}) is None
    images.update(msgspec.structs.replace(first, bytes=5, packed=True))
    assert images.bytes == 45 and images.next_to_pack() is None


def test_an_image_that_grows_evicts_others(tmp_path: Path) -> None:
    images = ImageStore(limit=30)
    small = image(tmp_path, "small", 10)
    images.add(small)
    images.add(image(tmp_path, "other", 10))
    with images.use(small):
        images.update(msgspec.structs.replace(small, bytes=25))
    assert "small" in images and "other" not in images


@pytest.mark.parametrize("pinned", [False, True])
def test_an_image_that_is_dropped_while_it_is_used_goes_afterwards(tmp_path: Path, pinned: bool) -> None:
    images = ImageStore(limit=20)
    images.add(one := image(tmp_path, "one"), pinned=pinned)
    with images.use(one):
        with images.retain(one):
            images.drop("one")
            images.update(msgspec.structs.replace(one, bytes=5))
        assert "one" not in images and kept(tmp_path) == {"one"} and images.bytes == 0
        assert images.find("one").bytes == 5
    assert kept(tmp_path) == set()
    with pytest.raises(EnvironmentFailure, match="snapshot one is gone"):
        images.find("one")


async def test_an_image_that_is_wanted_before_its_packing_began_is_not_packed(tmp_path: Path) -> None:
    images = ImageStore(limit=30)
    images.add(wanted := image(tmp_path, "wanted"))
    images.add(image(tmp_path, "newest"))
    packing = ImagePacker(images)
    with ExitStack() as stack:
        async with packing._lock:  # another one is being unpacked
            packing.start()
            await asyncio.sleep(0)
            stack.enter_context(images.use(wanted))
        await packing.wait()
        assert not images.find("wanted").packed
