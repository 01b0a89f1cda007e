"""Writes Envoy's settings for servers: envoy.yaml, with what the servers' own settings say.

python -m scripts.deploy.envoy --server nmt-1:50551 --token-file tokens --limit request_mib=16 > envoy.yaml
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from nmt_core.base.errors import NmtError
from nmt_core.serving.client.connection import split_addresses
from nmt_core.serving.credentials import read_tokens
from nmt_core.serving.limits import Limits, read_limits

EXAMPLE = Path(__file__).with_name("envoy.yaml")
_HEAD = 5  # bytes of gRPC before a message


def main() -> int:
    """Print the settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--server", action="append", default=[], metavar="HOST:PORT", help="a server; repeatable (nmt-1 and nmt-2)")
    add("--listen", default="0.0.0.0:8443", metavar="HOST:PORT", help="for clients (0.0.0.0:8443)")
    add("--tls-cert", default="/tls/tls.crt", metavar="PEM", help="shown to clients (/tls/tls.crt)")
    add("--tls-key", default="/tls/tls.key", metavar="PEM", help="its private key (/tls/tls.key)")
    add("--descriptor", default="/etc/envoy/http.binpb", metavar="FILE", help="proto/http.binpb, for JSON")
    add("--token-file", metavar="FILE", help="the servers'")
    add("--limits", metavar="FILE", help="the servers'")
    add("--limit", action="append", default=[], metavar="KEY=VALUE", help="the servers'")
    try:
        yaml.safe_dump(settings(parser.parse_args()), sys.stdout, sort_keys=False)
    except NmtError as error:
        print(f"envoy.py: {error}", file=sys.stderr)
        return 2
    return 0


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """Those of the example, with what the options say. Raises NmtError."""
    content: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    limits = read_limits(args.limits, args.limit)
    (listener,), (cluster,) = content["static_resources"]["listeners"], content["static_resources"]["clusters"]
    listener["address"] = _addresses(args.listen)[0]
    tls = listener["filter_chains"][0]["transport_socket"]["typed_config"]["common_tls_context"]
    tls["tls_certificates"] = [
        {"certificate_chain": {"filename": args.tls_cert}, "private_key": {"filename": args.tls_key}}
    ]
    connections = content["overload_manager"]["resource_monitors"][-1]["typed_config"]
    connections["max_active_downstream_connections"] = limits.connections
    http = listener["filter_chains"][0]["filters"][0]["typed_config"]
    _set_limits(http, limits)
    filters = {one["name"].rpartition(".")[2]: one for one in http["http_filters"]}
    filters["grpc_json_transcoder"]["typed_config"]["proto_descriptor"] = args.descriptor
    if args.token_file:
        filters["api_key_auth"]["typed_config"]["credentials"] = [
            {"key": token, "client": client.user} for token, client in read_tokens(args.token_file).items()
        ]
    else:
        http["http_filters"].remove(filters["api_key_auth"])
        del filters["local_ratelimit"]["typed_config"]["rate_limits"]  # a token that nobody checks says nothing
        for route in http["route_config"]["virtual_hosts"][0]["routes"]:
            route.get("typed_per_filter_config", {}).pop("envoy.filters.http.api_key_auth", None)
    if args.server:
        servers = [{"endpoint": {"address": one}} for server in args.server for one in _addresses(server)]
        cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": servers}]
    (group,) = cluster["load_assignment"]["endpoints"]
    (thresholds,) = cluster["circuit_breakers"]["thresholds"]
    calls = len(group["lb_endpoints"]) * (limits.calls + limits.streams)
    cluster["circuit_breakers"]["thresholds"] = [dict.fromkeys(thresholds, calls)]
    return content


def _set_limits(http: dict[str, Any], limits: Limits) -> None:
    http["request_timeout"], http["stream_flush_timeout"] = _duration(limits.body), _duration(limits.unread)
    connection = http["common_http_protocol_options"]
    connection["idle_timeout"], connection["max_connection_duration"] = _duration(limits.idle), _duration(limits.age)
    for route in http["route_config"]["virtual_hosts"][0]["routes"]:
        buffer = route.get("typed_per_filter_config", {}).get("envoy.filters.http.buffer")
        if buffer is not None and route["match"].get("prefix") == "/nmt_core.v1.NmtService/":
            buffer["buffer"]["max_request_bytes"] = limits.request_bytes + _HEAD


def _duration(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def _addresses(text: str) -> list[dict[str, Any]]:
    """Those of HOST:PORT, or several with commas. Raises ConfigError."""
    parts = [address.rpartition(":") for address in split_addresses(text)]
    return [{"socket_address": {"address": host.strip("[]"), "port_value": int(port)}} for host, _, port in parts]


if __name__ == "__main__":
    sys.exit(main())
