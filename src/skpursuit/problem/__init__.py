"""What is optimised: losses, scores, constraint sets, the problem and the state of a run.

A loss sees predictions and targets, never X. `problem.Problem` joins a design, targets, a loss and weights;
`state.State` is the value that travels from step to step.
"""
