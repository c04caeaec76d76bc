#!/usr/bin/env python3
"""Counts the 3x3 convolutions of common networks, and which of them meet the rules of Tong et al. for WMMA.

`census.py` rewrites the tables of docs/census.md; `census.py --check` writes nothing, and exits with 1 if a table is
not what the lists below say. A table stands between two markers: <!-- census:networks --> ... <!-- /census -->
"""

import argparse
import collections
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/census.md"
MARKED = re.compile(r"^(<!-- census:(\w+) -->\n)(.*?)^(<!-- /census -->)$", re.DOTALL | re.MULTILINE)

# A 3x3 convolution: C channels of H x H pixels in, K channels out.
Layer = collections.namedtuple("Layer", "c k h stride pad", defaults=(1, 1))


def repeat(count, *layer, **options):
    return [Layer(*layer, **options)] * count


# ---- The networks, as published. Each is a list of all its 3x3 convolutions that are not depthwise. ------------------

def resnet_basic(blocks):
    """Two 3x3 convolutions a block; the first of each stage but the first halves the image. v1 and v2 alike."""
    layers = repeat(2 * blocks[0], 64, 64, 56)
    for stage, width in enumerate((128, 256, 512), start=1):
        size = 56 >> stage
        layers += repeat(1, width // 2, width, 2 * size, stride=2) + repeat(2 * blocks[stage] - 1, width, width, size)
    return layers


def resnet_bottleneck(blocks, stride_in_3x3):
    """One 3x3 convolution a block. v1 halves the image in the 1x1 convolution before it, v2 in the 3x3 one."""
    layers = repeat(blocks[0], 64, 64, 56)
    for stage, width in enumerate((128, 256, 512), start=1):
        size = 56 >> stage
        halving = 1 if stride_in_3x3 else 0
        layers += repeat(halving, width, width, 2 * size, stride=2)
        layers += repeat(blocks[stage] - halving, width, width, size)
    return layers


def densenet(growth, blocks):
    """A dense layer is a 1x1 convolution to 4 x growth channels, then a 3x3 one to `growth`."""
    return [layer for count, size in zip(blocks, (56, 28, 14, 7)) for layer in repeat(count, 4 * growth, growth, size)]


def vgg(counts):
    layers, c = [], 3
    for count, k, size in zip(counts, (64, 128, 256, 512, 512), (224, 112, 56, 28, 14)):
        layers += repeat(1, c, k, size) + repeat(count - 1, k, k, size)
        c = k
    return layers


INCEPTION_V3 = (
    [Layer(3, 32, 299, 2, 0), Layer(32, 32, 149, 1, 0), Layer(32, 64, 147), Layer(80, 192, 73, 1, 0)]  # the stem
    + 3 * [Layer(64, 96, 35), Layer(96, 96, 35)]  # the three modules at 35 x 35
    + [Layer(288, 384, 35, 2, 0), Layer(64, 96, 35), Layer(96, 96, 35, 2, 0)]  # down to 17 x 17
    + [Layer(192, 320, 17, 2, 0), Layer(192, 192, 17, 2, 0)]  # down to 8 x 8
    + repeat(2, 448, 384, 8))  # the two modules at 8 x 8

ALEXNET = [Layer(192, 384, 13), Layer(384, 256, 13), Layer(256, 256, 13)]

SQUEEZENET_10 = (repeat(2, 16, 64, 54) + repeat(1, 32, 128, 54) + repeat(1, 32, 128, 27) + repeat(2, 48, 192, 27)
                 + repeat(1, 64, 256, 27) + repeat(1, 64, 256, 13))
SQUEEZENET_11 = ([Layer(3, 64, 224, 2, 0)] + repeat(2, 16, 64, 55) + repeat(2, 32, 128, 27) + repeat(2, 48, 192, 13)
                 + repeat(2, 64, 256, 13))

# Without padding: each convolution takes two rows and columns away.
UNET = [Layer(c, k, h, 1, 0) for c, k, h in (
    (1, 64, 572), (64, 64, 570), (64, 128, 284), (128, 128, 282), (128, 256, 140), (256, 256, 138), (256, 512, 68),
    (512, 512, 66), (512, 1024, 32), (1024, 1024, 30), (1024, 512, 56), (512, 512, 54), (512, 256, 104),
    (256, 256, 102), (256, 128, 200), (128, 128, 198), (128, 64, 392), (64, 64, 390))]

# Name, side of the input image, layers, and whether Tong et al. name its family.
Network = collections.namedtuple("Network", "name input layers of_source")
NETWORKS = [
    Network("ResNet-18 v1", 224, resnet_basic((2, 2, 2, 2)), True),
    Network("ResNet-34 v1", 224, resnet_basic((3, 4, 6, 3)), True),
    Network("ResNet-50 v1", 224, resnet_bottleneck((3, 4, 6, 3), False), True),
    Network("ResNet-101 v1", 224, resnet_bottleneck((3, 4, 23, 3), False), True),
    Network("ResNet-152 v1", 224, resnet_bottleneck((3, 8, 36, 3), False), True),
    Network("ResNet-18 v2", 224, resnet_basic((2, 2, 2, 2)), True),
    Network("ResNet-34 v2", 224, resnet_basic((3, 4, 6, 3)), True),
    Network("ResNet-50 v2", 224, resnet_bottleneck((3, 4, 6, 3), True), True),
    Network("ResNet-101 v2", 224, resnet_bottleneck((3, 4, 23, 3), True), True),
    Network("ResNet-152 v2", 224, resnet_bottleneck((3, 8, 36, 3), True), True),
    Network("DenseNet-121", 224, densenet(32, (6, 12, 24, 16)), True),
    Network("DenseNet-161", 224, densenet(48, (6, 12, 36, 24)), True),
    Network("DenseNet-169", 224, densenet(32, (6, 12, 32, 32)), True),
    Network("DenseNet-201", 224, densenet(32, (6, 12, 48, 32)), True),
    Network("Inception-v3", 299, INCEPTION_V3, True),
    Network("AlexNet", 224, ALEXNET, False),
    Network("VGG-11", 224, vgg((1, 1, 2, 2, 2)), False),
    Network("VGG-13", 224, vgg((2, 2, 2, 2, 2)), False),
    Network("VGG-16", 224, vgg((2, 2, 3, 3, 3)), False),
    Network("VGG-19", 224, vgg((2, 2, 4, 4, 4)), False),
    Network("SqueezeNet 1.0", 224, SQUEEZENET_10, False),
    Network("SqueezeNet 1.1", 224, SQUEEZENET_11, False),
    Network("U-Net", 572, UNET, False),
]

# ---- The rules -------------------------------------------------------------------------------------------------------


def tiles(layer, m, batch):
    """Of F(m x m, 3x3): parts of tiles count as whole ones."""
    side = layer.h + 2 * layer.pad - 2
    return batch * (-(-side // m)) ** 2


def channels_fit(layer):
    return layer.c % 16 == 0 and layer.k % 8 == 0


def fits(layer, m, batch):
    """The rules of Tong et al.: C a multiple of 16, tiles and K of 8, tiles x K of 256."""
    count = tiles(layer, m, batch)
    return channels_fit(layer) and count % 8 == 0 and count * layer.k % 256 == 0


COMBINATIONS = ((4, 1), (2, 1), (4, 32), (2, 32))  # m and batch


def combination_text(m, batch):
    return f"F({m}×{m}), N = {batch}"


# ---- The tables ------------------------------------------------------------------------------------------------------

def markdown(headings, rows, left=1):
    rule = ["---" if column < left else "---:" for column in range(len(headings))]
    lines = [headings, rule] + [[str(cell) for cell in row] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def stride_1(networks):
    """Distinct layers of stride 1 by how often they occur, the most frequent first."""
    counts = collections.Counter(layer for network in networks for layer in network.layers if layer.stride == 1)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def networks_table():
    def row(name, size, networks):
        layers = [layer for network in networks for layer in network.layers]
        distinct = stride_1(networks)
        met = [sum(fits(layer, m, batch) for layer, _ in distinct) for m, batch in COMBINATIONS]
        return [name, size, len(layers), sum(count for _, count in distinct), len(distinct),
                sum(channels_fit(layer) for layer, _ in distinct), *met]

    rows = [row(network.name, network.input, [network]) for network in NETWORKS]
    rows.append(row("**all**", "", NETWORKS))
    rows.append(row("**families of Tong et al.**", "", [network for network in NETWORKS if network.of_source]))
    return markdown(["network", "input", "3×3 layers", "of stride 1", "distinct (C, K, H)", "channels fit",
                     *(combination_text(*each) for each in COMBINATIONS)], rows)


def frequent_table():
    """The 28 most frequent layers of the families that Tong et al. name."""
    frequent = stride_1([network for network in NETWORKS if network.of_source])[:28]
    rows = [[layer.c, layer.k, layer.h, count, "yes" if channels_fit(layer) else "no",
             *("yes" if fits(layer, m, batch) else "no" for m, batch in COMBINATIONS)] for layer, count in frequent]
    return markdown(["C", "K", "H = W", "layers", "channels fit", *(combination_text(*each) for each in COMBINATIONS)],
                    rows, 0)


def summary_table():
    """How many of the distinct ones meet the rules, by what makes two layers distinct."""
    rows = []
    for name, networks in (("families of Tong et al.", [network for network in NETWORKS if network.of_source]),
                           ("all", NETWORKS)):
        distinct = [layer for layer, _ in stride_1(networks)]
        pairs = sorted({(layer.c, layer.k) for layer in distinct})
        rows.append([f"{name}: distinct (C, K)", len(pairs),
                     sum(c % 16 == 0 and k % 8 == 0 for c, k in pairs), *["–"] * len(COMBINATIONS)])
        rows.append([f"{name}: distinct (C, K, H)", len(distinct), sum(map(channels_fit, distinct)),
                     *(sum(fits(layer, m, batch) for layer in distinct) for m, batch in COMBINATIONS)])
    return markdown(["", "in all", "channels fit", *(combination_text(*each) for each in COMBINATIONS)], rows)


TABLES = {"networks": networks_table, "frequent": frequent_table, "summary": summary_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a table is out of date")
    arguments = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    if sorted(match.group(2) for match in MARKED.finditer(old)) != sorted(TABLES):
        sys.exit(f"{PAGE.name}: wants each of these tables once: {', '.join(TABLES)}")
    new = MARKED.sub(lambda match: match.group(1) + TABLES[match.group(2)]() + match.group(4), old)
    if new == old:
        return
    if arguments.check:
        sys.exit(f"{PAGE.name}: a table is out of date; run python3 tools/census.py")
    PAGE.write_text(new, encoding="utf-8")


main()
