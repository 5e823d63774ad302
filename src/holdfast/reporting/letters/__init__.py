"""The letter that an applicant gets: what would have led to a different result, and how sure that is."""
