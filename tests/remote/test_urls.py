"""Is a URL shown without what opens doors, and is the right part of a chain taken?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import ChunkwiseError
from chunkwise.names import shown_url, without_secrets
from chunkwise.remote import urls


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a.nc", "https://host/a.nc"),
        ("https://me:secret@host/a.nc?token=secret#secret", "https://host/a.nc?..."),
        ("s3://bucket/a@b.nc", "s3://bucket/a@b.nc"),
        ("simplecache::https://me:secret@host/a.nc", "simplecache::https://host/a.nc"),
        ("zip://in/a.h5::https://host/b.zip?secret", "zip://in/a.h5::https://host/b.zip?..."),
        # Addresses and questions may have what stands between the parts of a chain.
        ("http://[::1]:80/a.nc?secret", "http://[::1]:80/a.nc?..."),
        ("http://me:secret@[::1/a.nc?secret", "http://[::1/a.nc?..."),
        ("https://host/a.nc?token=x::secret", "https://host/a.nc?..."),
        # Nobody can tell where this password ends.
        ("https://me:sec?ret@host/a.nc", "https://...?..."),
        ("https://me:sec#ret@host/a.nc", "https://...#..."),
        ("https://me:sec/ret@host/a.nc", "https://..."),
        ("memory://a.nc", "memory://a.nc"),
        ("zip://in/a::simplecache::s3://b/c", "zip://in/a::simplecache::s3://b/c"),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert "secret" not in without_secrets(f"cannot read '{url}'")


@given(st.text("ab:/?#@[]", max_size=12), st.text("ab:/@?", max_size=6))
def test_nothing_that_is_asked_is_shown(path: str, asked: str) -> None:
    url = f"https://host/{path}?{asked}secret"
    assert "secret" not in shown_url(url)
    assert "secret" not in shown_url(f"simplecache::{url}")


def test_errors_show_no_secrets() -> None:
    for url in (
        "http://me:secret@[::1/a.nc?secret",
        "http://me:secret@host:port/a.nc?secret",
        "http://[::1]:1/a.nc?secret",
        "nonsense://me:secret@host/a.nc?secret",
    ):
        with pytest.raises(ChunkwiseError) as met:
            chunkwise.open(url)
        assert "secret" not in str(met.value)


@pytest.mark.parametrize(
    ("url", "without", "name"),
    [
        ("https://host/x/a.nc?b/c", "https://host/x/a.nc?b/c", "a.nc"),
        ("filecache::s3://bucket/a.nc", "s3://bucket/a.nc", "a.nc"),
        (
            "blockcache::zip://in/a.h5::https://host/b.zip",
            "zip://in/a.h5::https://host/b.zip",
            "a.h5",
        ),
        ("https://host/", "https://host/", "host"),
    ],
)
def test_what_a_chain_leads_to(url: str, without: str, name: str) -> None:
    assert urls.without_caches(url) == without
    assert urls.file_name(url) == name
