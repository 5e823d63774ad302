"""Tables: what their columns mean, what a person can change, and the numbers they become."""
