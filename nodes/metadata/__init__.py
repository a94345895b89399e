"""The cluster's metadata as Kafka's controllers keep it: records, transactions, image. Pure."""
