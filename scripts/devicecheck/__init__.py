"""Compares the exporter's page with what NVML answers; see docs/device-check.md."""
