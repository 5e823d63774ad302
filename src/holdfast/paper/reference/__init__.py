"""What others do, written anew for studies and comparisons alone: the arithmetic of libraries, other methods."""
