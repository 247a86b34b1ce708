#!/usr/bin/env python3
"""Signs lines of Clutch, and verifies those that mailboxd signed.

    sign.py sign KEY.pem KID      signs each line of standard input with an ed25519 key
    sign.py verify KEYS.pem       prints what a key of "mailboxd keys export" signed

The signed text is the envelope in the form of RFC 8785, without security.auth.sig.
For text, and for whole numbers up to 2^53, Python's json writes that form; take a
library of RFC 8785 for floats and for names of members beyond U+FFFF.
"""

import base64
import json
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key


def text_of(envelope):
    return json.dumps(envelope, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sign(line, key, kid):
    envelope = json.loads(line)
    auth = envelope.setdefault("security", {})["auth"] = {"scheme": "ed25519", "kid": kid}
    auth["sig"] = base64.urlsafe_b64encode(key.sign(text_of(envelope))).decode().rstrip("=")
    return json.dumps(envelope)


def verify(line, keys):
    envelope = json.loads(line)
    sig = envelope.get("security", {}).get("auth", {}).pop("sig", "")
    for key in keys:
        try:
            key.verify(base64.urlsafe_b64decode(sig + "=" * (-len(sig) % 4)), text_of(envelope))
            return True
        except (InvalidSignature, ValueError):
            pass
    return False


def main():
    order, pem = sys.argv[1], open(sys.argv[2], "rb").read()
    if order == "sign":
        key = load_pem_private_key(pem, None)
        for line in sys.stdin:
            print(sign(line, key, sys.argv[3]))
        return
    blocks = re.findall(b"-----BEGIN.*?-----END[^\n]*\n", pem, re.DOTALL)
    keys = [load_pem_public_key(block) for block in blocks]
    for line in sys.stdin:
        envelope = json.loads(line)
        print("verified" if verify(line, keys) else "not verified", envelope["type"], envelope["task_id"])


main()
