"""What can be configured, and how it is read and checked."""

from liveboard.config.board import AlertSettings, default_board
from liveboard.config.settings import (
    ControlSettings,
    KafkaSettings,
    KeySettings,
    LimitSettings,
    PipelineSettings,
    RegistrySettings,
    SaslSettings,
    ServerSettings,
    Settings,
    SparkSettings,
    SslSettings,
    StorageSettings,
    documented_keys,
    load,
)
from liveboard.config.values import ConfigError, Duration, Secret

__all__ = [
    "AlertSettings",
    "ConfigError",
    "ControlSettings",
    "Duration",
    "KafkaSettings",
    "KeySettings",
    "LimitSettings",
    "PipelineSettings",
    "RegistrySettings",
    "SaslSettings",
    "Secret",
    "ServerSettings",
    "Settings",
    "SparkSettings",
    "SslSettings",
    "StorageSettings",
    "default_board",
    "documented_keys",
    "load",
]
