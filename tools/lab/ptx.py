"""Turns the PTX of one asm statement into C++ calls of common/cuda/ptx.hpp. docs/sim.md lists what is taken.

Whatever is not in the table below is refused by name: nothing else is ever run in its place.
"""
import itertools
import re

TYPES = {"pred": "bool", "b8": "std::uint8_t", "u8": "std::uint8_t", "s8": "std::int8_t", "b16": "std::uint16_t",
         "u16": "std::uint16_t", "s16": "std::int16_t", "f16": "std::uint16_t", "bf16": "std::uint16_t",
         "b32": "std::uint32_t", "u32": "std::uint32_t", "s32": "std::int32_t", "f32": "float", "f16x2": "std::uint32_t",
         "bf16x2": "std::uint32_t", "b64": "std::uint64_t", "u64": "std::uint64_t", "s64": "std::int64_t",
         "f64": "double"}
ATOMIC_TYPES = {"b32": "unsigned", "u32": "unsigned", "s32": "int", "b64": "unsigned long long",
                "u64": "unsigned long long", "s64": "unsigned long long", "f32": "float", "f64": "double"}
U16, U32, S32, U64 = TYPES["u16"], TYPES["u32"], TYPES["s32"], TYPES["u64"]
SPACES = ("shared", "shared::cta", "shared::cluster", "global", "local", "const", "param", "param::entry")
SCOPES = ("cta", "cluster", "gpu", "sys")
CONSTRAINTS = "hrlfdni"
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
               "hs": ">="}
SPECIAL = {"tid": "::simt::thread_index().{}", "ntid": "::simt::block_size().{}", "ctaid": "::simt::block_index().{}", "nctaid": "::simt::grid_size().{}",
           "laneid": "static_cast<unsigned>(::simt::lane_index())", "warpid": "::simt_ptx::warp_id()",
           "nwarpid": "64u", "smid": "::simt_ptx::multiprocessor()", "nsmid": "132u", "gridid": "0ull",
           "clock": "static_cast<unsigned>(::simt_ptx::clock())", "clock64": "::simt_ptx::clock()",
           "clock_hi": "static_cast<unsigned>(::simt_ptx::clock() >> 32)", "globaltimer": "::simt_ptx::clock()",
           "globaltimer_lo": "static_cast<unsigned>(::simt_ptx::clock())",
           "globaltimer_hi": "static_cast<unsigned>(::simt_ptx::clock() >> 32)",
           "lanemask_eq": "::simt_ptx::lane_mask(0)", "lanemask_lt": "::simt_ptx::lane_mask(1)",
           "lanemask_le": "::simt_ptx::lane_mask(2)", "lanemask_gt": "::simt_ptx::lane_mask(3)",
           "lanemask_ge": "::simt_ptx::lane_mask(4)",
           "clusterid": "::simt::cluster_index().{}", "nclusterid": "::simt::grid_of_clusters().{}",
           "cluster_ctaid": "::simt::block_in_cluster().{}", "cluster_nctaid": "::simt::cluster_size().{}",
           "cluster_ctarank": "::simt::rank_in_cluster()", "cluster_nctarank": "::simt::blocks_in_cluster()",
           "is_explicit_cluster": "(::simt::blocks_in_cluster() > 1)"}


class Unknown(Exception):
    """What cannot be taken, in words."""


def c_string(literal):
    """What a string literal of C++ says."""
    if literal.startswith('R"'):
        opening = literal.index("(")
        return literal[opening + 1:literal.rindex(")")]
    if not literal.startswith('"'):
        raise Unknown("its text must be plain string literals")
    text, i, body = "", 0, literal[1:-1]
    while i < len(body):
        if body[i] == "\\":
            i += 1
            text += {"n": "\n", "t": "\t", "r": "\r", "v": " ", "f": " "}.get(body[i], body[i])
        else:
            text += body[i]
        i += 1
    return text


# ---- Parsing ---------------------------------------------------------------------------------------------------------


def without_comments(text):
    result, i = "", 0
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
            i = len(text) if i < 0 else i
        elif text.startswith("/*", i):
            i = text.index("*/", i) + 2
            result += " "
        else:
            result += text[i]
            i += 1
    return result


def split_at(text, separator):
    """Parts of the text between separators that stand in no bracket."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == separator and depth == 0:
            parts.append(text[last:i].strip())
            last = i + 1
    return [*parts, text[last:].strip()]


def is_word(c):
    return c.isalnum() or c in "_$%"


def word_at(text, i):
    end = i
    while end < len(text) and is_word(text[end]):
        end += 1
    return text[i:end]


def statements(text):
    """('{',), ('}',), ('label', name), ('reg', words) and ('do', predicate, opcode, operands), in order."""
    text, i = without_comments(text), 0
    while i < len(text):
        if text[i].isspace() or text[i] == ";":
            i += 1
            continue
        if text[i] in "{}":
            yield (text[i],)
            i += 1
            continue
        word = word_at(text, i)
        after = i + len(word)
        if word and text[after:].lstrip()[:1] == ":" and text[after:].lstrip()[:2] != "::":
            yield "label", word
            i = text.index(":", after) + 1
            continue
        end, depth = i, 0
        while end < len(text) and (text[end] != ";" or depth):
            depth += (text[end] in "[{(") - (text[end] in "]})")
            if depth < 0:
                break
            end += 1
        statement, i = text[i:end].strip(), end + 1 if text[end:end + 1] == ";" else end
        if statement.startswith(".reg"):
            yield "reg", statement[4:].strip()
            continue
        predicate = None
        if statement.startswith("@"):
            predicate, statement = (statement[1:].split(None, 1) + [""])[:2]
        opcode, operands = (statement.split(None, 1) + [""])[:2]
        yield "do", predicate, opcode, split_at(operands, ",") if operands else []


# ---- Operands --------------------------------------------------------------------------------------------------------


class Block:
    """One asm statement on its way to C++."""

    def __init__(self, number, operands):
        self.number, self.operands = number, operands  # (constraint, variable, expression) each
        self.scopes, self.labels = [{}], {}
        self.lines = []
        self.counter = itertools.count()

    def name(self, word):
        clean = "".join(c if c.isalnum() or c == "_" else "_" for c in word)
        return f"ptx_{self.number}_{next(self.counter)}_{clean}"

    def declare(self, words):
        kind, names = words.split(None, 1)
        if kind not in ["." + each for each in TYPES]:
            raise Unknown(f"registers of the kind {kind} are not simulated")
        for each in split_at(names, ","):
            if "<" in each:
                stem, count = each[:-1].split("<")
                every = [f"{stem}{i}" for i in range(int(count))]
            else:
                every = [each]
            for each_name in every:
                variable = self.scopes[-1][each_name] = self.name(each_name)
                self.lines.append(f"{TYPES[kind[1:]]} {variable}{{}};")

    def label(self, word):
        if word not in self.labels:
            self.labels[word] = self.name(word)
        return self.labels[word]

    def variable(self, word):
        """What may be written to."""
        if word.startswith("%") and word[1:].isdigit():
            index = int(word[1:])
            if index >= len(self.operands):
                raise Unknown(f"the operand {word} is not there")
            return self.operands[index][1]
        for scope in reversed(self.scopes):
            if word in scope:
                return scope[word]
        raise Unknown(f"'{word}' is not declared in this asm statement")

    def value(self, word):
        """A register, a special register or a number."""
        if word[:1] == "%" and not word[1:].isdigit() and word not in self.known():
            name, _, part = word.lstrip("%").partition(".")
            if name not in SPECIAL:
                raise Unknown(f"%{name} is not simulated")
            return SPECIAL[name].format(part)
        if word.startswith(("0f", "0F")) and len(word) == 10:
            return f"__builtin_bit_cast(float, 0x{word[2:]}u)"
        if word.startswith(("0d", "0D")) and len(word) == 18:
            return f"__builtin_bit_cast(double, 0x{word[2:]}ull)"
        if word[:1].isdigit() or word[:1] in "-+" and word[1:2].isdigit():
            return word
        return self.variable(word)

    def known(self):
        return {name for scope in self.scopes for name in scope}

    def constant(self, word):
        """The expression of an immediate operand."""
        return self.operands[int(word[1:])][2] if word.startswith("%") else word

    def read(self, word, kind):
        if word.startswith("!"):
            return f"!{self.read(word[1:], 'bool')}"
        if word.startswith("{"):
            raise Unknown(f"{word} is not understood here")
        return f"::simt_ptx::as<{kind}>({self.value(word)})"

    def write(self, word, value):
        if word == "_":
            return f"static_cast<void>({value});"
        return f"::simt_ptx::put({self.variable(word)}, {value});"

    def elements(self, word):
        return [each for each in split_at(word[1:-1], ",")] if word.startswith("{") else [word]

    def address(self, word, space, kind="void"):
        """A pointer. `space` is a state space, or None for generic addresses."""
        if not word.startswith("["):
            raise Unknown(f"{word} stands where an address in [] must")
        text, plus, offset = word[1:-1].partition("+")
        base = self.read(text.strip(), U64)
        if plus:
            base += f" + {self.read(offset.strip(), U64)}"
        function = "shared" if (space or "").startswith("shared") else "generic"
        return f"::simt_ptx::{function}<{kind}>({base})"

    def tensor(self, word):
        """(map, [coordinates]) of [map, {c0, c1}]"""
        base, coordinates = split_at(word[1:-1], ",")
        return f"::simt_ptx::tensor_map({self.read(base, U64)})", [self.read(c, S32) for c in self.elements(coordinates)]


# ---- The table -------------------------------------------------------------------------------------------------------


class Instruction:
    """What a handler is given: the opcode's parts behind the first, and the operands."""

    def __init__(self, block, opcode, operands):
        self.block, self.opcode, self.operands = block, opcode, operands
        self.parts = opcode.split(".")[1:]

    def refuse(self, why=""):
        raise Unknown(f"{self.opcode} is not simulated" + (f": {why}" if why else ""))

    def take(self, *allowed, default=None):
        """The first part that is one of these, and is then gone."""
        for part in self.parts:
            if part in allowed:
                self.parts.remove(part)
                return part
        return default

    def drop(self, *allowed):
        self.parts = [part for part in self.parts if part not in allowed]

    def end(self, count=None, least=None):
        """Nothing may be left over."""
        if self.parts:
            self.refuse(f"it has '.{self.parts[0]}'")
        if count is not None and len(self.operands) not in (count if isinstance(count, tuple) else (count,)):
            self.refuse(f"it has {len(self.operands)} operands")

    def kind(self, *allowed):
        """The type at the end."""
        last = self.parts.pop() if self.parts else ""
        if last not in (allowed or TYPES):
            self.refuse()
        return last

    def read(self, i, kind):
        return self.block.read(self.operands[i], TYPES.get(kind, kind))

    def write(self, value, i=0):
        return self.block.write(self.operands[i], value)

    def address(self, i, space, kind="void"):
        return self.block.address(self.operands[i], space, kind)


HANDLERS = {}


def handles(*names):
    def register(function):
        for name in names:
            HANDLERS[name] = function
        return function
    return register


def ordered(text, semantics, scope):
    """The access with the fences that its semantics ask for."""
    fence = "::simt::fence(::simt::Scope::" + ("block" if scope == "cta" else "device") + ");"
    before = fence if semantics in ("release", "acq_rel", "seq_cst") else ""
    after = fence if semantics in ("acquire", "acq_rel", "seq_cst") else ""
    return before + text + after


CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
         "L1::evict_last", "L1::no_allocate", "L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::cache_hint",
         "L2::64B", "L2::128B", "L2::256B", "nc")


@handles("ld", "ldu")
def load(i):
    kind, vector = i.kind(), i.take("v2", "v4")
    semantics, scope, space = i.take("weak", "volatile", "relaxed", "acquire"), i.take(*SCOPES), i.take(*SPACES)
    i.drop(*CACHE)
    i.end((2, 3))
    count = int(vector[1]) if vector else 1
    to = i.block.elements(i.operands[0])
    pointer = i.address(1, space, f"const {TYPES[kind]}")
    if len(to) != count:
        i.refuse()
    if semantics in ("relaxed", "acquire"):
        parts = (i.block.write(each, f"::simt_ptx::load_atomic({pointer} + {n})") for n, each in enumerate(to))
        return ordered("".join(parts), semantics, scope)
    if count == 1:
        return i.block.write(to[0], f"::simt_ptx::load({pointer})")
    values = f"ptx_values_{next(i.block.counter)}"
    return (f"const auto {values} = ::simt_ptx::load_vector<{count}>({pointer});"
            + "".join(i.block.write(each, f"{values}.of[{n}]") for n, each in enumerate(to)))


@handles("st")
def store(i):
    if i.take("async"):
        return store_async(i)
    kind, vector = i.kind(), i.take("v2", "v4")
    semantics, scope, space = i.take("weak", "volatile", "relaxed", "release"), i.take(*SCOPES), i.take(*SPACES)
    i.drop(*CACHE)
    i.end((2, 3))
    count = int(vector[1]) if vector else 1
    values = [i.block.read(each, TYPES[kind]) for each in i.block.elements(i.operands[1])]
    pointer = i.address(0, space, TYPES[kind])
    if len(values) != count:
        i.refuse()
    if semantics in ("relaxed", "release"):
        parts = (f"::simt_ptx::store_atomic({pointer} + {n}, {value});" for n, value in enumerate(values))
        return ordered("".join(parts), semantics, scope)
    return f"::simt_ptx::store<{count}>({pointer}, {', '.join(values)});"


def told(i):
    """Takes what says that a copy ends at an mbarrier."""
    if i.take("mbarrier::complete_tx::bytes") is None or i.take("shared::cluster", "shared::cta") is None:
        i.refuse()


def store_async(i):
    kind, vector = i.kind("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"), i.take("v2", "v4")
    told(i)
    i.drop("weak")
    i.end(3)
    values = [i.block.read(each, TYPES[kind]) for each in i.block.elements(i.operands[1])]
    if len(values) != (int(vector[1]) if vector else 1):
        i.refuse()
    array = f"ptx_values_{next(i.block.counter)}"
    return (f"const {TYPES[kind]} {array}[] = {{{', '.join(values)}}}; ::simt::store_async("
            f"{i.address(0, 'shared')}, {array}, sizeof {array}, {i.address(2, 'shared')});")


REDUCTIONS = {"add": "add", "min": "min", "max": "max", "inc": "inc", "dec": "dec", "and": "bit_and", "or": "bit_or",
              "xor": "bit_xor"}


def reduction_of(i, kinds):
    """Its type and what it does, as the simulator names them. @param kinds {what it does: types}"""
    kind, what = i.parts.pop(), i.take(*REDUCTIONS)
    i.drop("noftz")
    if kind not in kinds.get(what, ()):
        i.refuse()
    return f"::simt::ReduceType::{kind.replace('b', 'u') if kind in ('b32', 'b64') else kind}, ::simt::Reduce::{REDUCTIONS[what]}"


IN_CLUSTER = {"add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",), "dec": ("u32",),
              "and": ("b32",), "or": ("b32",), "xor": ("b32",)}
TO_GLOBAL = {"add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
             "min": ("u32", "s32", "u64", "s64", "f16", "bf16"), "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
             "inc": ("u32",), "dec": ("u32",), "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64")}


def reduce_async(i):
    kind = i.parts[-1]
    told(i)
    i.drop("relaxed", "cluster")
    reduction = reduction_of(i, IN_CLUSTER)
    i.end(3)
    array = f"ptx_values_{next(i.block.counter)}"
    return (f"const {TYPES[kind]} {array} = {i.read(1, kind)}; ::simt::reduce_async({i.address(0, 'shared')}, &{array}, "
            f"{reduction}, {i.address(2, 'shared')});")


# Of 16 bits: what the simulator adds by, and the bits of one word.
SMALL_SUMS = {"f16": ("half_sum", "b16"), "f16x2": ("halves_sum", "b32"), "bf16": ("bf16_sum", "b16"),
              "bf16x2": ("bf16s_sum", "b32")}


def sums(i, kind, count, reduction):
    """Additions of halves and bf16, or of several numbers that lie side by side: each is atomic by itself."""
    semantics, scope, space = i.take("relaxed", "acquire", "release", "acq_rel"), i.take(*SCOPES), i.take(*SPACES)
    i.drop("L2::cache_hint", "noftz")
    first = 0 if reduction else 1
    if not i.take("add") or kind not in ("f32", *SMALL_SUMS):
        i.refuse()
    i.end((first + 2, first + 3))
    words = i.block.elements(i.operands[first + 1])
    if len(words) != count:
        i.refuse()
    add, of = SMALL_SUMS.get(kind, (None, "f32"))
    pointer, text = i.address(first, space, TYPES[of]), ""
    for n, word in enumerate(words):
        value = i.block.read(word, TYPES[of])
        call = (f"static_cast<{TYPES[of]}>(::simt::atomic_update({pointer} + {n}, {2 if of == 'b16' else 4}, {value}, ::simt::{add}))"
                if add else f"atomicAdd({pointer} + {n}, {value})")
        text += f"{call};" if reduction else i.write(call)
    return ordered(text, semantics or "relaxed", scope)


@handles("atom", "red")
def atomic(i):
    reduction = i.opcode.startswith("red")
    if i.take("async"):
        return reduce_async(i)
    vector = i.take("v2", "v4") if reduction else None
    kind = i.kind(*ATOMIC_TYPES, *SMALL_SUMS)
    if kind in SMALL_SUMS or vector:
        return sums(i, kind, int(vector[1]) if vector else 1, reduction)
    semantics, scope, space = i.take("relaxed", "acquire", "release", "acq_rel"), i.take(*SCOPES), i.take(*SPACES)
    i.drop("L2::cache_hint")
    what = i.take("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
    first = 0 if reduction else 1
    count = 2 if what == "cas" else 1
    i.end((first + 1 + count, first + 2 + count))
    allowed = {"f32": ("add", "exch"), "f64": ("add",), "s64": ("add", "exch", "cas", "and", "or", "xor")}
    if what is None or what not in allowed.get(kind, (what,)) or (what in ("inc", "dec") and kind != "u32"):
        i.refuse()
    name = {"add": "Add", "min": "Min", "max": "Max", "exch": "Exch", "cas": "CAS", "and": "And", "or": "Or",
            "xor": "Xor", "inc": "Inc", "dec": "Dec"}[what]
    of = ATOMIC_TYPES[kind]
    values = ", ".join(i.read(first + 1 + n, of) for n in range(count))
    call = f"atomic{name}({i.address(first, space, of)}, {values})"
    return ordered(f"{call};" if reduction else i.write(call), semantics or "relaxed", scope)


@handles("fence", "membar")
def fence(i):
    if i.parts[:2] == ["proxy", "async"] and i.parts[2:] in ([], ["shared::cta"], ["global"], ["shared::cluster"]):
        return "::simt::fence_async_proxy();"
    if i.parts[:1] == ["mbarrier_init"]:
        return "::simt::fence_mbarrier_init();"
    i.drop("sc", "acq_rel", "acquire", "release")
    scope = i.take(*SCOPES, "gl")
    i.end(0)
    return f"::simt::fence(::simt::Scope::{'block' if scope == 'cta' else 'device'});"


@handles("cp")
def copy(i):
    if i.parts[:3] == ["reduce", "async", "bulk"]:
        return bulk_reduction(i)
    if i.parts[0] != "async":
        i.refuse()
    if i.parts[1:2] == ["bulk"]:
        return bulk_copy(i)
    rest = i.parts[1:]
    if rest[:2] == ["mbarrier", "arrive"]:
        i.parts = rest[2:]
        counted, space = i.take("noinc"), i.take("shared", "shared::cta")
        i.drop("b64")
        i.end(1)
        return f"::simt::copies_arrive({i.address(0, space)}, {'true' if counted else 'false'});"
    if rest == ["commit_group"]:
        return "::simt::commit_copies();"
    if rest == ["wait_group"]:
        return f"::simt::wait_copies({i.read(0, U32)});"
    if rest == ["wait_all"]:
        return "::simt::commit_copies(); ::simt::wait_copies(0);"
    i.parts = rest
    i.take("ca", "cg")
    space = i.take("shared", "shared::cta")
    i.take("global")
    i.drop("L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")
    if space is None or i.parts or len(i.operands) not in (3, 4, 5):
        i.refuse()
    if len(i.operands) > 3 and not i.operands[3].lstrip("%").isdigit():
        i.refuse("its fourth operand must be a size in bytes, from the C++ side")
    source = i.read(3, U32) if len(i.operands) > 3 else i.read(2, U32)
    return f"::simt::copy_async({i.address(0, space)}, {i.address(1, 'global')}, {i.read(2, U32)}, {source});"


def bulk_copy(i):
    b, rest = i.block, i.parts[2:]
    if rest == ["commit_group"]:
        return "::simt::bulk_commit();"
    if rest in (["wait_group"], ["wait_group", "read"]):
        return f"::simt::bulk_wait({i.read(0, U32)});"
    multicast = "multicast::cluster" in rest
    if any(part.startswith(("im2col_", "im2col::", "tile::")) for part in rest):
        i.refuse("copy a tile, or load by im2col")
    hints, columns = "L2::cache_hint" in rest, "im2col" in rest
    rest = [part for part in rest if part not in ("L2::cache_hint", "tile", "im2col", "multicast::cluster")]
    operands = i.operands[:len(i.operands) - hints]
    mask = ""
    if multicast:
        mask, operands = b.read(operands[-1], U32) + " & 0xffff", operands[:-1]
    tensor = rest[0] == "tensor"
    if tensor:
        dimensions, rest = rest[1], rest[2:]
        if dimensions not in ("1d", "2d", "3d", "4d", "5d"):
            i.refuse()
    if rest[0] == "prefetch":
        rest = rest[1:]
        if rest[:1] != ["L2"]:
            i.refuse()
        if not tensor and rest[1:2] == ["tensor"] or tensor:
            return ";"
        return f"::simt::bulk_prefetch({i.address(0, 'global')}, {i.read(1, U32)});"
    if rest in (["shared::cluster", "global", "mbarrier::complete_tx::bytes"],
                ["shared::cta", "global", "mbarrier::complete_tx::bytes"]):
        to = b.address(operands[0], "shared")
        barrier = b.address(operands[2 if columns else -1], "shared")
        if tensor:
            form, at = b.tensor(operands[1])
            if len(at) != int(dimensions[0]):
                i.refuse("it has other coordinates than dimensions")
            if columns and multicast:
                i.refuse("multicast a tile")
            if columns:
                offsets = [b.read(each, U16) for each in b.elements(operands[3])] if len(operands) == 4 else []
                if len(offsets) != len(at) - 2 or not offsets:
                    i.refuse("im2col has two offsets less than dimensions")
                return f"::simt_ptx::im2col_load({to}, {form}, {barrier}, {{{', '.join(offsets)}}}, {', '.join(at)});"
            if multicast:
                return f"::simt_ptx::tensor_multicast({to}, {form}, {barrier}, {mask}, {', '.join(at)});"
            return f"::simt_ptx::tensor_load({to}, {form}, {barrier}, {', '.join(at)});"
        return (f"::simt::bulk_load({to}, {b.address(operands[1], 'global')}, {b.read(operands[2], U32)}, {barrier}"
                + (f", {mask}" if multicast else "") + ");")
    if rest == ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"] and not tensor:
        return (f"::simt::bulk_copy_in_cluster({b.address(operands[0], 'shared')}, {b.address(operands[1], 'shared')}, "
                f"{b.read(operands[2], U32)}, {b.address(operands[3], 'shared')});")
    if rest == ["global", "shared::cta", "bulk_group"]:
        if tensor:
            form, at = b.tensor(operands[0])
            if len(at) != int(dimensions[0]):
                i.refuse("it has other coordinates than dimensions")
            return f"::simt_ptx::tensor_store({form}, {b.address(operands[1], 'shared')}, {', '.join(at)});"
        return (f"::simt::bulk_store({b.address(operands[0], 'global')}, {b.address(operands[1], 'shared')}, "
                f"{b.read(operands[2], U32)});")
    i.refuse()


def bulk_reduction(i):
    i.parts = i.parts[3:]
    hints = i.take("L2::cache_hint")
    to, source = i.parts[:2]
    i.parts = i.parts[2:]
    operands = i.operands[:len(i.operands) - 1] if hints else i.operands
    if source != "shared::cta":
        i.refuse("it adds from shared memory")
    if to == "shared::cluster" and i.take("mbarrier::complete_tx::bytes"):
        reduction = reduction_of(i, IN_CLUSTER)
        i.end(4)
        return (f"::simt::bulk_reduce_in_cluster({i.address(0, 'shared')}, {i.address(1, 'shared')}, {i.read(2, U32)}, "
                f"{reduction}, {i.address(3, 'shared')});")
    if to != "global" or not i.take("bulk_group") or len(operands) != 3:
        i.refuse()
    reduction = reduction_of(i, TO_GLOBAL)
    i.end()
    return (f"::simt::bulk_reduce({i.address(0, 'global')}, {i.address(1, 'shared')}, {i.read(2, U32)}, {reduction});")


@handles("prefetch", "prefetchu", "createpolicy", "griddepcontrol", "nanosleep", "pmevent", "discard", "applypriority")
def no_effect(i):
    """Hints; and each kernel runs to its end before the next begins."""
    return i.write(f"{U64}{{}}") if i.opcode.startswith("createpolicy") else ";"


@handles("mbarrier")
def mbarrier(i):
    what = i.parts.pop(0)
    i.drop("b64", "cta", "cluster", "release", "acquire", "relaxed", "noComplete")
    space = i.take("shared", "shared::cta", "shared::cluster")
    if what == "init":
        i.end(2)
        return f"::simt::mbarrier_init({i.address(0, space)}, {i.read(1, U32)});"
    if what == "inval":
        i.end(1)
        return ";"
    if what in ("arrive", "arrive_drop"):
        expects = i.take("expect_tx")
        i.end()
        place = 0 if i.operands[0].startswith("[") else 1
        pointer = i.address(place, space)
        more = i.read(place + 1, U32) if len(i.operands) > place + 1 else "1"
        if what == "arrive_drop":
            if expects:
                i.refuse("expect the bytes before")
            call = f"::simt_ptx::arrive_drop({pointer}, {more})"
            return i.write(call) if place == 1 else call + ";"
        call = f"::simt_ptx::{'arrive_expect' if expects else 'arrive'}({pointer}, {more})"
        return i.write(call) if place == 1 else call + ";"
    if what == "expect_tx":
        i.end(2)
        return f"::simt::mbarrier_expect_tx({i.address(0, space)}, {i.read(1, U32)});"
    if what in ("try_wait", "test_wait"):
        i.take("parity")
        i.end((3, 4))
        return (f"::simt::mbarrier_wait({i.address(1, space)}, {i.read(2, U64)} & 1);"
                + i.write("true"))
    i.refuse()


@handles("bar", "barrier")
def barrier(i):
    if i.parts[:1] == ["cluster"]:
        i.parts.pop(0)
        what, semantics = i.take("arrive", "wait"), i.take("release", "relaxed", "acquire")
        aligned = "true" if i.take("aligned") else "false"
        i.end(0)
        if what == "arrive" and semantics != "acquire":
            return f"::simt::cluster_arrive({'false' if semantics == 'relaxed' else 'true'}, {aligned}, __builtin_LINE());"
        if what != "wait" or semantics not in (None, "acquire"):
            i.refuse()
        return "::simt::cluster_wait(__builtin_LINE());"
    i.drop("cta", "aligned")
    if i.parts == ["warp", "sync"]:
        return f"__syncwarp({i.read(0, U32)});"
    what = i.take("sync", "arrive")
    i.end((1, 2))
    if what is None:
        i.refuse()
    threads = i.read(1, U32) if len(i.operands) > 1 else "::simt_ptx::block_threads()"
    return f"::simt_ptx::barrier({i.read(0, U32)}, {threads}, {'true' if what == 'sync' else 'false'});"


@handles("ldmatrix", "stmatrix")
def matrix(i):
    i.drop("sync", "aligned", "m8n8", "b16")
    count, transposed, space = i.take("x1", "x2", "x4"), i.take("trans"), i.take("shared", "shared::cta")
    i.end(2)
    if count is None or space is None:
        i.refuse()
    load_it = i.opcode.startswith("ld")
    registers = i.block.elements(i.operands[0 if load_it else 1])
    if len(registers) != int(count[1]):
        i.refuse()
    pointer = i.address(1 if load_it else 0, space)
    array, trans = f"ptx_matrix_{next(i.block.counter)}", "true" if transposed else "false"
    if load_it:
        return (f"unsigned {array}[{count[1]}]; ::simt::load_matrices({array}, {pointer}, {count[1]}, {trans}, "
                "__builtin_LINE());" + "".join(i.block.write(r, f"{array}[{n}]") for n, r in enumerate(registers)))
    values = ", ".join(i.block.read(each, U32) for each in registers)
    return (f"const unsigned {array}[] = {{{values}}}; ::simt::store_matrices({pointer}, {array}, {count[1]}, {trans}, "
            "__builtin_LINE());")


@handles("movmatrix")
def transpose_matrix(i):
    i.drop("sync", "aligned", "m8n8", "trans", "b16")
    i.end(2)
    return i.write(f"::simt_ptx::transposed_matrix({i.read(1, U32)})")


MMA_ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1, "e4m3": 1, "e5m2": 1}


@handles("mma")
def mma(i):
    i.drop("sync", "aligned")
    shape = i.take("m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32")
    i.drop("row", "col")
    if shape is None or len(i.parts) != 4:
        i.refuse()
    of_d, of_a, of_b, of_c = i.parts
    depth = int(shape[6:]) * MMA_ELEMENTS.get(of_a, 0)
    fp8 = ("e4m3", "e5m2")
    sums = {"f32": ("f16", "bf16", "tf32", *fp8), "f16": ("f16", *fp8), "s32": ("s8", "u8")}
    mixed = of_d == "s32" or of_a in fp8
    if (of_d != of_c or of_a not in sums.get(of_d, ()) or of_b not in sums[of_d] or depth not in (16, 32)
            or of_a != of_b and (not mixed or MMA_ELEMENTS[of_b] != 1)):
        i.refuse()
    of_d_bits = 2 if of_d == "f16" else 4
    b = i.block
    d, a, bb, c = (b.elements(each) for each in i.operands)
    if [len(each) for each in (d, a, bb, c)] != [of_d_bits, depth // 8, depth // 16, of_d_bits]:
        i.refuse("it has other registers than this shape")
    number = next(b.counter)
    arrays = {name: ", ".join(b.read(each, U32) for each in values) for name, values in (("c", c), ("a", a), ("b", bb))}
    return (f"unsigned ptx_c_{number}[] = {{{arrays['c']}}}; const unsigned ptx_a_{number}[] = {{{arrays['a']}}}, "
            f"ptx_b_{number}[] = {{{arrays['b']}}}; ::simt::multiply_matrices({{::simt::MmaElement::{of_a}, "
            f"::simt::MmaElement::{of_b}, {depth}, {'true' if of_d == 'f16' else 'false'}}}, ptx_c_{number}, "
            f"ptx_a_{number}, ptx_b_{number}, __builtin_LINE());"
            + "".join(b.write(each, f"ptx_c_{number}[{n}]") for n, each in enumerate(d)))


# The simulator's name, bytes, and in what sums are made.
WGMMA_ELEMENTS = {"f16": ("fp16", 2, ("f32", "f16")), "bf16": ("bf16", 2, ("f32",)), "tf32": ("tf32", 4, ("f32",)),
                  "e4m3": ("e4m3", 1, ("f32", "f16")), "e5m2": ("e5m2", 1, ("f32", "f16")),
                  "s8": ("int8", 1, ("s32",)), "u8": ("uint8", 1, ("s32",))}


@handles("wgmma")
def wgmma(i):
    what = i.parts.pop(0)
    i.drop("sync", "aligned")
    if what == "fence":
        i.end(0)
        return "::simt::wgmma_fence(__builtin_LINE());"
    if what == "commit_group":
        i.end(0)
        return "::simt::wgmma_commit(__builtin_LINE());"
    if what == "wait_group":
        i.end(1)
        return f"::simt::wgmma_wait({i.read(0, U32)}, __builtin_LINE());"
    if what != "mma_async" or "sp" in i.parts:
        i.refuse()
    shape = i.parts.pop(0)
    if len(i.parts) != 3:
        i.refuse()
    of_d, of_a, of_b = i.parts
    n, _, k = shape.removeprefix("m64n").partition("k")
    if (of_a not in WGMMA_ELEMENTS or of_d not in WGMMA_ELEMENTS[of_a][2] or not shape.startswith("m64n") or not n.isdigit()
            or k != str(32 // WGMMA_ELEMENTS[of_a][1]) or of_b not in WGMMA_ELEMENTS
            or of_b != of_a and WGMMA_ELEMENTS[of_b][1:] != WGMMA_ELEMENTS[of_a][1:]):
        i.refuse("the simulator has the elements and shapes of PTX, but no saturation")
    element, bytes_of, _ = WGMMA_ELEMENTS[of_a]
    b = i.block
    d = b.elements(i.operands[0])
    a, bb, scale, *flags = i.operands[1:]
    count = int(n) // (4 if of_d == "f16" else 2)
    if len(d) != count:
        i.refuse(f"it needs {count} accumulators and has {len(d)}")
    in_registers = a.startswith("{")
    text, flags = "", [f"({b.constant(flag)})" for flag in flags]
    scales = [] if of_d == "s32" else flags[:2]
    transposed = flags[len(scales):]
    if len(transposed) > (0 if bytes_of != 2 else 1 if in_registers else 2) or of_d != "s32" and len(scales) != 2:
        i.refuse("it has other flags than PTX gives it")
    for flag in scales:
        text += f'static_assert({flag} == 1 || {flag} == -1, "ptx: {i.opcode}: a scale is 1 or -1");'
    for flag in transposed:
        text += f'static_assert({flag} == 0 || {flag} == 1, "ptx: {i.opcode}: a transposition is 0 or 1");'
    negated = " * ".join(scales) + " < 0" if scales else "false"
    of_t = [f"{flag} != 0" for flag in transposed] or ["false"]
    transposed_a, transposed_b = ("false", of_t[-1]) if in_registers else (of_t[0], of_t[-1])
    places = ", ".join(f"&{b.variable(each)}" for each in d)
    of_a_registers = ", ".join(f"&{b.variable(each)}" for each in b.elements(a)) if in_registers else ""
    sums = "::simt_ptx::Registers<%d>{{%s}}" % (len(d), places)
    descriptor = "0" if in_registers else b.read(a, U64)
    registers = "::simt_ptx::registers_of(::simt_ptx::Registers<4>{{%s}})" % of_a_registers if in_registers else "nullptr"
    kind = "::simt::WgmmaElement::"
    return text + (f"::simt::wgmma({{::simt_ptx::registers_of({sums}), {registers}, {descriptor}, {b.read(bb, U64)}, {n}, "
                   f"{kind}{element}, {b.read(scale, 'bool')}, {kind}{WGMMA_ELEMENTS[of_b][0]}, "
                   f"{'true' if of_d == 'f16' else 'false'}, {negated}, {transposed_a}, {transposed_b}}}, __builtin_LINE());")


@handles("setmaxnreg")
def set_registers(i):
    increase = i.take("inc", "dec")
    i.drop("sync", "aligned", "u32")
    i.end(1)
    return f"::simt::set_max_registers({i.read(0, U32)}, {'true' if increase == 'inc' else 'false'});"


@handles("shfl")
def shuffle(i):
    i.drop("sync", "b32")
    mode = i.take("up", "down", "bfly", "idx")
    i.end(5)
    to, _, predicate = i.operands[0].partition("|")
    number = next(i.block.counter)
    text = (f"bool ptx_in_{number}; const auto ptx_got_{number} = ::simt_ptx::shuffle('{mode[0]}', {i.read(1, U32)}, "
            f"{i.read(2, U32)}, {i.read(3, U32)}, {i.read(4, U32)}, ptx_in_{number});"
            + i.block.write(to.strip(), f"ptx_got_{number}"))
    return text + (i.block.write(predicate.strip(), f"ptx_in_{number}") if predicate else "")


@handles("vote")
def vote(i):
    i.drop("sync", "b32", "pred")
    what = i.take("all", "any", "uni", "ballot")
    i.end(3)
    mask, predicate = i.read(2, U32), i.read(1, "bool")
    if what == "uni":
        number = next(i.block.counter)
        return (f"const unsigned ptx_votes_{number} = __ballot_sync({mask}, {predicate});"
                + i.write(f"(ptx_votes_{number} == 0 || ptx_votes_{number} == {mask})"))
    call = f"__{what}_sync({mask}, {predicate})"
    return i.write(call if what == "ballot" else f"({call} != 0)")


@handles("redux")
def redux(i):
    i.drop("sync")
    kind, what = i.kind("s32", "u32", "b32"), i.take("add", "min", "max", "and", "or", "xor")
    i.end(3)
    return i.write(f"__reduce_{what}_sync({i.read(2, U32)}, {i.read(1, 'int' if kind == 's32' else 'unsigned')})")


@handles("match")
def match(i):
    kind, what = i.kind("b32", "b64"), i.take("any", "all")
    i.drop("sync")
    i.end(3)
    if what != "any":
        i.refuse("call __match_all_sync")
    return i.write(f"__match_any_sync({i.read(2, U32)}, {i.read(1, kind)})")


@handles("elect")
def elect(i):
    i.drop("sync")
    i.end(2)
    leader, _, predicate = i.operands[0].partition("|")
    lane = f"ptx_leader_{next(i.block.counter)}"
    return (f"const unsigned {lane} = ::simt_ptx::elect({i.read(1, U32)});" + i.block.write(leader.strip(), lane)
            + i.block.write(predicate.strip(), f"({lane} == static_cast<unsigned>(::simt::lane_index()))"))


@handles("cvta")
def convert_address(i):
    kind = i.kind("u64", "u32")
    to, space = i.take("to"), i.take(*SPACES)
    i.end(2)
    value = i.read(1, U64)
    if space and space.startswith("shared"):
        value = f"::simt_ptx::shared_address(::simt_ptx::generic<void>({value}))" if to else (
            f"reinterpret_cast<{U64}>(::simt_ptx::shared<void>({value}))")
    return i.write(f"static_cast<{TYPES[kind]}>({value})")


@handles("mapa")
def map_address(i):
    kind, space = i.kind("u32", "u64"), i.take("shared::cluster")
    i.end(3)
    rank = i.read(2, U32)
    if space:
        return i.write(f"static_cast<{TYPES[kind]}>(::simt::map_shared_address({i.read(1, U64)}, {rank}))")
    return i.write(f"static_cast<{TYPES[kind]}>(reinterpret_cast<{U64}>(::simt::map_shared("
                   f"::simt_ptx::generic<void>({i.read(1, U64)}), {rank})))")


@handles("getctarank")
def rank_of_address(i):
    i.kind("u32", "u64")
    space = i.take("shared::cluster")
    i.end(2)
    return i.write(f"::simt::rank_of_shared(::simt_ptx::{'shared' if space else 'generic'}<void>({i.read(1, U64)}))")


@handles("isspacep")
def is_space(i):
    windows = {"shared": "own_shared", "shared::cta": "own_shared", "shared::cluster": "cluster_shared",
               "global": "global", "local": "local", "const": "constant"}
    space = i.take(*windows)
    i.end(2)
    if space is None:
        i.refuse()
    return i.write(f"::simt::lies_in(::simt::Window::{windows[space]}, ::simt_ptx::generic<void>({i.read(1, U64)}))")


@handles("activemask")
def active_mask(i):
    i.drop("b32")
    i.end(1)
    return i.write("::simt::active_mask(__builtin_LINE())")


@handles("multimem", "clusterlaunchcontrol")
def refused(i):
    i.refuse()


@handles("mov")
def move(i):
    kind = i.kind()
    i.end(2)
    to, source = i.block.elements(i.operands[0]), i.block.elements(i.operands[1])
    if len(to) == len(source) == 1:
        return i.write(i.read(1, kind))
    if len(source) > 1:
        return i.write(f"::simt_ptx::joined<{TYPES[kind]}, {len(source)}>(" + ", ".join(
            i.block.read(each, U64) for each in source) + ")")
    each = f"ptx_whole_{next(i.block.counter)}"
    bits = int(kind[1:]) // len(to)
    return f"const auto {each} = {i.read(1, kind)};" + "".join(
        i.block.write(one, f"static_cast<{TYPES['b%d' % bits]}>({each} >> {n * bits})") for n, one in enumerate(to))


def function(i, template, count, *kinds):
    """d = template of the operands, of one type."""
    kind = i.kind(*kinds)
    i.drop("rn", "ftz", "approx", "full")
    i.end(count + 1)
    return i.write(template.format(*(i.read(n + 1, kind) for n in range(count)), T=TYPES[kind]))


PAIRS = {"f16": "half", "f16x2": "halves"}
NUMBERS = ("s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64")


@handles("add", "sub", "mul", "mad", "fma", "min", "max")
def arithmetic(i):
    name = i.opcode.split(".")[0]
    kind = i.kind(*NUMBERS, "f16", "f16x2", "bf16", "bf16x2")
    count = 3 if name in ("mad", "fma") else 2
    if "sat" in i.parts or any(part in i.parts for part in ("rz", "rm", "rp")):
        i.refuse("the simulator rounds to the nearest alone")
    carry = i.take("cc")
    wide, high = i.take("wide"), i.take("hi")
    i.take("lo")
    i.drop("rn", "ftz")
    i.end(count + 1)
    if carry:
        if name not in ("add", "sub") or kind not in ("u32", "s32", "b32", "u64", "s64"):
            i.refuse()
        return carried(i, name, kind, False, True)
    values = [i.read(n + 1, kind) for n in range(count)]
    if kind in PAIRS:
        names = {"add": "add", "sub": "subtract", "mul": "multiply", "fma": "multiply_add", "min": "minimum",
                 "max": "maximum"}
        return i.write(f"::simt::{PAIRS[kind]}_{names[name]}({', '.join(values)})")
    if kind in ("bf16", "bf16x2"):
        return i.write(f"::simt_ptx::bf16_arithmetic<'{name[2 if name == 'sub' else 1]}', {'true' if kind == 'bf16x2' else 'false'}>"
                       f"({', '.join(values)})")
    if wide or high:
        bits = int(kind[1:])
        double = f"{kind[0]}{2 * bits}"
        if bits == 64 and high and name == "mul":
            return i.write(f"::simt_ptx::high_half({values[0]}, {values[1]})")
        if double not in TYPES or name not in ("mul", "mad"):
            i.refuse()
        product = f"(static_cast<{TYPES[double]}>({values[0]}) * {values[1]})"
        if high:
            product = f"static_cast<{TYPES[kind]}>({product} >> {bits})"
        third = "" if name == "mul" else " + " + i.read(3, double if wide else kind)
        return i.write(f"static_cast<{TYPES[double if wide else kind]}>({product}{third})")
    if name == "fma":
        return i.write(f"__builtin_fma{'f' if kind == 'f32' else ''}({', '.join(values)})")
    if name in ("min", "max"):
        if kind[0] == "f":
            return i.write(f"__builtin_f{name}{'f' if kind == 'f32' else ''}({', '.join(values)})")
        return i.write(f"({values[1]} {'<' if name == 'min' else '>'} {values[0]} ? {values[1]} : {values[0]})")
    if kind[0] == "f":
        operation = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "mad": "{} * {} + {}"}[name]
        if name == "mad":
            return i.write(f"__builtin_fma{'f' if kind == 'f32' else ''}({', '.join(values)})")
        return i.write("(" + operation.format(*values) + ")")
    unsigned = [f"static_cast<{U64}>({value})" for value in values]  # which wrap
    operation = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "mad": "{} * {} + {}"}[name]
    return i.write(f"static_cast<{TYPES[kind]}>({operation.format(*unsigned)})")


def carried(i, name, kind, uses, sets):
    bits = int(kind[1:])
    return i.write(f"::simt_ptx::carried({'true' if name[0] == 'a' else 'false'}, {i.read(1, f'u{bits}')}, "
                   f"{i.read(2, f'u{bits}')}, ptx_carry, {'true' if uses else 'false'}, {'true' if sets else 'false'})")


@handles("addc", "subc")
def with_carry(i):
    kind, sets = i.kind("u32", "s32", "b32", "u64", "s64"), i.take("cc")
    i.end(3)
    return carried(i, i.opcode[:3], kind, True, bool(sets))


FUNCTIONS = {
    "div": ("({} / {})", 2, "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64"),
    "rem": ("({} % {})", 2, "s16", "u16", "s32", "u32", "s64", "u64"),
    "abs": ("::simt_ptx::absolute({})", 1, "s32", "s64", "f32", "f64"),
    "neg": ("(-{})", 1, "s32", "s64", "f32", "f64"),
    "and": ("static_cast<{T}>({} & {})", 2, "pred", "b16", "b32", "b64"),
    "or": ("static_cast<{T}>({} | {})", 2, "pred", "b16", "b32", "b64"),
    "xor": ("static_cast<{T}>({} ^ {})", 2, "pred", "b16", "b32", "b64"),
    "rcp": ("(1 / {})", 1, "f32", "f64"),
    "sqrt": ("::sqrt({})", 1, "f32", "f64"),
    "rsqrt": ("(1 / ::sqrt({}))", 1, "f32", "f64"),
    "lg2": ("::log2f({})", 1, "f32"),
    "sin": ("::sinf({})", 1, "f32"),
    "cos": ("::cosf({})", 1, "f32"),
    "tanh": ("::tanhf({})", 1, "f32"),
    "popc": ("static_cast<unsigned>(__builtin_popcountll({}))", 1, "b32", "b64"),
    "clz": ("::simt_ptx::leading_zeros({})", 1, "b32", "b64"),
    "brev": ("::simt_ptx::reversed({})", 1, "b32", "b64"),
}


def register_functions():
    for name, (template, count, *kinds) in FUNCTIONS.items():
        HANDLERS[name] = lambda i, t=template, c=count, k=kinds: function(i, t, c, *k)


register_functions()


@handles("not")
def negation(i):
    kind = i.kind("pred", "b16", "b32", "b64")
    i.end(2)
    return i.write(f"{'!' if kind == 'pred' else '~'}{i.read(1, kind)}")


@handles("shl", "shr")
def shift(i):
    kind = i.kind("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
    i.end(3)
    return i.write(f"::simt_ptx::shifted_{'left' if i.opcode.startswith('shl') else 'right'}({i.read(1, kind)}, "
                   f"{i.read(2, U32)})")


@handles("shf")
def funnel(i):
    way, mode, kind = i.take("l", "r"), i.take("wrap", "clamp"), i.kind("b32")
    i.end(4)
    return i.write(f"::simt_ptx::funnel({i.read(1, kind)}, {i.read(2, kind)}, {i.read(3, kind)}, "
                   f"{'true' if way == 'l' else 'false'}, {'true' if mode == 'wrap' else 'false'})")


@handles("bfe", "bfi")
def bit_field(i):
    kind = i.kind("b32", "b64", "u32", "s32", "u64", "s64")
    insert = i.opcode.startswith("bfi")
    i.end(5 if insert else 4)
    if insert:
        return i.write(f"::simt_ptx::inserted({i.read(1, kind)}, {i.read(2, kind)}, {i.read(3, U32)}, {i.read(4, U32)})")
    return i.write(f"::simt_ptx::extracted({i.read(1, kind)}, {i.read(2, U32)}, {i.read(3, U32)})")


@handles("lop3")
def logic(i):
    i.drop("b32")
    i.end(5)
    return i.write(f"::simt_ptx::logic({i.read(1, U32)}, {i.read(2, U32)}, {i.read(3, U32)}, {i.read(4, U32)})")


@handles("prmt")
def permute(i):
    i.drop("b32")
    i.end(4)
    return i.write(f"::simt_ptx::permuted({i.read(1, U32)}, {i.read(2, U32)}, {i.read(3, U32)})")


@handles("dp4a")
def dot(i):
    if i.parts != ["s32", "s32"]:
        i.refuse("the simulator takes signed bytes alone")
    return i.write(f"::simt_ptx::dot4({i.read(1, S32)}, {i.read(2, S32)}, {i.read(3, S32)})")


def compared(comparison, a, b, floats):
    """The expression: of floats, those without u at the end are false where one is a NaN."""
    if floats and comparison in ("num", "nan"):
        return f"({'!' if comparison == 'nan' else ''}({a} == {a} && {b} == {b}))"
    if floats and comparison in ("ne", "equ"):
        return f"({'!' if comparison == 'equ' else ''}({a} < {b} || {a} > {b}))"
    if floats and comparison == "neu":
        return f"({a} != {b})"
    opposite = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
    if floats and comparison in opposite:
        return f"(!({a} {opposite[comparison]} {b}))"
    return f"({a} {COMPARISONS[comparison]} {b})" if comparison in COMPARISONS else None


@handles("setp")
def compare(i):
    kind = i.kind("b16", "b32", "b64", *NUMBERS)
    i.drop("ftz")
    joined = i.take("and", "or", "xor")
    comparison = i.take(*COMPARISONS, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    i.end(4 if joined else 3)
    value = compared(comparison, i.read(1, kind), i.read(2, kind), kind in ("f32", "f64"))
    if value is None:
        i.refuse()
    other = f" {dict(zip(('and', 'or', 'xor'), '&|^')).get(joined)} {i.read(3, 'bool')}" if joined else ""
    p, _, q = i.operands[0].partition("|")
    text = i.block.write(p.strip(), f"({value}{other})")
    return text + (i.block.write(q.strip(), f"(!{value}{other})") if q else "")


@handles("selp")
def select(i):
    kind = i.kind()
    i.end(4)
    return i.write(f"({i.read(3, 'bool')} ? {i.read(1, kind)} : {i.read(2, kind)})")


@handles("ex2")
def exponential(i):
    kind = next((part for part in i.parts if part in ("f16", "f16x2", "bf16", "bf16x2")), None)
    if kind is None:
        return function(i, "::exp2f({})", 1, "f32")
    i.drop("approx", "ftz", kind)
    i.end(2)
    return i.write(f"::simt_ptx::exponential_of<{'true' if kind.startswith('b') else 'false'}>({i.read(1, U32)})")


@handles("slct")
def select_by_sign(i):
    i.refuse("use selp")


@handles("cvt")
def convert(i):
    rounding = i.take("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi")
    saturates, relu = i.take("satfinite", "sat"), i.take("relu")
    i.drop("ftz")
    if relu or len(i.parts) != 2:
        i.refuse()
    to, source = i.parts
    pairs = {("f16x2", "f32"): "half_pair", ("bf16x2", "f32"): "bf16_pair", ("e4m3x2", "f32"): "e4m3_pair",
             ("e5m2x2", "f32"): "e5m2_pair"}
    small = to in ("e4m3x2", "e5m2x2")
    if (to, source) in pairs and rounding == "rn" and len(i.operands) == 3 and bool(saturates) == small:
        return i.write(f"::simt_ptx::{pairs[to, source]}({i.read(1, 'f32')}, {i.read(2, 'f32')})")
    if len(i.operands) != 2:
        i.refuse()
    single = {("tf32", "f32", "rna"): ("::simt_ptx::to_tf32({})", "f32"),
              ("f16", "f32", "rn"): ("::simt::half_from({})", "f32"), ("f32", "f16", None): ("::simt::half_to_float({})", "b16"),
              ("bf16", "f32", "rn"): ("::simt_ptx::to_bf16({})", "f32"),
              ("f32", "bf16", None): ("__builtin_bit_cast(float, static_cast<std::uint32_t>({}) << 16)", "b16"),
              ("f16x2", "e4m3x2", "rn"): ("::simt_ptx::halves_of_e4m3({})", "b16"),
              ("f16x2", "e5m2x2", "rn"): ("::simt_ptx::halves_of_e5m2({})", "b16")}
    if saturates and (to not in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")):
        i.refuse()
    if (to, source, rounding) in single:
        template, kind = single[to, source, rounding]
        return i.write(template.format(i.read(1, kind)))
    integers = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
    if to in integers and source in integers and rounding is None:
        call = f"::simt_ptx::{'saturated' if saturates else 'cast'}<{TYPES[to]}>({i.read(1, source)})"
        return i.write(call)
    if to in integers and source in ("f32", "f64") and rounding in ("rni", "rzi", "rmi", "rpi"):
        name = {"rni": "::rint", "rzi": "::trunc", "rmi": "::floor", "rpi": "::ceil"}[rounding]
        return i.write(f"::simt_ptx::to_integer<{TYPES[to]}>({name}({i.read(1, source)}))")
    if to in ("f32", "f64") and (source in integers or source in ("f32", "f64")) and rounding in (None, "rn"):
        return i.write(f"static_cast<{TYPES[to]}>({i.read(1, source)})")
    if to == source == "f32" and rounding in ("rni", "rzi", "rmi", "rpi"):
        name = {"rni": "rintf", "rzi": "truncf", "rmi": "floorf", "rpi": "ceilf"}[rounding]
        return i.write(f"::{name}({i.read(1, 'f32')})")
    i.refuse()


@handles("trap")
def trap(i):
    return "__trap();"


@handles("bra")
def branch(i):
    i.drop("uni")
    i.end(1)
    return f"goto {i.block.label(i.operands[0])};"


# ---- What a GPU has ---------------------------------------------------------------------------------------------------

# From which compute capability on there is an instruction: the notes on target architectures in the PTX ISA. All others
# are as old as sm_70. Of the rows that match, the highest counts.
CAPABILITIES = tuple((re.compile(pattern), capability) for pattern, capability in (
    (r"(ld|mov)matrix", 75), (r"mma\.sync.*m16n8k8.*\.f16", 75), (r"tanh\.approx", 75), (r"ex2\.approx(\.ftz)?\.f16", 75),
    (r"(min|max)(\.NaN)?\.f16", 80), (r".*\.L2::(64B|128B|256B)", 75),
    (r"mma\.sync.*m16n8k4", 80), (r"mma\.sync.*m16n8k16", 80), (r"mma\.sync.*m16n8k32", 80),
    (r"mma\.sync.*\.(bf16|tf32|f64)", 80), (r"cp\.async", 80), (r"mbarrier", 80), (r"redux", 80), (r"createpolicy", 80),
    (r".*\.L2::cache_hint", 80), (r".*\.bf16", 80), (r"cvt.*\.tf32", 80), (r"mma\.sync.*\.(e4m3|e5m2)", 89),
    (r"cvt.*\.(e4m3|e5m2)x2", 89), (r"cp\.async\.bulk", 90), (r"mbarrier\.try_wait", 90), (r"mbarrier.*expect_tx", 90),
    (r"fence\.proxy\.async", 90), (r"fence\.mbarrier_init", 90), (r"(add|sub|mul)(\.rn)?\.bf16", 90), (r"stmatrix", 90),
    (r"(ex2|tanh)\.approx.*\.bf16", 90),
    (r"red\..*\.v[24]", 90), (r"(atom|red)\..*\.bf16", 90),
    (r"elect", 90), (r"griddepcontrol", 90), (r".*[.:]cluster", 90), (r"mapa", 90), (r"getctarank", 90), (r"(st|red)\.async", 90),
    (r"cp\.reduce", 90), (r"setmaxnreg", 90), (r"wgmma", 90)))
ARCHITECTURE_ONLY = ("setmaxnreg", "wgmma")  # in code for sm_90a alone


def capability_of(opcode):
    return max((capability for pattern, capability in CAPABILITIES if pattern.match(opcode)), default=70)


# ---- One asm statement -----------------------------------------------------------------------------------------------


def operand_kind(constraint):
    letter = constraint.lstrip("=+&")
    if len(letter) != 1 or letter not in CONSTRAINTS:
        raise Unknown(f'the constraint "{constraint}" is not simulated')
    return letter


def translate(number, text, outputs, inputs, capability=90):
    """C++ for one asm statement. @param outputs, inputs [(constraint, expression)]
    @param capability the GPU's, 10 major + minor"""
    if not text.strip():
        return '__asm__ volatile("" ::: "memory")'
    code, operands = [], []
    for constraint, expression in outputs:
        operand_kind(constraint)
        operands.append((constraint, f"ptx_{number}_o{len(operands)}", expression))
        code.append(f"auto& {operands[-1][1]} = ({expression});")
    for constraint, expression in inputs:
        letter = operand_kind(constraint)
        if constraint.isdigit():
            raise Unknown(f'the constraint "{constraint}" is not simulated')
        name = f"ptx_{number}_i{len(operands)}"
        if letter in "ni":
            operands.append((constraint, f"({expression})", expression))
            continue
        operands.append((constraint, name, expression))
        # wgmma reads registers where they are
        code.append(f"const auto& {name} = ({expression});" if "wgmma" in text else f"const auto {name} = ({expression});")
    block = Block(number, operands)
    body = []
    for statement in statements(text):
        if statement[0] == "{":
            block.scopes.append({})
        elif statement[0] == "}":
            if len(block.scopes) == 1:
                raise Unknown("a } without its {")
            block.scopes.pop()
        elif statement[0] == "reg":
            block.declare(statement[1])
        elif statement[0] == "label":
            body.append(f"{block.label(statement[1])}:;")
        else:
            _, predicate, opcode, words = statement
            if (needed := capability_of(opcode)) > capability:
                raise Unknown(f"{opcode} needs sm_{needed}{'a' if opcode.startswith(ARCHITECTURE_ONLY) else ''}, and the "
                              f"chosen GPU is sm_{capability}: choose a newer one by --gpu, or put it behind "
                              f"#if __CUDA_ARCH__ >= {10 * needed}")
            handler = HANDLERS.get(opcode.split(".")[0])
            if handler is None:
                raise Unknown(f"{opcode} is not simulated")
            try:
                made = handler(Instruction(block, opcode, words))
            except (IndexError, KeyError, ValueError):
                raise Unknown(f"{opcode} is not simulated with these operands") from None
            condition = f"if ({block.read(predicate, 'bool')}) " if predicate else ""
            body.append(f"{condition}{{ {made} }}")
    carry = "bool ptx_carry = false;" if any(word in text for word in (".cc", "addc", "subc")) else ""
    return "do { " + carry + " ".join(code + block.lines + body) + " } while (0)"
