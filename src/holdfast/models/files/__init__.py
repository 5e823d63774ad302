"""Models from files: data is read, programs are not."""
