"""Generated from proto/nmt_core/v1 by scripts/generate_proto.py; do not edit."""

PROTO_SHA256 = "d668541f3231cc29ab4461a083b05e988877f6b8e1da88773db4e6a1cbc9b7ec"
