"""The two keys of a request: by its bytes, and by what it means. Request headers never count, except those that select a representation.

Representation: `Range` of a GET, the ranking of `Accept` where it names a media type of a package index, `Git-Protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b

from secondtake.cassettes import content as codings
from secondtake.cassettes.canonical import Document, canonical_target, document, media_type, split_target
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import EMPTY, Body, Digest, Fields, Keys, Request
from secondtake.cassettes.negotiation import ranking
from secondtake.cassettes.normalise import NO_ALIASES, Aliases, Rule, Subject, body_form, format_of, normalised, rules_version
from secondtake.cassettes.placeholder import collapse
from secondtake.cassettes.volatile import RULES, VERSION

_INDEX_TYPES = (b"vnd.pypi.simple", b"vnd.npm.install")


def representation(method: str, fields: Fields) -> bytes:
    """What of the head selects a representation; empty for most requests."""
    found = b""
    reads = method == "GET"
    for name, value in fields:
        size = len(name)
        if size == 6 and b"vnd." in value and any(kind in value for kind in _INDEX_TYPES) and name.lower() == b"accept":
            found += b"a:" + ranking(value)
        elif size == 5 and reads and name.lower() == b"range":
            found += b"r:" + value.replace(b" ", b"").lower()
        elif size == 12 and name.lower() == b"git-protocol":
            found += b"g:" + value.strip()
    return found


def exact_key(request: Request, digest: Digest) -> bytes:
    """16 bytes: method, scheme, host, port, target as sent, representation, digest of the body as kept. A few microseconds."""
    method = request.method
    head = f"{method}\n{request.scheme}\n{request.host}\n{request.port}\n{digest}\n".encode("utf-8", "surrogateescape")
    return blake2b(head + request.path + b"\n" + representation(method, request.fields), digest_size=16).digest()


def understood(request: Request, content: bytes) -> Document:
    """The body decoded and parsed. Where its coding cannot be undone (unknown, damaged, over a cap) the bytes as they are: opaque.

    Content that does not fit its label is taken as it is: redaction keeps a compressed body decoded under the label it came with.
    """
    names = codings.codings(request.fields)
    plain: bytes | codings.Opaque = content
    if names:
        try:
            plain = codings.decode(content, names)
        except TooLarge:
            return Document(content)
    return document(content if isinstance(plain, codings.Opaque) else plain, media_type(request.fields))


def subject(request: Request, found: Document) -> Subject:
    """What the rules are told about a request."""
    path = split_target(request.path)[0]
    return Subject(request.method, request.host, path, format_of(path, found.json) if found.json is not None else "")


def meaning(request: Request, content: bytes, rules: Sequence[Rule] = RULES) -> Document:
    """The body as it is compared: decoded, parsed, volatile places gone."""
    found = understood(request, content)
    return normalised(found, subject(request, found), rules)


def aimed(request: Request, rules: Sequence[Rule] = RULES) -> bytes:
    """Path and query as they are compared."""
    target = request.path
    if any(rule.on_target is not None for rule in rules):
        asked = Subject(request.method, request.host, split_target(target)[0])
        for rule in rules:
            if rule.on_target is not None and rule.applies(asked):
                target = rule.on_target(target)
    return target


def normal_key(
    request: Request, content: bytes | None, digest: Digest, *, rules: Sequence[Rule] = RULES, aliases: Aliases = NO_ALIASES
) -> bytes:
    """16 bytes: the same after canonical query, decoding, rules. `content` is None where the body is too large: then its digest counts."""
    target = aliases.replace(collapse(canonical_target(aimed(request, rules))))
    head = f"{request.method}\n{request.scheme}\n{request.host}\n{request.port}\n".encode("utf-8", "surrogateescape")
    mix = blake2b(head, digest_size=16)
    mix.update(b"%d\n" % len(target))
    mix.update(target)
    mix.update(representation(request.method, request.fields) + b"\n")
    if content is None:
        mix.update(b"digest\n" + digest.encode())
    elif content:
        mix.update(body_form(meaning(request, content, rules), aliases))
    return mix.digest()


PARTIAL = Digest("partial")
"""Stands for the digest of a body that never became whole, because its request was answered before."""


def partial_keys(request: Request, keys: Callable[[Request, bytes | None], Keys]) -> Keys:
    """Both keys of such a request: by all but its body. How much of that there is, and its digest, stand in `request.body`."""
    return keys(replace(request, body=Body(PARTIAL, request.body.size_bytes)), None)


def request_keys(
    request: Request,
    content: bytes | None,
    *,
    digest: Digest | None = None,
    rules: tuple[Rule, ...] = RULES,
    aliases: Aliases = NO_ALIASES,
) -> Keys:
    """Both keys of a redacted request. `content` is its body as kept, None when it was too large to hold.

    `digest` defaults to `request.body.digest`.
    """
    named = request.body.digest if digest is None else digest
    if content is None and named == EMPTY:
        content = b""
    version = VERSION if rules is RULES else rules_version(rules)
    return Keys(exact_key(request, named), normal_key(request, content, named, rules=rules, aliases=aliases), version)
