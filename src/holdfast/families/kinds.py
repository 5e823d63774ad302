"""The kinds of change in words, for people who did not choose them."""

from __future__ import annotations

JOIN = " & "  # between the kinds of two changes at once

WHAT_CHANGES = {
    "base": "Trained as the deployed model was, with its seeds and on its rows.",
    "seeds": "Trained again on the same rows with another random seed; a network also begins from other weights.",
    "leave-one-out": "Trained again without one of the rows, as when a person asks to be forgotten.",
    "leave-out": "Trained again without a random share of the rows.",
    "bootstrap": "Trained again on as many rows, drawn with replacement: another sample of the same people.",
    "shift": "Trained again on rows of which those with larger values of one column, or smaller ones, are drawn more "
    "often: the people change.",
    "window": "Trained again on another stretch of rows in the order of time.",
    "append": "Trained again with new rows beside the old ones.",
    "label-noise": "Trained again after some of the labels, drawn at random, were made wrong.",
    "weight-noise": "The same network with random noise on its weights, as when it is compressed.",
    "fine-tune": "The deployed network trained further on new rows, instead of from the start.",
    "hyperparameters": "Trained again with other settings of the training, such as its length and its learning rate.",
    "parameters": "Fitted again with other parameters of the estimator, drawn from ranges, and another random seed.",
    "architecture": "Another network, with other numbers and widths of its hidden layers, and another random seed.",
    "own": "Made by the user, who knows what was changed.",
}


def what_changes(kind: str) -> str:
    """One sentence, or one for each of the changes that `both` has joined; kinds may have names of the user's own."""
    unknown = "Called '{}' by the user, who knows what was changed."
    return " ".join(WHAT_CHANGES.get(part, unknown.format(part)) for part in kind.split(JOIN))
