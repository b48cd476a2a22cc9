"""Whether AWS would have taken a request: its signature made once more, by botocore, from what arrived."""

from __future__ import annotations

import re

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from secondtake.harness.provider import Seen

AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)"
)


def signed_for(seen: Seen, host: str, key: str, secret: str) -> bool:
    """Whether `seen` bears the signature that `key` and `secret` make for it at `host`."""
    found = AUTHORIZATION.fullmatch(seen.field("authorization") or "")
    assert found is not None
    signer, region, service, names, signature = found.groups()
    fields = {name: seen.field(name) or "" for name in names.split(";")} | {"host": host}
    request = AWSRequest(method=seen.method, url=f"https://{host}{seen.target}", data=seen.body, headers=fields)
    request.context["timestamp"] = fields["x-amz-date"]
    auth = SigV4Auth(Credentials(key, secret), service, region)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return signer == key and auth.signature(text, request) == signature
