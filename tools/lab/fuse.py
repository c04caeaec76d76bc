"""`./lab fuse`: one kernel made of two, a producer's and a consumer's, as a stage that is built, checked and timed."""
import json
import os
import re
import subprocess
import sys

from machine import BUILD, ROOT, Unusable

DESCRIPTION = ("Makes a fused kernel from a stage's input transform and product, as a stage of its own: 98 through shared "
               "memory, 99 through a piece of global memory that the cache holds. build/bin/fused runs it.")
NUMBERS = {"shmem": 98, "llc": 99}
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's packages belong to it
# The arguments of 27's kernels, and the stage's host side, which is a template as in the source.
ARGUMENTS = {"input": "tensors.half_input", "u": "u_.as<half>()", "m": "m_.as<half>()", "w": "w", "b": "Block{}"}
# What 27's launch() asks the configuration's point for, in the types of its usual one.
OF_POINT = {"p.size()": "kTileSize<Form>",
            "p.parts(w)": "std::int64_t{blocks_for(padded_tiles(w), Block::tbm)} * "
                          "blocks_for(padded_filters(w), Block::tbn)"}
USUAL = "Usual"  # a stage file's name for the types of its default configuration, whose kernel the program holds
WAYS = {
    "shmem": {"title": "27's two kernels, fused through shared memory by ./lab fuse",
              "idea": "The producer's body for a block's tiles stands in front of the consumer's, V between them in "
                      "shared memory."},
    "llc": {"title": "27's two kernels, fused through the last-level cache by ./lab fuse",
            "idea": "The producer's body for a block's tiles stands in front of the consumer's, V between them in a "
                    "piece of global memory."},
}


def add_arguments(parser):
    parser.add_argument("stage", metavar="STAGE", help="a number, name or folder, as in 27")
    parser.add_argument("--through", required=True, choices=NUMBERS,
                        help="where the tensor between the kernels goes: shmem or llc")
    parser.add_argument("--tbm", type=int, choices=(16, 32), default=16, help="tiles of a block; default: 16")
    parser.add_argument("--prune", action="store_true",
                        help="take out of the kernel what `prune --greedy` takes away, in the simulator")


def ready():
    """A Python that has libclang's bindings: this one or the system's; empty without."""
    for python in dict.fromkeys((sys.executable, SYSTEM_PYTHON)):
        try:
            done = subprocess.run([python, "-c", "import clang.cindex; clang.cindex.Index.create()"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return ""


def folder_of(stage):
    for path in sorted((ROOT / "chapters").glob("*/stage.json")):
        known = json.loads(path.read_text())
        names = (known["name"], path.parent.name, str(known["number"]), f"{known['number']:02}")
        if stage in names:
            return path.parent, known
    raise Unusable(f"fuse: unknown stage '{stage}'; ./lab list shows them")


def stage_name(through):
    return f"winograd-fused-{through}"


def file_of_stage(through, build):
    name = stage_name(through)
    return build / f"fused/{NUMBERS[through]}-{name}/{name.replace('-', '_')}.cu"


def run(options):
    folder, known = folder_of(options.stage)
    python = ready()
    if not python:
        raise Unusable("fuse: it reads C++ by libclang's Python bindings: install python3-clang (Debian's package), or "
                       "pip install libclang of the version of your clang")
    if python != sys.executable:
        return subprocess.run([python, ROOT / "tools/lab", "fuse", *sys.argv[2:]]).returncode
    text = made(folder, options.through, options.tbm)
    file = write(text, known, options.through, options.tbm, BUILD)
    print(os.path.relpath(file, ROOT))
    return 0


def prune(options):
    """Takes out of the stage's file what the simulator's race check does not need."""
    file = file_of_stage(options.through, BUILD)
    command = [BUILD / "bin/fused", "prune", str(NUMBERS[options.through]), "--greedy", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Unusable("fuse: prune failed: look at the message above")
    lines = file.read_text().splitlines(keepends=True)
    for barrier in json.loads(done.stdout)["barriers"]:
        if not barrier["needed"]:
            assert lines[barrier["line"] - 1].strip() == "__syncthreads();"
            lines[barrier["line"] - 1] = ""
    file.write_text("".join(lines))
    return 0


def write(text, known, through, tbm, build):
    """The stage's folder."""
    file = file_of_stage(through, build)
    manifest = dict(known, number=NUMBERS[through], name=stage_name(through), previous=known["number"],
                    source="tong-2024: the code reconstructor", **WAYS[through])
    manifest["title"] += f", TBM {tbm}"
    manifest.pop("includes", None)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        (file.parent / "stage.json").write_text(json.dumps(manifest, indent=2) + "\n")
    except OSError:
        raise Unusable(f"fuse: cannot write {build}: work as its owner, or clone the project to a folder of your "
                       "own") from None
    return file


def made(folder, through, tbm):
    """The stage's file."""
    from clang.cindex import CursorKind as Kind
    import fuse_kernels
    import fuse_source as source

    kernel_files = [path for path in sorted(folder.glob("*.c*")) if path.suffix in (".cu", ".cpp") and
                    not path.stem.startswith("exercise") and path.name != "test.cpp"]
    tree = source.parse(kernel_files[0])
    functions = source.functions_of(tree, folder.parent)
    method = next((function for function in functions.values() if function.name == "launch" and
                   function.cursor.kind == Kind.CXX_METHOD and function.file.startswith(f"{folder}/")), None)
    if method is None:
        raise Unusable(f"fuse: {os.path.relpath(kernel_files[0], ROOT)}:1: there is no launch() here that starts kernels")
    made_by, used_by, tensor = fuse_kernels.find_pair(method, functions)
    producer = fuse_kernels.Producer(made_by, tensor)
    consumer = fuse_kernels.Consumer(used_by, tensor, producer)
    producer.check_order(tbm)
    grid, rows, threads, arguments = launch_of(used_by, functions)
    parameters = bound(consumer, tree, arguments, tbm)
    off = [name for name, value in parameters.items() if value == "false"]
    kernel, name, names = fuse_kernels.fuse(producer, consumer, through, rows, off)
    return assembled(tree, producer, consumer, functions, constants(consumer, parameters) + kernel, tbm,
                     host_side(name, names, consumer, through, grid, threads))


def launch_of(kernel, functions):
    """The consumer's gridDim.x and .y, its threads and the template's arguments, as the launch of a kernel that the
    program holds writes them; one that is compiled while it runs is not looked at."""
    import fuse_source as source
    for function in functions.values():
        for node in function.nodes():
            parts = source.children(node)
            if node.kind.name != "CALL_EXPR" or len(parts) <= 4 or \
                    source.text_of(parts[0]).split("::")[-1] != "launch":
                continue
            started = source.bare(parts[1])
            if started.kind.name == "DECL_REF_EXPR" and started.referenced is not None and \
                    started.referenced.kind.name == "VAR_DECL":
                started = source.initial(started.referenced) or started
            if any(source.key(target) == source.key(kernel.cursor)
                   for part in (started, *source.walk(started)) for target in source.targets(part)):
                grid, threads = dimensions(parts[2]), dimensions(parts[3])
                if not 1 <= len(grid) <= 2 or len(threads) != 1:
                    source.refuse(node, "the launch must have a grid of one or two dimensions, and blocks of one")
                arguments = re.search(r"<(.*)>", source.text_of(started), re.DOTALL)
                return (*(of_usual(text) for text in (grid[0], grid[1] if len(grid) > 1 else "", threads[0])),
                        [text.strip() for text in arguments[1].split(",")] if arguments else [])
    return source.refuse(kernel.cursor, f"fuse finds no launch(...) of {kernel.name}")


def of_usual(text):
    for asked, value in OF_POINT.items():
        text = text.replace(asked, value)
    return text


def dimensions(cursor):
    """The arguments of a dim3, also of a variable's."""
    import fuse_source as source
    calls = []
    for node in (cursor, *source.walk(cursor)):
        if node.kind.name == "DECL_REF_EXPR" and node.referenced is not None and node.referenced.kind.name == "VAR_DECL" \
                and not calls:
            calls += [part for part in source.walk(node.referenced) if part.spelling == "dim3"]
        if node.kind.name == "CALL_EXPR" and node.spelling == "dim3":
            calls.append(node)
    calls = [call for call in calls if call.kind.name == "CALL_EXPR"]
    return [source.text_of(part) for part in source.children(calls[0]) if part.kind.is_expression()] if calls else []


def host_side(kernel, parameters, consumer, through, grid, threads):
    import fuse_source as source
    values = dict(KERNEL=kernel, GRID=grid, THREADS=threads, TILES=consumer.tiles, PREPARE="",
                  WORKSPACE="", RESIDENT="", SHARED_BYTES="0", THROUGH_MEMORY="0", BLOCKS="parts_of(w)",
                  STATIC_BYTES=" + ".join(static_bytes(consumer.function)) or "0")
    arguments = dict(ARGUMENTS)
    if through == "shmem":
        values["SHARED_BYTES"] = "2 * piece_elements_of(w)"
    else:
        # As in 29: one block for each multiprocessor, as long as their pieces together take at most half of L2.
        values.update(THROUGH_MEMORY="2 * input_elements<Form>(w) * filter_parts", BLOCKS="resident_blocks(w)",
                      PREPARE="    pieces_.allocate<half>(resident_blocks(w) * piece_elements_of(w));\n",
                      WORKSPACE='  Workspace pieces_{*this, "the blocks\' transformed tiles"};\n', RESIDENT="""
  static std::int64_t resident_blocks(const Winograd& w) {
    const DeviceLimits limits = device_limits();
    const std::int64_t fitting = limits.l2_bytes / 2 / (2 * piece_elements_of(w));
    std::int64_t blocks = limits.multiprocessors < fitting ? limits.multiprocessors : fitting;
    if (parts_of(w) < blocks) blocks = parts_of(w);
    return blocks < 1 ? 1 : blocks;
  }
""")
        extra = [name for name in parameters if name not in ARGUMENTS]
        arguments.update(zip(extra[-3:], ("pieces_.as<half>()", "static_cast<int>(piece_elements_of(w))",
                                          "static_cast<int>(parts_of(w))")))
    unknown = [name for name in parameters if name not in arguments]
    if unknown:
        source.refuse(consumer.function.cursor, f"the stage's host side has no argument for the parameter {unknown[0]}: "
                                                f"it knows {', '.join(ARGUMENTS)}")
    values["ARGUMENTS"] = ", ".join(arguments[name] for name in parameters)
    template = (ROOT / "tools/lab/fuse_stage.cu.in").read_text()
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], template)


def static_bytes(kernel):
    """Of the consumer's own arrays in shared memory."""
    import fuse_kernels
    import fuse_source as source
    for parts in kernel.statements:
        for node in parts[-1].get_children():
            if node.kind.name == "VAR_DECL" and source.text_of(parts[-1]).startswith("__shared__"):
                element = node.type
                while element.kind in fuse_kernels.ARRAYS:
                    element = element.element_type
                extents = source.source(kernel.file)[node.location.offset + len(node.spelling):source.end(node)].decode()
                yield f"sizeof({element.spelling}{extents})"


def assembled(tree, producer, consumer, functions, kernel, tbm, host):
    """The consumer's file with the fused kernel for the consumer, and the host side for all behind it."""
    from clang.cindex import CursorKind as Kind
    import fuse_source as source

    file = consumer.function.file
    edits, namespaces = source.Edits(file), []

    def visit(cursor):
        for child in cursor.get_children():
            if source.file_of(child) != file:
                continue
            if child.kind == Kind.NAMESPACE:
                if source.begin(child) < consumer.function.begin < source.end(child):
                    namespaces.append(child)
                visit(child)
            elif source.begin(child) > consumer.function.end:
                continue
            elif source.key(child) in functions and functions[source.key(child)].is_kernel:
                function = functions[source.key(child)]
                if function is not consumer.function:
                    edits.replace(function.begin, function.end, "")
            elif source.key(child) == source.key(consumer.tile_count):
                value = source.initial(child)
                edits.replace(source.begin(value), source.end(value), str(tbm))

    visit(tree.cursor)
    edits.replace(consumer.function.begin, source.end(namespaces[-1]) - 1, f"{kernel}\n\n{host.rstrip()}\n\n")
    last = source.source(file).index(b"\n", source.end(namespaces[0]))  # with the comment that names it
    tokens = list(tree.get_tokens(extent=tree.cursor.extent)) if tree.spelling == file else []
    first = next((token.extent.start.offset for token in tokens if token.spelling == "#"), 0)
    where, made_by, used_by = os.path.relpath(file, ROOT), producer.function, consumer.function
    head = (f"// Made by ./lab fuse: {made_by.name} of {os.path.relpath(made_by.file, ROOT)} and {used_by.name} of\n"
            f"// {where}, as one kernel. Do not edit: it is written anew.\n\n")
    opening = source.begin(namespaces[0])
    includes = re.sub(r"#if !defined\(__CUDACC_RTC__\)\n.*?#endif\n", "", edits.text(first, opening), flags=re.DOTALL)
    includes = f'{includes.rstrip()}\n#include "common/stage/workspace.hpp"\n\n'  # the host side's
    text = head + includes + edits.text(opening, last)
    return text.rstrip().replace("#pragma once\n", "") + "\n\nCONVLADDER_STAGE(convladder::Fused)\n"


def usual(tree, consumer, tbm):
    """The types of `using Usual = FixedPoint<...>;` in the consumer's file, by name, with `tbm` for its TBM; none
    without it."""
    import fuse_source as source
    level = [tree.cursor]
    while level:
        level = [node for cursor in level for node in cursor.get_children()
                 if source.file_of(node) == consumer.function.file]
        for node in level:
            if node.kind.name == "TYPE_ALIAS_DECL" and node.spelling == USUAL:
                return types_of(node, consumer, tbm)
        level = [node for node in level if node.kind.name == "NAMESPACE"]
    return {}


def types_of(alias, consumer, tbm):
    import fuse_source as source
    template = next((part.referenced for part in alias.get_children() if part.kind.name == "TEMPLATE_REF"), None)
    parts = list(template.get_children()) if template is not None else []
    names = [part.spelling for part in parts if part.kind.name.startswith("TEMPLATE_")]
    arguments = re.search(r"<(.*)>|$", source.text_of(alias), re.DOTALL)[1] or ""
    values = dict(zip(names, (text.strip() for text in arguments.split(","))))
    tiles = [name for name in values if name.lower() == consumer.tile_member]
    if len(tiles) != bool(consumer.tile_member) or len(values) != len(names):
        source.refuse(alias, f"{USUAL} must be a template's instance with all its arguments, {consumer.tiles} one of "
                             "them")
    values.update((name, str(tbm)) for name in tiles)
    return {part.spelling: re.sub(r"\w+", lambda word: values.get(word[0], word[0]),
                                  source.text_of(part).partition("=")[2].strip())
            for part in parts if part.kind.name == "TYPE_ALIAS_DECL"}


def bound(consumer, tree, arguments, tbm):
    """{a parameter of the consumer's template: what it is in the one kernel}, but for types that the file has."""
    import fuse_source as source
    types, values = usual(tree, consumer, tbm), {}
    for number, parameter in enumerate(consumer.function.template):
        if parameter.kind.name == "TEMPLATE_TYPE_PARAMETER":
            if parameter.spelling in types:
                values[parameter.spelling] = types[parameter.spelling]
            continue
        default = source.text_of(parameter).partition("=")[2].strip()
        value = str(tbm) if source.key(parameter) == source.key(consumer.tile_count) else \
            arguments[number] if number < len(arguments) else default
        if not value:
            source.refuse(parameter, f"{consumer.function.name}'s template parameter {parameter.spelling} needs a "
                                     "default: fuse makes one kernel")
        values[parameter.spelling] = value
    if consumer.tile_member and consumer.tiles.split("::")[0] not in values:
        source.refuse(consumer.function.cursor, f"{consumer.function.name} takes {consumer.tiles} from its template: "
                                                f"its file must name the template's types, as {USUAL}")
    return values


def constants(consumer, parameters):
    """A template's parameters, as types and constants of the one kernel."""
    import fuse_source as source
    lines = []
    for parameter in consumer.function.template:
        value = parameters.get(parameter.spelling)
        if parameter.kind.name == "TEMPLATE_TYPE_PARAMETER":
            lines += [f"using {parameter.spelling} = {value};\n"] * (value is not None)
        else:
            declared = source.text_of(parameter).partition("=")[0].strip()
            lines.append(f"[[maybe_unused]] constexpr {declared} = {value};\n")
    return "".join(lines) + "\n" * bool(lines)
