"""Validates massive traces on Spark: ingest into sorted Parquet, sieve the steady requests, settle the rest by the monitors."""
