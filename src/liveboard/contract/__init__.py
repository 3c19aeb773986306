"""What the pipeline and the serving side agree on; Kafka carries everything else between them."""
