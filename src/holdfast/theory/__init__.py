"""What can be computed or proven about a model: lines, influence, Lipschitz constants, regions, certificates."""
