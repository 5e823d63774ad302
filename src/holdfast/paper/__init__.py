"""All that only reproduces the paper: experiments declared as values, their runner and results, tables and figures."""
