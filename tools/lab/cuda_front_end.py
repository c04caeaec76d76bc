"""Turns preprocessed CUDA C++ into C++ for the simulator: launches, memory spaces, dynamic shared memory.

It works on tokens, keeps every line where it is, and leaves what is not the user's (system headers, the simulator's
own) as it stands. Whatever it cannot turn it refuses, with the line. Inline PTX is ptx.py's.
"""
import dataclasses

import ptx

OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
ASM = ("asm", "__asm__", "__asm")
SPACES = ("__shared__", "__constant__", "__device__", "__managed__")
DROPPED = ("__global__", "__host__", "__noinline__")
QUALIFIERS = ("static", "extern", "volatile", "const", "constexpr", "inline", "alignas", "__attribute__", "typename",
              *SPACES, *DROPPED)
NAMED = {"cudaMalloc": 2, "cudaMallocManaged": 3, "cudaMallocHost": 3, "cudaHostAlloc": 3, "cudaMallocAsync": 3,
         "cudaMallocPitch": 4, "cudaMalloc3D": 2}  # their arguments, defaults included; the name follows
LAUNCHES = {"cudaLaunchKernel": 0, "cudaLaunchCooperativeKernel": 0, "cudaLaunchKernelExC": 1}  # which argument is a kernel
BUILT_IN = {"threadIdx": "(::simt::thread_index())", "blockIdx": "(::simt::block_index())",
            "blockDim": "(::simt::block_size())", "gridDim": "(::simt::grid_size())"}
THREE = ("<<=", ">>=", "...", "->*", "<=>")
TWO = ("::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
       "^=", "##")


class Refused(Exception):
    """What cannot be taken. Its text begins with the place."""


@dataclasses.dataclass
class Token:
    text: str
    file: str
    line: int
    before: str = ""  # white space, comments, other people's code


def is_name(text):
    return text[0].isalpha() or text[0] == "_"


def without_attributes(words):
    """The words of a type less what sets its alignment."""
    i = 0
    while i < len(words):
        if words[i] in ("__attribute__", "alignas"):
            depth, i = 0, i + 1
            while True:
                depth += (words[i] == "(") - (words[i] == ")")
                i += 1
                if depth == 0:
                    break
        else:
            yield words[i]
            i += 1


def alignments(words):
    """The words that without_attributes() leaves out."""
    i = 0
    while i < len(words):
        inside = words[i] in ("__attribute__", "alignas")
        depth = 0
        while inside:
            yield words[i] + " "
            i += 1
            depth += (words[i] == "(") - (words[i] == ")")
            if depth == 0:
                yield words[i] + " "
                inside = False
        i += 1


def end_of_string(text, i):
    """Past the literal whose quote stands at `i`."""
    quote, i = text[i], i + 1
    while i < len(text) and text[i] != quote:
        i += 2 if text[i] == "\\" else 1
    return i + 1


def end_of_token(text, i):
    c = text[i]
    if c.isalpha() or c == "_":
        end = i + 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        if text[end:end + 1] == '"' and text[i:end] in ("R", "LR", "uR", "UR", "u8R"):
            opening = text.index("(", end)
            closing = ")" + text[end + 1:opening] + '"'
            return text.index(closing, opening) + len(closing)
        if text[end:end + 1] in ('"', "'") and text[i:end] in ("L", "u", "U", "u8"):
            return end_of_string(text, end)
        return end
    if c.isdigit() or (c == "." and text[i + 1:i + 2].isdigit()):
        end = i + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "._'"
                                   or (text[end] in "+-" and text[end - 1] in "eEpP" and not (
                                       text[i:i + 2] in ("0x", "0X") and text[end - 1] in "eE"))):
            end += 1
        return end
    if c in "\"'":
        return end_of_string(text, i)
    for length, known in ((3, THREE), (2, TWO)):
        if text[i:i + length] in known:
            return i + length
    return i + 1


def tokens_of(text, own_file):
    """The user's tokens; the last one is empty and carries what follows."""
    files, mine = {own_file}, True
    tokens, before, file, line = [], [], own_file, 1
    for row in text.splitlines(keepends=True):
        if row.startswith("# ") and row[2:3].isdigit():
            number, rest = row[2:].split(" ", 1)
            name = rest[1:rest.rindex('"')]
            flags = rest[rest.rindex('"') + 1:].split()
            if "3" not in flags:
                files.add(name)
            mine, file, line = name in files and not name.startswith("<"), name, int(number)
            before.append(row)
            continue
        if not mine or row.lstrip().startswith("#"):
            before.append(row)
            line += 1
            continue
        i = 0
        while i < len(row):
            if row[i].isspace():
                before.append(row[i])
                i += 1
                continue
            end = end_of_token(row, i)
            tokens.append(Token(row[i:end], file, line, "".join(before)))
            before = []
            i = end
        line += 1
    tokens.append(Token("", file, line, "".join(before)))
    return tokens


class FrontEnd:
    def __init__(self, tokens, capability):
        self.tokens, self.capability = tokens, capability
        self.guards = self.asms = self.clusters = 0
        self.kernels = self.names_of_kernels()

    def names_of_kernels(self):
        """Of all that are declared, and of what stands before parentheses in the same places, as launch bounds."""
        names, declares = set(), False
        for token, after in zip(self.tokens, self.tokens[1:]):
            declares = token.text == "__global__" or (declares and token.text not in ("{", ";"))
            if declares and after.text == "(":
                names.add(token.text)
        return names

    def refuse(self, i, text):
        raise Refused(f"{self.tokens[i].file}:{self.tokens[i].line}: {text}")

    def closing(self, i):
        """The index of the bracket that closes the one at `i`."""
        depth = 0
        for j in range(i, len(self.tokens)):
            if self.tokens[j].text in OPENING:
                depth += 1
            elif self.tokens[j].text in CLOSING:
                depth -= 1
                if depth == 0:
                    return j
        self.refuse(i, "this bracket is never closed")

    def commas(self, begin, end):
        """The indices of the commas between arguments."""
        found, i = [], begin
        while i < end:
            text = self.tokens[i].text
            if text in OPENING:
                i = self.closing(i)
            elif text == "<" and i > begin and is_name(self.tokens[i - 1].text):
                i = self.end_of_template(i, end) or i
            elif text == ",":
                found.append(i)
            i += 1
        return found

    def end_of_template(self, i, end):
        """The `>` that closes template arguments, or None where `<` is a comparison."""
        depth = 0
        while i < end:
            text = self.tokens[i].text
            if text == "(":
                i = self.closing(i)
            elif text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
                if depth <= 0:
                    return i
            elif text in (";", "{", "&&", "||"):
                return None
            i += 1
        return None

    def text(self, begin, end):
        return "".join(token.before + token.text for token in self.tokens[begin:end])

    def plain(self, begin, end):
        """One line, for names."""
        words = ""
        for token in self.tokens[begin:end]:
            words += ("" if not words or not (is_name(token.text) and is_name(words[-1:] or " ")) else " ") + token.text
            if token.text == ",":
                words += " "
        return words

    # ---- Built-in variables ----------------------------------------------------------------------------------------

    def is_declaration(self, i):
        """Whether a variable of a built-in name is declared at `i`, as programs do on the host."""
        before, after = self.tokens[i - 1].text, self.tokens[i + 1].text
        if after not in ("(", "{", "=", ";", ",", ")", "["):
            return False
        if before in ("&", "*"):
            before = self.tokens[i - 2].text
        elif before == ",":
            return after in ("(", "{") or after in (",", ";", "=") and self.begins_with_type(i)
        return bool(before) and is_name(before) and before not in ("return", "case", "else", "sizeof")

    def begins_with_type(self, i):
        """Whether the statement of `i` begins as a declaration does: `dim3 gridDim, blockDim`."""
        while i > 0 and self.tokens[i - 1].text not in (";", "{", "}"):
            if self.tokens[i - 1].text in CLOSING:
                i = self.opening(i - 1)
            elif self.tokens[i - 1].text in OPENING:
                return False  # an argument: `int n = count(x, gridDim, 2)`
            else:
                i -= 1
        while self.tokens[i].text in ("const", "static"):
            i += 1
        return all(is_name(self.tokens[k].text or ";") for k in (i, i + 1)) and self.tokens[i].text != "return"

    def end_of_scope(self, i):
        """Where a variable that is declared at `i` ends."""
        depth, in_parentheses = 0, False
        for j in range(i, len(self.tokens)):
            text = self.tokens[j].text
            if text in OPENING:
                depth += 1
            elif text in CLOSING:
                depth -= 1
                if in_parentheses and depth == 0 and text == "}":
                    return j
                if depth < 0:
                    if text == "}":
                        return j
                    in_parentheses, depth = True, 0  # a parameter: up to the end of the function
            elif text == ";" and in_parentheses and depth == 0:
                return j
        return len(self.tokens)

    def replace_built_ins(self):
        own = dict.fromkeys(BUILT_IN, -1)  # up to where the name is the program's
        for i, token in enumerate(self.tokens):
            if token.text not in BUILT_IN or self.tokens[i - 1].text in (".", "->", "::"):
                continue
            if self.is_declaration(i):
                own[token.text] = max(own[token.text], self.end_of_scope(i))
            elif i > own[token.text]:
                token.text = BUILT_IN[token.text]

    # ---- Launches --------------------------------------------------------------------------------------------------

    def begin_of_kernel(self, end):
        """Where the expression begins that stands before <<<."""
        i = end - 1
        while self.tokens[i].text == "]":  # of an array of kernels
            i = self.opening(i) - 1
        if self.tokens[i].text == ")":
            return self.opening(i)
        if self.tokens[i].text in (">", ">>"):
            depth = 0
            while i > 0:
                if self.tokens[i].text in CLOSING:
                    i = self.opening(i)
                depth += {">": 1, ">>": 2, "<": -1}.get(self.tokens[i].text, 0)
                if depth <= 0:
                    break
                i -= 1
            i -= 1
        if not is_name(self.tokens[i].text or ";"):
            self.refuse(end, "no kernel stands before <<<")
        while self.tokens[i - 1].text in ("::", ".", "->"):
            i -= 1
            if self.tokens[i - 1].text in ("]", ")"):
                i = self.opening(i - 1)
            if is_name(self.tokens[i - 1].text or ";") and self.tokens[i - 1].text != "return":
                i -= 1
        return i

    def opening(self, i):
        """The index of the bracket that the one at `i` closes."""
        depth = 0
        for j in range(i, -1, -1):
            depth += (self.tokens[j].text in CLOSING) - (self.tokens[j].text in OPENING)
            if depth == 0:
                return j
        self.refuse(i, "this bracket is never opened")

    def rewrite_launch(self, i):
        """`i` is the `<<` of <<<."""
        j, depth = i + 2, 0
        while True:
            text = self.tokens[j].text
            if text in OPENING:
                j = self.closing(j)
            elif text == ">>" and self.tokens[j + 1].text == ">":
                break
            elif text in (";", ""):
                self.refuse(i, "this launch has no >>>")
            j += 1
        if self.tokens[j + 2].text != "(":
            self.refuse(j, "the arguments of a launch must follow >>> in parentheses")
        close = self.closing(j + 2)
        begin = self.begin_of_kernel(i)
        kernel, name = self.text(begin, i), self.plain(begin, i)
        lead = self.tokens[begin].before
        kernel = kernel[len(lead):]
        arguments, passed, last = [], [], j + 3
        for comma in [*self.commas(j + 3, close), close]:
            if comma > last and self.tokens[last].text == "{":  # it has a type only as the kernel's parameter
                passed.append(self.plain(last, comma))
                arguments.append("".join(token.before for token in self.tokens[last:comma]))
            elif comma > last:
                null = comma == last + 1 and self.tokens[last].text == "__null"
                passed.append(f"simt_{len(passed)}")
                arguments.append(", " + (self.tokens[last].before + "nullptr" if null else self.rewritten(last, comma)))
            last = comma + 1
        named = ", ".join(f"auto&& {name}" for name in passed if name.startswith("simt_"))
        if any(self.tokens[comma - 1].text == "..." for comma in [*self.commas(j + 3, close), close]):  # a pack
            named, passed = "auto&&... simt_all", ["simt_all..."]
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        shown = f'"{quoted}"'
        if "<" not in name and self.tokens[i - 1].text not in self.kernels:  # a pointer
            shown = f"::simt_cuda::name_of_kernel(reinterpret_cast<const void *>({kernel}))"
        call = (f'::simt_cuda::launch({shown}, ::simt_cuda::Configuration({self.rewritten(i + 2, j)}), '
                f'[&]({named}) __attribute__((no_sanitize("thread"))) '
                f'{{ ::simt::watch(); {kernel}({", ".join(passed)}); }}')
        call += "".join(arguments)
        call += self.tokens[close].before + ")"
        return begin, lead + call, close + 1

    def rewrite_cluster(self, start, i):
        """`i` is __cluster_dims__ in a statement that begins at `start`: what tells the runtime, and what follows."""
        if self.tokens[i + 1].text != "(":
            self.refuse(i, "__cluster_dims__ must be followed by the cluster's size in parentheses")
        close = self.closing(i + 1)
        asked = False  # the size is known to the kernel alone
        if self.tokens[start].text == "template":
            parameters = {t.text for t in self.tokens[start + 1:self.end_of_template(start + 1, i) or i]}
            asked = any(t.text in parameters and is_name(t.text) for t in self.tokens[i + 2:close])
        name = close + 1
        while self.tokens[name + 1].text != "(" or self.tokens[name].text in ("__attribute__", "alignas", "decltype"):
            name = self.closing(name + 1) + 1 if self.tokens[name + 1].text == "(" else name + 1
            if self.tokens[name].text in (";", "{", ""):
                self.refuse(i, "no kernel follows __cluster_dims__")
        size = " ".join(self.text(i + 2, close).split())
        if asked:
            body = self.closing(name + 1) + 1
            if self.tokens[body].text == "{":
                within = self.tokens[body + 1]
                within.before = f"if (::simt_cuda::tells_cluster(::dim3({size}))) return;" + within.before
            size = "0, 0, 0"
        self.clusters += 1
        return (f"static const ::simt_cuda::ClusterDims simt_cluster_{self.clusters}("
                f'"{self.tokens[name].text}", ::dim3({size}));'), close + 1

    # ---- Memory spaces ---------------------------------------------------------------------------------------------

    def guard(self):
        self.guards += 1
        return f"simt_guard_{self.guards}"

    def is_function(self, i):
        """Whether the declaration with the keyword at `i` is one of a function, a lambda or a type."""
        while True:
            text = self.tokens[i].text
            if text in ("__attribute__", "alignas", "decltype") and self.tokens[i + 1].text == "(":
                i = self.closing(i + 1)
            elif text == "[" and self.tokens[i + 1].text == "[":
                i = self.closing(i)
            elif text in ("struct", "class", "union", "enum") and self.tokens[i - 1].text in SPACES:
                body = i + 2 if is_name(self.tokens[i + 1].text) else i + 1
                i = self.closing(body) if self.tokens[body].text == "{" else body - 1
            elif text in ("(", "operator", "struct", "class", "union", "enum", "~", "using", "template", ""):
                return True
            elif text in (";", "=", "[", "{", ":"):
                return False
            elif text == "<":
                i = self.end_of_template(i, len(self.tokens)) or i
            i += 1

    def rewrite_variable(self, begin, keyword):
        """The declaration that begins at `begin`, with a memory space at `keyword`."""
        space = self.tokens[keyword].text
        end = begin
        while self.tokens[end].text not in (";", ""):
            end = self.closing(end) + 1 if self.tokens[end].text in OPENING else end + 1
        words = [token.text for token in self.tokens[begin:end]]
        if space == "__device__" and "__shared__" in words:
            space = "__shared__"
        if space == "__device__" and "__constant__" in words:
            space = "__constant__"
        managed = "__managed__" in words
        space = "__device__" if managed else space
        external = "extern" in words
        declared = words[:next((n for n, word in enumerate(words) if word in ("[", "=", "{")), len(words))]
        after_star = declared[max((n for n, word in enumerate(declared) if word == "*"), default=-1) + 1:]
        constant = "const" in after_star or "constexpr" in declared
        kept = [i for i in range(begin, end) if self.tokens[i].text not in (*SPACES, "extern")]
        body = next((i for i in kept if self.tokens[i].text == "{" and any(
            self.tokens[i - back].text in ("struct", "class", "union") for back in (1, 2))), None)
        after = self.closing(body) if body else -1  # of a type that is defined here
        first = next((n for n, i in enumerate(kept) if i > after and self.tokens[i].text in ("[", "=", "{", ",")),
                     len(kept))
        # A comma inside a template's arguments ends no declarator.
        for n, i in enumerate(kept[:first]):
            if self.tokens[i].text == "<":
                close = self.end_of_template(i, end)
                first = next((m for m, k in enumerate(kept) if k > close and self.tokens[k].text in ("[", "=", "{", ",")),
                             len(kept))
                break
        name = first - 1
        stars = name
        while self.tokens[kept[stars - 1]].text in ("*", "&"):
            stars -= 1
        kind = [i for i in kept[:stars]]
        if not kind or not is_name(self.tokens[kept[name]].text):
            self.refuse(keyword, f"this declaration with {space} is not understood: write one variable a declaration")
        if space in ("__device__", "__constant__") and constant and (
                space == "__device__" or "constexpr" in words or self.tokens[kept[first]].text == "="
                if first < len(kept) else True):
            return "".join(self.tokens[i].before + self.tokens[i].text for i in kept), end  # a constant of the program
        dropped = {"__shared__": ("static", "inline"), "__constant__": ("static", "inline"),
                   "__device__": ("static", "inline")}[space]
        if space != "__device__" and "*" not in declared:
            dropped += ("const",)
        lead = "".join(self.tokens[i].before for i in range(begin, kept[stars]))
        kind = [self.tokens[i].text for i in kind if self.tokens[i].text not in dropped]
        declarators, last = [], kept[stars]
        for comma in [*self.commas(kept[stars], end), end]:
            declarators.append((last, comma))
            last = comma + 1
        if external:
            return lead + self.external(space, kind, declarators, keyword), end
        rest = list(without_attributes(kind))
        aligned, kind = "".join(alignments(kind)), " ".join(rest)
        result = lead
        for a, b in declarators:
            guard, declared = self.guard(), self.text(a, b)
            if space == "__shared__":
                result += (f"__attribute__((used)) static __constinit thread_local ::simt::Guard {guard};"
                           f"{aligned} static __constinit thread_local __attribute__((aligned(32))) {kind} {declared};")
            else:
                section = {"__constant__": "simt_constant", "__device__": "simt_device"}[space]
                static = "static " if "static" in words else ""
                result += (f'__attribute__((used, section("{section}"))) static ::simt::Guard {guard};'
                           f'{aligned} __attribute__((section("{section}"))) {static}{kind} {declared};')
                if managed:
                    name = next(self.tokens[i].text for i in range(a, b) if is_name(self.tokens[i].text))
                    result += f'static ::simt_cuda::Managed {guard}_managed(&{name}, sizeof {name}, "{name}");'
        return result[:-1], end

    def external(self, space, kind, declarators, keyword):
        """Dynamic shared memory, or a variable of another file."""
        if space != "__shared__":
            return "extern " + " ".join(kind) + " " + ",".join(self.text(a, b) for a, b in declarators)
        result, element = [], " ".join(without_attributes(kind))
        for a, b in declarators:
            names = [i for i in range(a, b) if is_name(self.tokens[i].text)]
            extents = next((i for i in range(a, b) if self.tokens[i].text == "["), None)
            if extents is None or not names or self.tokens[extents + 1].text != "]":
                self.refuse(keyword,
                            "extern __shared__ must be an array of unknown size, as in extern __shared__ T name[]")
            name, rest = self.tokens[names[0]].text, self.text(extents + 2, b)
            if self.depth == 0:
                if rest:
                    self.refuse(keyword, "this array has more than one dimension: declare it in the kernel")
                result.append(f"static ::simt_cuda::DynamicShared<{element}> {name}")
            else:
                pointer = f"(*const {name}){rest}" if rest else f"*const {name}"
                result.append(f"{element} {pointer} = ({element} (*){rest})::simt::dynamic_shared_memory()")
        return ";".join(result)

    # ---- Inline PTX ------------------------------------------------------------------------------------------------

    def rewrite_asm(self, i):
        """`i` is asm. Its line is that of all that it becomes."""
        opening = i + 1
        while self.tokens[opening].text in ("volatile", "__volatile__", "__volatile"):
            opening += 1
        if self.tokens[opening].text != "(":
            self.refuse(i, f"asm {self.tokens[opening].text} is not supported")
        close, sections = self.closing(opening), [[]]
        j, last = opening + 1, opening + 1
        cuts = []
        while j < close:
            text = self.tokens[j].text
            if text in OPENING:
                j = self.closing(j)
            elif text in (":", "::"):
                cuts.append((last, j))
                cuts += [(j, j)] * (len(text) - 1)
                last = j + 1
            j += 1
        cuts.append((last, close))
        try:
            strings = [ptx.c_string(token.text) for token in self.tokens[cuts[0][0]:cuts[0][1]]]
            sections = [self.asm_operands(*cut) for cut in cuts[1:3]] + [[], []]
            self.asms += 1
            code = ptx.translate(self.asms, "".join(strings), sections[0], sections[1], self.capability)
        except ptx.Unknown as unknown:
            self.refuse(i, f"inline PTX: {unknown}; docs/sim.md lists what is there")
        return code + "".join(token.before for token in self.tokens[i + 1:close + 1]), close + 1

    def asm_operands(self, begin, end):
        """[(constraint, expression)]"""
        operands, last = [], begin
        for comma in [*self.commas(begin, end), end] if begin < end else ():
            if self.tokens[last].text == "[":
                raise ptx.Unknown("operands with names are not simulated: use %0, %1")
            opening, constraint = last, ""
            while self.tokens[opening].text != "(":
                constraint += ptx.c_string(self.tokens[opening].text)
                opening += 1
            operands.append((constraint, " ".join(self.rewritten(opening + 1, self.closing(opening)).split())))
            last = comma + 1
        return operands

    # ---- All of it -------------------------------------------------------------------------------------------------

    def rewritten(self, begin, end):
        """The text of these tokens, rewritten. A launch's and a declaration's own parts are rewritten with them."""
        saved = self.depth
        result, marks = [], []  # marks: the token at which each piece begins
        start, i = begin, begin  # of the statement
        while i < end:
            token = self.tokens[i]
            text = token.text
            if text == "<<" and self.tokens[i + 1].text == "<":
                first, call, following = self.rewrite_launch(i)
                while marks and marks[-1] >= first:
                    marks.pop()
                    result.pop()
                marks.append(first)
                result.append(call)
                i = following
                continue
            if text in SPACES and not self.is_function(i):
                first = start if all(self.is_qualifier(k) for k in range(start, i)) else i
                if first == i > start and is_name(self.tokens[start].text) and self.tokens[start].text != "template":
                    first = start  # after a type: `int __device__ x`, `extern float __shared__ x[]`
                rewritten, following = self.rewrite_variable(first, i)
                while marks and marks[-1] >= first:
                    marks.pop()
                    result.pop()
                marks.append(first)
                result.append(rewritten)
                i = following
                continue
            if text in SPACES or text in DROPPED and self.tokens[i - 1].text != "(":
                marks.append(i)
                result.append(token.before)
                i += 1
                continue
            if text == "__cluster_dims__":
                registration, following = self.rewrite_cluster(start, i)
                result[marks.index(start)] = registration + result[marks.index(start)]
                i = following
                continue
            if text in ASM:
                marks.append(i)
                rewritten, following = self.rewrite_asm(i)
                result.append(token.before + rewritten)
                i = following
                continue
            if text in LAUNCHES and self.tokens[i + 1].text == "(":
                cuts = [i + 1, *self.commas(i + 2, self.closing(i + 1))]
                of = LAUNCHES[text]
                if len(cuts) > of + 1:
                    begin, past = cuts[of] + 1, cuts[of + 1]
                    first, last = self.typed_kernel(begin, past)
                    if (first, last) != (begin, past):
                        marks.append(i)
                        result.append(token.before + text + self.rewritten(i + 1, begin) + self.rewritten(first, last))
                        i = past
                        continue
            if text in ("(", "reinterpret_cast") and (address := self.kernels_address(i)):
                first, last, following = address
                marks.append(i)
                result.append(f"{token.before}::simt_cuda::address_of_kernel({self.rewritten(first, last)})")
                i = following
                continue
            if text in NAMED and self.tokens[i + 1].text == "(" and self.tokens[i - 1].text not in (".", "->"):
                close = self.closing(i + 1)
                commas = self.commas(i + 2, close)
                last = commas[0] if commas else close
                names = [t.text for t in self.tokens[i + 2:last] if t.text and is_name(t.text)]
                inner = self.rewritten(i + 2, close)
                if len(commas) + 1 == NAMED[text] and names:
                    inner += f', "{names[-1]}"'
                elif len(commas) + 2 == NAMED[text] and names and text in ("cudaMallocManaged", "cudaMallocHost"):
                    inner += f', 0, "{names[-1]}"'
                marks.append(i)
                result.append(token.before + text + self.tokens[i + 1].before + "(" + inner +
                              self.tokens[close].before + ")")
                i = close + 1
                continue
            marks.append(i)
            result.append(token.before + text)
            self.depth += self.is_body(i) if text == "{" else 0
            if text in (";", "{", "}", ":"):
                start = i + 1
            if text == "}" and self.opened.pop(i, None):
                self.depth -= 1
            i += 1
        self.depth = saved
        return "".join(result)

    def typed_kernel(self, first, end):
        """Of an argument that is a kernel, without a cast to `void*`: its parameters are needed."""
        words = [token.text for token in self.tokens[first:end]]
        cast = next((n for n in (3, 4, 5) if words[:1] == ["("] and words[n - 1:n] == [")"] and
                     sorted(words[1:n - 1]) in (["*", "void"], ["*", "const", "void"])), None)
        if cast:
            return first + cast, end
        if words[:2] in (["reinterpret_cast", "<"], ["static_cast", "<"]) and "(" in words:
            return first + words.index("(") + 1, end - 1
        return first, end

    def end_of_kernels_name(self, i):
        """Past the name of a kernel that stands at `i`, with template arguments; None where none does."""
        while is_name(self.tokens[i].text or ";") and self.tokens[i + 1].text == "::":
            i += 2
        if self.tokens[i].text not in self.kernels:
            return None
        if self.tokens[i + 1].text == "<":
            i = self.end_of_template(i + 1, len(self.tokens)) or i
        return None if self.tokens[i + 1].text in ("(", "<<", ".", "->", "[") else i + 1

    def kernels_address(self, i):
        """Of a cast of a kernel to `void*` at `i`: where its name begins, what follows the name, and the cast. Or None."""
        if self.tokens[i].text == "(":
            close, words = self.closing(i), [token.text for token in self.tokens[i + 1:i + 5]]
            if sorted(words[:close - i - 1]) not in (["*", "void"], ["*", "const", "void"]):
                return None
            inside, enclosed = close + 1, self.tokens[close + 1].text == "("
        else:
            words = [token.text for token in self.tokens[i + 1:i + 7]]
            if words[:4] == ["<", "void", "*", ">"]:
                inside, enclosed = i + 5, True
            elif words[:5] == ["<", "const", "void", "*", ">"]:
                inside, enclosed = i + 6, True
            else:
                return None
        first = inside + enclosed
        first += self.tokens[first].text == "&"
        end = self.end_of_kernels_name(first)
        if not end or enclosed and self.tokens[end].text != ")":
            return None
        return first, end, end + enclosed

    def is_qualifier(self, i):
        text = self.tokens[i].text
        return text in QUALIFIERS or text in ("(", ")") or text.isdigit() or text == "aligned"

    def is_body(self, i):
        """1 where the brace at `i` begins no namespace and no class; remembers where it ends."""
        j = i - 1
        while j >= 0 and self.tokens[j].text not in (";", "{", "}", ")"):
            if self.tokens[j].text in ("namespace", "struct", "class", "union", "enum") or self.tokens[j].text[:1] == '"':
                return 0
            j -= 1
        self.opened[self.closing(i)] = True
        return 1

    def run(self):
        self.depth, self.opened = 0, {}
        self.replace_built_ins()
        return self.rewritten(0, len(self.tokens))


def translate(text, own_file, capability=90):
    """C++ for the simulator, of what the preprocessor made of `own_file`. @param capability the GPU's, 10 major + minor"""
    return FrontEnd(tokens_of(text, own_file), capability).run()


def has_asm(text, own_file):
    """Whether the user's part has inline PTX: then common/cuda/ptx.hpp must come before it."""
    return "asm" in text and any(token.text in ASM for token in tokens_of(text, own_file))
