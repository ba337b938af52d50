"""What others measured against what the model predicts: rows, how they were timed, errors by group, and fits."""
