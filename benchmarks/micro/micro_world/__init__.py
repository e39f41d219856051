"""A seeded synthetic search world: pictures to look at, records to find, questions that need both."""

GENERATOR_VERSION = "1.0.0"
