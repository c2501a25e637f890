"""Files named in parts."""

import asyncio
import os

import pytest
from msgspec.structs import replace

from interlingua.spec.content import Audio, Document, Image, Text, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.transport.media import load_media, load_media_async, paths_from_urls

PNG = b"\x89PNG\r\n\x1a\nrest"
PDF = b"%PDF-1.7 rest"


def load_both(request, **settings):
    """Both forms give the same, or fail the same."""
    errors, results = [], []
    for load in (load_media, lambda *a, **k: asyncio.run(load_media_async(*a, **k))):
        try:
            results.append(load(request, **settings))
        except ConfigurationError as error:
            errors.append(error)
    if errors:
        assert len(errors) == 2
        assert str(errors[0]) == str(errors[1])
        raise errors[0]
    assert results[0] == results[1]
    return results[0]


def one(part, **settings):
    got = load_both(Request(messages=(Message.user([part]),)), **settings)
    return got.messages[0].content[0]


def test_each_kind(tmp_path):
    """Bytes in place of the path; the type is what the bytes show, whatever the name says."""
    picture = tmp_path / "wrong.jpg"
    picture.write_bytes(PNG)
    paper = tmp_path / "paper"
    paper.write_bytes(PDF)
    sound = tmp_path / "sound.wav"
    sound.write_bytes(b"RIFF....WAVE")

    assert one(Image(path=str(picture), detail="low")) == Image(
        data=PNG, media_type="image/png", detail="low"
    )
    assert one(Document(path=str(paper))) == Document(
        data=PDF, media_type="application/pdf", file_name="paper"
    )
    assert one(Audio(path=str(sound))).media_type == "audio/wav"


def test_given_values_are_kept(tmp_path):
    """A given media type or file name is kept."""
    path = tmp_path / "a.txt"
    path.write_text("x")

    part = Document(path=str(path), media_type="text/x-special", file_name="b.txt")

    assert one(part) == Document(data=b"x", media_type="text/x-special", file_name="b.txt")


def test_relative_paths(tmp_path, monkeypatch):
    """`~` is the home folder, `./` the current one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(PNG)

    assert one(Image(path="~/a.png")).data == PNG
    assert one(Image(path="./a.png")).data == PNG


def test_tool_results(tmp_path):
    """A file in a tool result is read too, and the other parts stay the same objects."""
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    text = Text(text="/etc/hosts")
    result = ToolResult(tool_call_id="c", content=(text, Image(path=str(path))))
    request = Request(messages=(Message.user("hi"), Message(role="tool", content=(result,))))

    got = load_both(request)

    assert got.messages[1].content[0].content == (text, Image(data=PNG, media_type="image/png"))
    assert got.messages[0] is request.messages[0]
    assert request.messages[1].content[0] is result


@pytest.mark.parametrize(
    "part",
    [
        Text(text="/etc/hosts"),
        Image(url="https://a.example/b.png"),
        Image(url="gs://bucket/a.png"),
        Image(url="data:image/png;base64,AAAA"),
        Image(url="//a.example/b.png"),
        Image(data=PNG),
        Document(file_id="/file"),
        Document(text="/etc/hosts"),
        ToolResult(tool_call_id="c", content="/etc/hosts"),
        ToolResult(tool_call_id="c", content={"url": "/etc/hosts"}),
    ],
)
def test_no_files(part):
    """A request without files is returned as the same object."""
    request = Request(messages=(Message(role="user", content=(part,)),))

    assert load_media(request) is request
    assert asyncio.run(load_media_async(request)) is request


def test_unreadable_files(tmp_path):
    """Missing, a folder, empty, too large: the error says where and why."""
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"x" * 11)

    for name, why in (
        ("missing", "No such file"),
        (".", "not a regular file"),
        ("empty", "empty"),
        ("large", "larger than 10 bytes"),
        ("nul\0", "cannot read"),
    ):
        with pytest.raises(ConfigurationError, match=why) as caught:
            one(Image(path=f"{tmp_path}/{name}"), max_bytes=10)
        assert "messages[0].content[0]" in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_are_not_opened(tmp_path):
    """A pipe, which may block for ever, is not opened."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConfigurationError, match="not a regular file"):
        one(Image(path=f"{tmp_path}/pipe"))


def test_as_large_as_the_limit(tmp_path):
    """The limit itself is allowed."""
    (tmp_path / "a").write_bytes(b"x" * 10)

    assert one(Document(path=f"{tmp_path}/a"), max_bytes=10).data == b"x" * 10


def test_all_files_together_have_a_limit(tmp_path):
    """Files below the limit of one file are refused together."""
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    request = Request(model="m", messages=[Message.user([Image(path=str(file))] * 3)])

    assert load_media(request, max_total=3 * len(PNG)).messages[0].content[2].data == PNG
    with pytest.raises(ConfigurationError, match="bytes together"):
        load_media(request, max_total=3 * len(PNG) - 1)


def test_root_folder(tmp_path):
    """With `root`, nothing outside of it is read, through `..` or a link."""
    root = tmp_path / "media"
    root.mkdir()
    (root / "a.png").write_bytes(PNG)
    (tmp_path / "secret").write_bytes(b"x")
    (root / "link").symlink_to(tmp_path / "secret")

    assert one(Image(path=f"{root}/a.png"), root=root).data == PNG
    for name in ("../secret", "link"):
        with pytest.raises(ConfigurationError, match="outside"):
            one(Document(path=f"{root}/{name}"), root=root)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", [Image, Audio, Document])
def test_a_path_as_url_is_not_read(tmp_path, kind, nested):
    """It may come from a stranger; the error says where it is and what to use."""
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    part = kind(url=str(path))
    content = ToolResult(tool_call_id="c", content=(part,)) if nested else part
    request = Request(messages=(Message(role="user", content=(content,)),))

    with pytest.raises(ConfigurationError, match="use path= instead of url=") as caught:
        load_both(request)
    assert str(caught.value).startswith("messages[0].content[0]")
    assert load_both(paths_from_urls(request)) == load_both(
        Request(messages=(Message(role="user", content=(_with_path(content, path),)),))
    )


def _with_path(content, path):
    if isinstance(content, ToolResult):
        return replace(content, content=(_with_path(content.content[0], path),))
    return type(content)(path=path)
