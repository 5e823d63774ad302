"""The paper's figures, and ours, one file each: values and rows in, a `matplotlib.figure.Figure` out.

Each figure has settings of its own: whatever style or backend the caller uses stays as it is. Colours are Okabe and
Ito's, which colour-blind people can tell apart; what a colour says, a marker's shape, dashes or a hatch say as
well, for print in black and white.
"""
