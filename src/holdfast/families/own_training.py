def train_by(*a, **k):
    raise NotImplementedError


def gather_models(models, encoding, deployed):
    from holdfast.families.family import Family
    from holdfast.models.adapting import as_model

    return Family.from_models([as_model(m, encoding) for m in models])
