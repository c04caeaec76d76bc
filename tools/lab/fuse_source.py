"""C++ as libclang reads it, for `./lab fuse`: exact ranges of the syntax tree, names that know what they refer to, and
the arithmetic of indices."""
import os
import pathlib

from clang import cindex
from clang.cindex import CursorKind as Kind

from machine import ROOT, Unusable

FUNCTIONS = (Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE)
WRAPPERS = (Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR, Kind.CXX_STATIC_CAST_EXPR, Kind.CXX_FUNCTIONAL_CAST_EXPR)
BUILT_IN = {f"{name}.{axis}" for name in ("blockIdx", "threadIdx", "blockDim", "gridDim") for axis in "xyz"}
OPERATORS = ("+", "-", "*", "/", "%", "=")
_bytes = {}


def source(path):
    if path not in _bytes:
        _bytes[path] = pathlib.Path(path).read_bytes()
    return _bytes[path]


def parse(path):
    """The tree of a kernel file, read as the simulator's build compiles it."""
    arguments = ["-x", "c++", "-std=c++17", f"-I{ROOT}", "-DCONVLADDER_STAGE_FACTORY=make_stage"]
    tree = cindex.Index.create().parse(str(path), args=arguments)
    for problem in tree.diagnostics:
        if problem.severity >= cindex.Diagnostic.Error:
            raise Unusable(f"fuse: {place_of(problem.location)}: clang cannot read it: {problem.spelling}")
    return tree


def place_of(location):
    name = location.file.name if location.file else "?"
    return f"{os.path.relpath(name, ROOT) if name.startswith(f'{ROOT}/') else name}:{location.line}"


def refuse(cursor, sentence):
    raise Unusable(f"fuse: {place_of(cursor.location)}: {sentence}")


def begin(cursor):
    return cursor.extent.start.offset


def end(cursor):
    return cursor.extent.end.offset


def file_of(cursor):
    return cursor.extent.start.file.name if cursor.extent.start.file else ""


def text_of(cursor):
    """As written: a macro by its name."""
    return source(file_of(cursor))[begin(cursor):end(cursor)].decode() if file_of(cursor) else ""


def walk(cursor):
    for child in cursor.get_children():
        yield child
        yield from walk(child)


def outside_lambdas(cursor):
    """As walk(), without the lambdas, whose statements are their own."""
    for child in cursor.get_children():
        if child.kind != Kind.LAMBDA_EXPR:
            yield child
            yield from outside_lambdas(child)


def children(cursor):
    """Those that stand in the source: no default arguments."""
    return [child for child in cursor.get_children() if file_of(child)]


def key(cursor):
    """Of a declaration; equal for a template and its instances."""
    return (cursor.location.file.name if cursor.location.file else "", cursor.location.offset)


def targets(cursor):
    """What a name may refer to: several, where a template's arguments decide."""
    if cursor.kind == Kind.OVERLOADED_DECL_REF:
        library = cindex.conf.lib
        return [library.clang_getOverloadedDecl(cursor, i) for i in range(library.clang_getNumOverloadedDecls(cursor))]
    if cursor.kind == Kind.DECL_REF_EXPR and cursor.referenced is not None:
        return [cursor.referenced]
    return []


def built_in(cursor):
    """"blockIdx.x" and the like; empty for any other expression."""
    text = text_of(cursor) if cursor.kind in (Kind.MEMBER_REF_EXPR, Kind.UNEXPOSED_EXPR) else ""
    return text if text in BUILT_IN else ""


def bare(cursor):
    """Without parentheses and conversions."""
    while cursor.kind in WRAPPERS and not built_in(cursor):
        inner = [child for child in children(cursor) if child.kind.is_expression()]
        if len(inner) != 1:
            break
        cursor = inner[0]
    return cursor


def binary(cursor):
    """(operator, left, right), also where the types depend on a template's arguments; None for anything else."""
    parts = children(cursor)
    if cursor.kind == Kind.CALL_EXPR and len(parts) == 3 and text_of(parts[1]) in OPERATORS:
        return text_of(parts[1]), parts[0], parts[2]
    if cursor.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(parts) == 2:
        return source(file_of(cursor))[end(parts[0]):begin(parts[1])].decode().strip(), *parts
    return None


def initial(variable):
    """Its initializer; None without one."""
    parts = [child for child in children(variable) if child.kind.is_expression()]
    return parts[-1] if parts and text_of(variable).count("=") else None


def is_constant(variable):
    return variable.kind == Kind.VAR_DECL and variable.type.is_const_qualified() and initial(variable) is not None


# ---- Indices as polynomials -----------------------------------------------------------------------------------------
# {sorted tuple of atoms: coefficient}. An atom is ("size", text), which all threads have alike, as padded_tiles(w) and
# kSize, or ("variable", name, key), or ("other", text).

def plus(a, b, sign=1):
    total = dict(a)
    for atoms, factor in b.items():
        total[atoms] = total.get(atoms, 0) + sign * factor
    return {atoms: factor for atoms, factor in total.items() if factor}


def times(a, b):
    total = {}
    for some, factor in a.items():
        for others, other in b.items():
            total = plus(total, {tuple(sorted(some + others)): factor * other})
    return total


def squeezed(text):
    return "".join(text.split())


def polynomial(cursor):
    cursor = bare(cursor)
    if cursor.kind == Kind.INTEGER_LITERAL:
        value = int(text_of(cursor), 0)
        return {(): value} if value else {}
    parts = binary(cursor)
    if parts and parts[0] in ("+", "-"):
        return plus(polynomial(parts[1]), polynomial(parts[2]), 1 if parts[0] == "+" else -1)
    if parts and parts[0] == "*":
        return times(polynomial(parts[1]), polynomial(parts[2]))
    if parts and parts[0] == "/":  # exact, where the divisor divides every coefficient
        over, under = polynomial(parts[1]), polynomial(parts[2])
        divisor = under.get((), 0) if len(under) == 1 else 0
        if divisor and all(factor % divisor == 0 for factor in over.values()) and only_sizes(over):
            return {atoms: factor // divisor for atoms, factor in over.items()}
    if cursor.kind == Kind.CALL_EXPR and all(arguments_are_parameters(child) for child in children(cursor)[1:]):
        return {(("size", squeezed(text_of(cursor))),): 1}
    if cursor.kind == Kind.DECL_REF_EXPR:
        target = cursor.referenced
        if target is not None and target.kind == Kind.VAR_DECL:
            if is_constant(target):
                value = polynomial(initial(target))
                if only_sizes(value):
                    return value
            return {(("variable", target.spelling, key(target)),): 1}
        if target is None or target.kind not in (Kind.PARM_DECL,):
            return {(("size", squeezed(text_of(cursor))),): 1}  # a template's parameter, or a constant that depends on one
        return {(("variable", target.spelling, key(target)),): 1}
    return {(("other", squeezed(text_of(cursor))),): 1}


def arguments_are_parameters(cursor):
    cursor = bare(cursor)
    return cursor.kind == Kind.DECL_REF_EXPR and cursor.referenced is not None and \
        cursor.referenced.kind == Kind.PARM_DECL


def only_sizes(value):
    return all(atom[0] == "size" for atoms in value for atom in atoms)


def written(value):
    """A polynomial of sizes as C++."""
    return " + ".join(" * ".join([str(factor)] * (factor != 1 or not atoms) + [atom[1] for atom in atoms])
                      for atoms, factor in sorted(value.items()))


def function_of(cursor, variable, sizes):
    """An index as a Python function of one variable. @param variable its key @param sizes {text of a call or constant:
    value}"""
    cursor = bare(cursor)
    if squeezed(text_of(cursor)) in sizes:
        value = sizes[squeezed(text_of(cursor))]
        return lambda i: value
    if cursor.kind == Kind.INTEGER_LITERAL:
        number = int(text_of(cursor), 0)
        return lambda i: number
    parts = binary(cursor)
    if parts and parts[0] in ("+", "-", "*", "/", "%"):
        left, right = function_of(parts[1], variable, sizes), function_of(parts[2], variable, sizes)
        return {"+": lambda i: left(i) + right(i), "-": lambda i: left(i) - right(i),
                "*": lambda i: left(i) * right(i), "/": lambda i: left(i) // right(i),
                "%": lambda i: left(i) % right(i)}[parts[0]]
    if cursor.kind == Kind.DECL_REF_EXPR and cursor.referenced is not None:
        if key(cursor.referenced) == variable:
            return lambda i: i
        if is_constant(cursor.referenced):
            return function_of(initial(cursor.referenced), variable, sizes)
    return refuse(cursor, f"fuse cannot follow how a tile's index comes from '{text_of(cursor)}': it knows +, -, *, / "
                          "and % of constants, sizes and the thread's index")


# ---- Functions ------------------------------------------------------------------------------------------------------

class Function:
    """A function of the chapters, with its body."""

    def __init__(self, cursor):
        self.cursor, self.name, self.file = cursor, cursor.spelling, file_of(cursor)
        parts = list(cursor.get_children())
        self.body = next(part for part in parts if part.kind == Kind.COMPOUND_STMT)
        self.parameters = {part.spelling: part for part in parts if part.kind == Kind.PARM_DECL}
        self.template = [part for part in parts if part.kind in (Kind.TEMPLATE_TYPE_PARAMETER,
                                                                 Kind.TEMPLATE_NON_TYPE_PARAMETER)]
        before = source(self.file)[:begin(cursor)].rstrip()
        marker = b"__global__"
        self.begin = len(before) - len(marker) if before.endswith(marker) else begin(cursor)
        self.end = end(cursor)
        self.is_kernel = marker in source(self.file)[self.begin:cursor.location.offset]
        self.statements = []  # one where a macro makes several
        for part in self.body.get_children():
            if self.statements and begin(self.statements[-1][-1]) == begin(part):
                self.statements[-1].append(part)
            else:
                self.statements.append([part])

    def nodes(self):
        return walk(self.body)

    def statement_of(self, cursor):
        """The number of that in which it stands."""
        return max(i for i, parts in enumerate(self.statements) if begin(parts[0]) <= begin(cursor))

    def statement_end(self, number):
        """Behind its semicolon, and a comment on its line."""
        text, offset = source(self.file), end(self.statements[number][-1])
        if text[offset:].lstrip().startswith(b";"):
            offset = text.index(b";", offset) + 1
        line_end = text.index(b"\n", offset)
        return line_end if text[offset:line_end].lstrip().startswith(b"//") else offset

    def segment(self, number):
        """Its range with what stands before it: comments, and macros as UNROLL."""
        return (self.statement_end(number - 1) if number else begin(self.body) + 1), self.statement_end(number)

    def names(self):
        return {token.spelling for token in self.cursor.get_tokens()}


def functions_of(tree, folder):
    """Those whose bodies stand in a folder, by their keys."""
    found = {}

    def visit(cursor):
        for child in cursor.get_children():
            if child.kind in (Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL):
                visit(child)
            elif child.kind in (*FUNCTIONS, Kind.CXX_METHOD) and child.is_definition() and \
                    file_of(child).startswith(f"{folder}/") and begin(child) < end(child) and \
                    any(part.kind == Kind.COMPOUND_STMT for part in child.get_children()):
                found[key(child)] = Function(child)

    visit(tree.cursor)
    return found


class Edits:
    """Replacements in one file."""

    def __init__(self, file):
        self.file, self.changes = file, []

    def replace(self, first, last, text):
        self.changes.append((first, last, text))

    def text(self, first, last):
        """A range, with the replacements that lie in it."""
        result, here = [], first
        for start, stop, text in sorted(self.changes):
            if first <= start and stop <= last:
                assert here <= start, "two replacements of one place"
                result += [source(self.file)[here:start].decode(), text]
                here = stop
        return "".join(result) + source(self.file)[here:last].decode()
