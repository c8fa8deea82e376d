"""onceproof: chaos testing that certifies end-to-end exactly-once for Spark on Kafka."""
