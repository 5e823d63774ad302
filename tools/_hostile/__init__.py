"""Files that are made to harm whoever reads them, one module for each format. `tools/write_hostile.py` writes them."""
