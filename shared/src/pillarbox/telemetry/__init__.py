"""Logs, probes and metrics: the same in every service, and free of tokens and of what people wrote."""

from pillarbox.telemetry.logs import configure, get_logger, place
from pillarbox.telemetry.probes import Check, Probes, bind, serve, serve_on

__all__ = ["Check", "Probes", "bind", "configure", "get_logger", "place", "serve", "serve_on"]
