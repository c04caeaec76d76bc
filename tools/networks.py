"""The convolutions of a network, and how often it has each; for tools/measure/epilogue.sh, figures and tables."""

# Of a ResNet-50, in its order: channels, side of the input, filters, side of a filter, stride, and how often.
RESNET_50 = [(3, 224, 64, 7, 2, 1), (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 3), (64, 56, 256, 1, 1, 4),
             (256, 56, 64, 1, 1, 2), (256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1), (128, 28, 512, 1, 1, 4),
             (256, 56, 512, 1, 2, 1), (512, 28, 128, 1, 1, 3), (128, 28, 128, 3, 1, 3), (512, 28, 256, 1, 1, 1),
             (256, 28, 256, 3, 2, 1), (256, 14, 1024, 1, 1, 6), (512, 28, 1024, 1, 2, 1), (1024, 14, 256, 1, 1, 5),
             (256, 14, 256, 3, 1, 5), (1024, 14, 512, 1, 1, 1), (512, 14, 512, 3, 2, 1), (512, 7, 2048, 1, 1, 3),
             (1024, 14, 2048, 1, 2, 1), (2048, 7, 512, 1, 1, 2), (512, 7, 512, 3, 1, 2)]
KEYS = ("c", "h", "k", "r", "stride_h")


def in_resnet_50(problems):
    """How often a ResNet-50 has each of the convolutions, one for each of its distinct ones in any order; None where they
    are not these."""
    counts = {layer[:-1]: layer[-1] for layer in RESNET_50}
    found = [tuple(problem[key] for key in KEYS) for problem in problems]
    return [counts[layer] for layer in found] if sorted(found) == sorted(counts) else None
