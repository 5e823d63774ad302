"""The arithmetic of other libraries, copied for the paper's study alone."""
