"""Live tables for business data: Kafka topics, joined as events arrive, on every viewer's screen."""

__version__ = "0.1.0"
