"""Generated from proto/nmt_core/v1 by scripts/generate_proto.py; do not edit."""
