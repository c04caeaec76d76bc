"""Two kernels made one: the producer's body for the tiles of a block, then the consumer's. docs/fuse.md has the steps and
says which kernels are accepted; what is not, is refused with its line."""
import dataclasses
import textwrap

from clang.cindex import CursorKind as Kind, TypeKind

from fuse_source import (BUILT_IN, Edits, WRAPPERS, bare, begin, binary, built_in, children, end, file_of, function_of,
                         initial, is_constant, key, only_sizes, outside_lambdas, place_of, plus, polynomial, refuse,
                         source, squeezed, targets, text_of, times, walk, written)

CHANNEL_BLOCKS = (1, 2, 3, 5)  # with which the order of the producer's threads is looked at
ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.DEPENDENTSIZEDARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY)


def const_pointee(parameter):
    return parameter.type.kind == TypeKind.POINTER and parameter.type.get_pointee().is_const_qualified()


def launched(method, functions):
    """Kernels, in the order in which a function names them, or one that it calls. Template arguments must keep their
    names on the way: so a kernel's `Form` is the file's."""
    order, met = [], set()

    def visit(function):
        for node in function.nodes():
            names = [part.spelling.split("::")[-1] for part in node.get_children() if part.kind == Kind.TYPE_REF]
            for target in targets(node):
                called = functions.get(key(target))
                if not called or key(target) in met:
                    continue
                met.add(key(target))
                wanted = [part.spelling for part in called.template if part.kind == Kind.TEMPLATE_TYPE_PARAMETER]
                if called.is_kernel and names and names != wanted:
                    refuse(node, f"{called.name} is started with {', '.join(names)} for {', '.join(wanted)}: fuse "
                                 "takes arguments of a template that are called as its parameters")
                if called.is_kernel:
                    order.append(called)
                else:
                    visit(called)

    visit(method)
    return order


def find_pair(method, functions):
    """(producer, consumer, name of the tensor between them) of the first two kernels in a row that share one."""
    kernels = launched(method, functions)
    for producer, consumer in zip(kernels, kernels[1:]):
        for name, parameter in producer.parameters.items():
            reader = consumer.parameters.get(name)
            if parameter.type.kind == TypeKind.POINTER and not const_pointee(parameter) and reader is not None and \
                    const_pointee(reader):
                return producer, consumer, name
    return refuse(method.cursor, "launch() starts no two kernels in a row of which the second reads, by a const pointer "
                                 "of the same name, what the first writes")


# ---- How a kernel uses the tensor -----------------------------------------------------------------------------------

@dataclasses.dataclass
class Use:
    """An expression of the tensor's address, or a step of one."""
    kind: str  # store, load, step, pointer
    index: dict  # polynomial, from the tensor's first element; of a step what it adds
    range: tuple  # in the file
    cursor: object
    call: object = None


def uses_of(function, name):
    """All uses of a pointer parameter and of pointers made from it."""
    bases = {key(function.parameters[name]): {}}
    found = []

    def visit(cursor, above):
        for child in cursor.get_children():
            if child.kind == Kind.DECL_REF_EXPR and child.referenced is not None and key(child.referenced) in bases:
                found.append(use(child, [cursor, *above]))
            visit(child, [cursor, *above])

    def use(reference, above):
        top, above = reference, list(above)
        while above[0].kind in WRAPPERS or (binary(above[0]) or [""])[0] == "+" and \
                above[0].kind != Kind.COMPOUND_ASSIGNMENT_OPERATOR:
            top = above.pop(0)
        pointer = ("variable", reference.spelling, key(reference.referenced))
        index = plus(bases[key(reference.referenced)], plus(polynomial(top), {(pointer,): 1}, -1))
        span, parent = (begin(top), end(top)), above[0]
        if parent.kind == Kind.VAR_DECL:
            bases[key(parent)] = index
            return Use("pointer", index, span, reference)
        operation = binary(parent)
        if parent.kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR and operation[0] == "+=" and begin(top) == begin(parent):
            return Use("step", polynomial(operation[2]), (begin(operation[2]), end(operation[2])), reference)
        if parent.kind == Kind.CALL_EXPR and text_of(parent).split("(")[0].endswith("load_matrix_sync"):
            return Use("load", index, span, reference, parent)
        if parent.kind == Kind.ARRAY_SUBSCRIPT_EXPR:
            subscript = children(parent)[1]
            index, span = plus(index, polynomial(subscript)), (begin(subscript), end(subscript))
        while above[0].kind in (Kind.CXX_REINTERPRET_CAST_EXPR, Kind.UNARY_OPERATOR, Kind.ARRAY_SUBSCRIPT_EXPR,
                                *WRAPPERS):
            top = above.pop(0)
        assigned = binary(above[0])
        if assigned and assigned[0] == "=" and begin(top) == begin(above[0]) and text_of(top).startswith("*") or \
                assigned and assigned[0] == "=" and parent.kind == Kind.ARRAY_SUBSCRIPT_EXPR and \
                begin(top) == begin(above[0]):
            return Use("store", index, span, reference)
        return refuse(reference, f"{function.name} uses {name} other than to store at a sum of it and an index, or to "
                                 "load fragments from one")

    visit(function.body, [])
    return found


def variables_of(index):
    return [atom for atoms in index for atom in atoms if atom[0] == "variable"]


def follows_block(cursor, axis):
    """Whether a value comes from blockIdx.axis."""
    if built_in(cursor) == f"blockIdx.{axis}":
        return True
    return any(built_in(node) == f"blockIdx.{axis}" or
               node.kind == Kind.DECL_REF_EXPR and node.referenced is not None and is_constant(node.referenced) and
               node.referenced != cursor and follows_block(initial(node.referenced), axis)
               for node in [cursor, *walk(cursor)])


def declared(function, atom):
    """The variable's declaration in the function; None for a parameter."""
    return next((node for node in function.nodes() if node.kind == Kind.VAR_DECL and key(node) == atom[2]), None)


# ---- The producer ---------------------------------------------------------------------------------------------------

class Producer:
    """A kernel whose threads take one element each, and store what they make of it at the tensor's tiles."""

    def __init__(self, function, tensor):
        self.function, self.tensor = function, tensor
        for node in function.nodes():
            if text_of(node).startswith("__syncthreads"):
                refuse(node, f"{function.name} has a barrier: not all threads of a block would come to it in a loop "
                             "over the block's tiles")
        for parts in function.statements:
            if text_of(parts[-1]).startswith("__shared__"):
                refuse(parts[-1], f"{function.name} has shared memory of its own: fuse places bodies that have none")
        self.find_thread_index()
        self.find_guard()
        self.uses = uses_of(function, tensor)
        for use in self.uses:
            if use.kind not in ("store", "pointer"):
                refuse(use.cursor, f"{function.name} must store at {tensor}, and nothing else")
        self.find_layout()

    def find_thread_index(self):
        """`const int i = blockIdx.x * threads + threadIdx.x;`"""
        inside = {}
        for number, parts in enumerate(self.function.statements):
            if any(built_in(node) for part in parts for node in [part, *walk(part)]):
                inside[number] = parts
        for number, parts in inside.items():
            variables = [part for part in children(parts[-1]) if part.kind == Kind.VAR_DECL]
            value = bare(initial(variables[0])) if len(variables) == 1 and initial(variables[0]) is not None else None
            total = binary(value) if value is not None else None
            product = binary(bare(total[1])) if total and total[0] == "+" else None
            if len(inside) > 1 or not product or product[0] != "*" or built_in(bare(product[1])) != "blockIdx.x" or \
                    built_in(bare(total[2])) != "threadIdx.x":
                refuse(parts[-1], f"{self.function.name} must use its thread's index in one declaration alone: i = "
                                  "blockIdx.x * threads + threadIdx.x")
            self.index, self.index_statement = variables[0], number
        if not inside:
            refuse(self.function.cursor, f"{self.function.name} does not use its thread's index")

    def find_guard(self):
        """`if (i >= total) return;`, right behind."""
        number = self.index_statement + 1
        guard = self.function.statements[number][-1] if number < len(self.function.statements) else None
        parts = children(guard) if guard is not None and guard.kind == Kind.IF_STMT else []
        condition = binary(parts[0]) if len(parts) == 2 and parts[1].kind == Kind.RETURN_STMT else None
        if not condition or condition[0] != ">=" or bare(condition[1]).referenced != self.index:
            refuse(self.index, f"behind it {self.function.name} must leave by: if ({self.index.spelling} >= total) "
                               "return;")
        self.guard, self.total = guard, condition[2]
        for node in outside_lambdas(self.function.body):
            if node.kind == Kind.RETURN_STMT and not begin(guard) <= begin(node) < end(guard):
                refuse(node, f"{self.function.name} returns here: the thread would miss the barriers that follow")

    def find_layout(self):
        """What the tensor's tiles are counted by (`tiles`), the elements of a tile's row (`row`) and its index
        (`tile`), from where it is stored: ... * tiles * row + tile * row + (less than row)."""
        for use in self.uses:
            if use.kind == "store":
                for atoms in use.index:
                    if any(atom[0] == "other" for atom in atoms):
                        refuse(use.cursor, f"the index of {self.tensor} must be a sum of products; it has "
                                           f"{next(atom[1] for atom in atoms if atom[0] == 'other')}")
        stored = [use for use in self.uses if use.kind == "store"]
        if not stored:
            refuse(self.function.cursor, f"{self.function.name} does not store at {self.tensor}")
        index = stored[0].index
        outer = [atoms for atoms in index if any(atom[0] == "size" for atom in atoms)]
        common = set(outer[0]).intersection(*outer) if outer else set()
        common = [atom for atom in common if atom[0] == "size"]
        if len(common) != 1:
            refuse(stored[0].cursor, f"fuse finds no one size that the outer dimensions of {self.tensor} have as a "
                                     "factor: the number of tiles")
        self.tiles = common[0]
        total = polynomial(self.total)
        if not only_sizes(total) or any(self.tiles not in atoms for atoms in total):
            refuse(self.guard, f"the number of threads must be a multiple of {self.tiles[1]}")
        self.row = index[min(outer, key=lambda atoms: index[atoms])]
        if any(index[atoms] % self.row or atoms.count(self.tiles) != 1 for atoms in outer):
            refuse(stored[0].cursor, f"the strides of {self.tensor} must be multiples of {self.tiles[1]} rows of "
                                     f"{self.row}")
        tile = [atoms for atoms in index if atoms not in outer and index[atoms] == self.row]
        others = [atoms for atoms in index if atoms not in outer and atoms not in tile]
        if len(tile) != 1 or len(tile[0]) != 1 or any(index[atoms] >= self.row for atoms in others):
            refuse(stored[0].cursor, f"fuse finds no tile in the index of {self.tensor}: one variable times {self.row}, "
                                     "which is the stride that the outer dimensions leave to it")
        self.tile = tile[0][0]
        for use in stored[1:]:
            if plus(use.index, index, -1) != {} and use.index.get(tile[0]) != self.row:
                refuse(use.cursor, f"{self.tensor} is stored in another order here")
        per_tile = {tuple(sorted(set(atoms) - {self.tiles})): factor for atoms, factor in total.items()}
        if any(atoms.count(self.tiles) != 1 for atoms in total):
            refuse(self.guard, f"the number of threads must be proportional to {self.tiles[1]}")
        self.per_tile = per_tile

    def check_order(self, tbm):
        """That the threads of a block's tiles are neighbours: the loop over a block's share takes no others."""
        tile = initial(declared(self.function, self.tile))
        others = {atom[1] for atoms in self.per_tile for atom in atoms}
        for count in CHANNEL_BLOCKS:
            sizes = {self.tiles[1]: 4 * tbm, **{other: count for other in others}}
            threads = function_of(self.total, None, sizes)(0)
            tile_of = function_of(tile, key(self.index), sizes)
            for i in range(threads):
                got = tile_of(i)
                if got // tbm != i // (threads // 4):
                    refuse(tile, f"thread {i} of {threads} takes tile {got}: the threads of {tbm} tiles must be "
                                 "neighbours")


# ---- The consumer ---------------------------------------------------------------------------------------------------

class Consumer:
    """A kernel that loads fragments of the tensor's tiles by an address and a leading dimension."""

    def __init__(self, function, tensor, producer):
        self.function, self.tensor = function, tensor
        self.uses = uses_of(function, tensor)
        loads = [use for use in self.uses if use.kind == "load"]
        if not loads:
            refuse(function.cursor, f"{function.name} does not load fragments of {tensor}")
        for use in self.uses:
            if use.kind == "store":
                refuse(use.cursor, f"{function.name} must load from {tensor}, and nothing else")
        for node in outside_lambdas(function.body):
            if node.kind == Kind.RETURN_STMT:
                refuse(node, f"{function.name} returns here: the thread would miss the barriers that follow")
        for node in function.nodes():
            if built_in(node) in ("blockIdx.z", "gridDim.x", "gridDim.y", "gridDim.z"):
                refuse(node, f"{function.name} uses {built_in(node)}: its blocks must be counted by blockIdx.x and "
                             "blockIdx.y alone")
        loops = [node for node in function.nodes() if node.kind in (Kind.FOR_STMT, Kind.WHILE_STMT) and
                 all(begin(node) <= begin(use.call) < end(node) for use in loads)]
        if not loops:
            refuse(loads[0].cursor, f"{function.name} must load its fragments of {tensor} in a loop over the channels")
        self.check_layout(loads, producer)

    def check_layout(self, loads, producer):
        for use in loads:
            leading = polynomial(children(use.call)[3])
            if leading != {(): producer.row}:
                refuse(use.call, f"the leading dimension of {self.tensor} must be a tile's row of {producer.row}, as "
                                 f"{producer.function.name} stores it")
        bases = set()
        for atom in (atom for use in loads for atom in variables_of(use.index)):
            variable = declared(self.function, atom)
            if variable is not None and is_constant(variable) and follows_block(initial(variable), "x"):
                bases.add(atom)
        if len(bases) != 1:
            refuse(loads[0].cursor, f"the index of {self.tensor} must have one variable that comes from blockIdx.x: "
                                    "the block's first tile")
        self.first = bases.pop()
        for use in self.uses:
            if use.kind == "step" and any(producer.tiles not in atoms for atoms in use.index):
                refuse(use.cursor, f"{self.tensor} may be stepped through by multiples of {producer.tiles[1]} rows")
            for atoms, factor in use.index.items():
                inner = producer.tiles not in atoms
                if any(atom[0] == "other" for atom in atoms) or atoms.count(producer.tiles) > 1 or \
                        factor % producer.row and (not inner or factor > producer.row) or \
                        inner and self.first in atoms and (atoms != (self.first,) or factor != producer.row) or \
                        inner and any(atom[0] == "size" and atom[1].endswith(")") for atom in atoms):
                    refuse(use.cursor, f"the index of {self.tensor} does not fit how {producer.function.name} stores "
                                       f"it: rows of {producer.row}, {producer.tiles[1]} of them together")
        value = declared(self.function, self.first)
        product = binary(bare(initial(value)))
        factors = [bare(part) for part in product[1:]] if product and product[0] == "*" else []
        counts = [part for part in factors if not follows_block(part, "x")]
        count = counts[0] if len(counts) == 1 else None
        if count is not None and count.kind == Kind.DECL_REF_EXPR and count.referenced is not None:
            self.tile_count, self.tile_member, self.tiles = count.referenced, "", count.referenced.spelling
            return
        # b.tbm, where b is a parameter of a type that the template takes: a static member in the kernel that is made.
        name, _, member = text_of(count).partition(".") if count is not None else ("", "", "")
        parameter = self.function.parameters.get(name)
        if not member or parameter is None or \
                parameter.type.spelling not in [part.spelling for part in self.function.template]:
            refuse(value, "the block's first tile must be a multiple of a named constant: the tiles of a block")
        self.tile_count, self.tile_member, self.tiles = parameter, member, f"{parameter.type.spelling}::{member}"

    def first_statement(self, wanted):
        """The number of the first statement in which a node is wanted; None without one."""
        return next((number for number, parts in enumerate(self.function.statements)
                     for part in parts if any(wanted(node) for node in [part, *walk(part)])), None)


# ---- Rebasing -------------------------------------------------------------------------------------------------------

def rebase(function, uses, tiles, tbm, moved, dropped, edits):
    """Makes the tensor's index one of TBM tiles: `tiles` becomes `tbm` in it, and `moved` names that stand in it are
    replaced. A variable that nothing but the index needs is changed where it is declared; of others each use is looked
    at, so that those which belong to another tensor stay."""
    spans = [use.range for use in uses]
    sized = {key(node): node for node in function.nodes() if node.kind == Kind.VAR_DECL and is_constant(node) and
             any(tiles in atoms for atoms in polynomial(initial(node))) and only_sizes(polynomial(initial(node)))}
    references = [node for node in function.nodes() if node.kind == Kind.DECL_REF_EXPR and node.referenced is not None]

    def within(node, ranges):
        return any(first <= begin(node) < last for first, last in ranges)

    own = dict(sized)
    while True:
        inner = spans + dropped + [(begin(initial(node)), end(initial(node))) for node in own.values()]
        kept = {name: node for name, node in own.items()
                if all(within(reference, inner) for reference in references if key(reference.referenced) == name)}
        if kept == own:
            break
        own = kept

    def rebased(cursor):
        """An expression of sizes with TBM tiles."""
        changed = Edits(function.file)
        change(cursor, changed)
        return changed.text(begin(cursor), end(cursor))

    def change(cursor, changed):
        if cursor.kind == Kind.CALL_EXPR and squeezed(text_of(cursor)) == tiles[1]:
            changed.replace(begin(cursor), end(cursor), tbm)
            return
        if cursor.kind == Kind.DECL_REF_EXPR and cursor.referenced is not None:
            name = key(cursor.referenced)
            if name in moved:
                changed.replace(begin(cursor), end(cursor), moved[name])
            elif name in sized and name not in own:
                value = initial(sized[name])
                plain = polynomial(value) == {(tiles,): 1}
                changed.replace(begin(cursor), end(cursor), tbm if plain else f"({rebased(value)})")
            return
        for child in cursor.get_children():
            change(child, changed)

    def in_spans(cursor, ranges):
        for child in cursor.get_children():
            if child.kind.is_expression() and any(first <= begin(child) and end(child) <= last
                                                  for first, last in ranges) and file_of(child):
                change(child, edits)
            else:
                in_spans(child, ranges)

    in_spans(function.body, spans + [(begin(initial(node)), end(initial(node))) for node in own.values()])


# ---- The fused kernel -----------------------------------------------------------------------------------------------

def indented(text, spaces):
    return textwrap.indent(textwrap.dedent(text.strip("\n")), " " * spaces)


def parameter_text(parameter, separator):
    """With the comment that tells its shape."""
    text = source(file_of(parameter))
    rest = text[end(parameter):text.index(b"\n", end(parameter))].decode()
    comment = rest.partition("//")[2].strip()
    return f"    {text_of(parameter)}{separator}" + (f"  // {comment}" if comment else "")


def fuse(producer, consumer, through, rows, off):
    """The fused kernel's text and its parameters' names. @param rows the consumer's gridDim.y, "" without one
    @param off names of template parameters that are false: what they guard is left out"""
    used, made = consumer.function, producer.function
    taken = used.names() | made.names()

    def fresh(name):
        while name in taken:
            name += "_"
        return name

    tensor, first = consumer.tensor, consumer.first[1]
    count = consumer.tiles
    row, part, parts, piece, pieces = map(fresh, ("row", "part", "parts", "piece_elements", "pieces"))
    for name, parameter in made.parameters.items():
        other = used.parameters.get(name)
        if name != tensor and other is not None and other.type.spelling != parameter.type.spelling:
            refuse(parameter, f"{made.name} and {used.name} both have a parameter {name}, of different types")
    locals_of_consumer = {node.spelling for node in used.nodes() if node.kind == Kind.VAR_DECL}
    own = {key(node) for node in made.nodes() if node.kind in (Kind.VAR_DECL, Kind.PARM_DECL)}
    for node in made.nodes():
        if node.kind == Kind.DECL_REF_EXPR and node.spelling in locals_of_consumer and \
                not any(key(target) in own for target in targets(node)):
            refuse(node, f"{made.name} takes {node.spelling} from outside, and {used.name} has a variable of that name")

    # The consumer: its statements, those from `inner` on once for each row of blocks, from `outer` on for each part.
    edits = Edits(used.file)
    rebase(used, consumer.uses, producer.tiles, count, {consumer.first[2]: "0"}, [], edits)
    for node in used.nodes():
        if node.kind == Kind.MEMBER_REF_EXPR and built_in(node) == "blockIdx.y":
            edits.replace(begin(node), end(node), row)
        if node.kind == Kind.MEMBER_REF_EXPR and built_in(node) == "blockIdx.x" and through == "llc":
            edits.replace(begin(node), end(node), part)
        branches = children(node) if node.kind == Kind.IF_STMT else []
        if len(branches) == 2 and text_of(branches[0]) in off:
            text = source(used.file)
            edits.replace(text.rindex(b"\n", 0, begin(node)), text.index(b"\n", end(node)), "")
    tensor_key = key(used.parameters[tensor])
    reads = consumer.first_statement(lambda node: node.kind == Kind.DECL_REF_EXPR and node.referenced is not None and
                                     key(node.referenced) == tensor_key)
    by_row = consumer.first_statement(lambda node: built_in(node) == "blockIdx.y")
    inner = reads if by_row is None else min(reads, by_row)
    outer = consumer.first_statement(lambda node: built_in(node) == "blockIdx.x")
    at_first = used.statement_of(declared(used, consumer.first))
    if at_first >= inner or outer > at_first:
        refuse(declared(used, consumer.first), f"{used.name} must know its first tile before it uses {tensor} or "
                                               "blockIdx.y")
    if (by_row is None) != (not rows):
        refuse(used.cursor, f"{used.name} must use blockIdx.y where its grid has a second dimension, and only there")
    head, middle, tail = (
        "\n".join(indented(edits.text(used.segment(a)[0], used.segment(b - 1)[1]), 0) for a, b in [span] if a < b)
        for span in ((0, outer), (outer, inner), (inner, len(used.statements))))

    # The producer: what stands before its thread's index, then the rest in a loop.
    edits = Edits(made.file)
    rebase(made, producer.uses, producer.tiles, count, {producer.tile[2]: f"({producer.tile[1]} - {first})"},
           [(begin(producer.guard), end(producer.guard)),
            (begin(initial(producer.index)), end(initial(producer.index)))], edits)
    number, i, per_tile = producer.index_statement, producer.index.spelling, fresh("per_tile")
    before = indented(edits.text(made.segment(0)[0], made.segment(number - 1)[1]), 2) + "\n" if number else ""
    loop = indented(edits.text(made.segment(number + 2)[0], made.segment(len(made.statements) - 1)[1]), 4)
    place = f"""\
// Producer: {made.name} for the block's tiles.
{{
{before}  const int {per_tile} = {written(producer.per_tile)};
  for (int {i} = {first} * {per_tile} + threadIdx.x; {i} < ({first} + {count}) * {per_tile}; {i} += blockDim.x) {{
{loop}
  }}
}}
__syncthreads();
// Consumer: {used.name}.
"""
    if rows:
        tail = f"for (int {row} = 0; {row} < {rows}; ++{row}) {{\n{indented(tail, 2)}\n  __syncthreads();\n}}"
    else:
        tail = f"{{\n{indented(tail, 2)}\n}}\n__syncthreads();"
    body = f"{middle}\n{place}{tail}"

    element = text_of(made.parameters[tensor]).removesuffix(tensor).strip()  # "half*"
    names, lines = [], []
    for function in (made, used):
        for name, parameter in function.parameters.items():
            if name in names or name == tensor and function is made:
                continue
            if name != tensor:
                names.append(name)
                lines.append(parameter_text(parameter, ","))
            elif through == "llc":
                names.append(pieces)
                lines.append(f"    {element} {pieces},  // [block]{{of {count} tiles, otherwise as {tensor}}}")
    if through == "llc":
        names += [piece, parts]
        lines += [f"    int {piece}, int {parts},"]
        begins = f"{element} const {tensor} = {pieces} + static_cast<int>(blockIdx.x) * {piece};"
        body = (f"for (int {part} = blockIdx.x; {part} < {parts}; {part} += gridDim.x) {{\n{indented(body, 2)}\n"
                "  __syncthreads();\n}")
    else:
        if "dynamic_shared" in used.names():
            refuse(used.cursor, f"{used.name} uses dynamic shared memory itself: fuse it --through llc")
        begins = f"{element} const {tensor} = dynamic_shared<{element.rstrip('*')}>();"
    last, _, comment = lines[-1].partition("  //")
    lines[-1] = last.rstrip(",") + ") {" + (f"  //{comment}" if comment else "")
    name = f"{made.name}_and_{used.name}"
    head_text = source(used.file)[used.begin:used.cursor.location.offset].decode()
    if "__global__" in head_text:
        head_text = head_text[head_text.index("__global__"):]  # without template <...>
    head = indented(f"{begins}\n{head}", 2)
    return f"{head_text}{name}(\n" + "\n".join(lines) + f"\n{head}\n{indented(body, 2)}\n}}", name, names
