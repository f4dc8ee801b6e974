"""The parts that the schema of the settings is made of."""
