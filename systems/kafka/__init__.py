"""Apache Kafka as a system under test, and as a service of a compose file."""
