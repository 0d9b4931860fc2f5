"""Kafka Connect of KIP-415: workers, and the leader among them that shares out connectors and tasks."""
