"""The library's values as pictures, one file each: a value and `matplotlib.axes.Axes` in, marks on the axes.

Nothing here sets a style: text and axes keep the colours of the axes that are drawn on, so that a figure fits a dark
page as well as a light one. Colours are Okabe and Ito's; what a colour says, a shape or dashes say as well.
"""
