"""What is wanted of a search; see `person.search_person`."""

CHEAPEST, REPAIRED, RISEN, PRUNED = range(4)
