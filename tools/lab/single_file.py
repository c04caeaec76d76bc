"""`./lab single`: a stage as one file that includes nothing of the project. Headers are put in where they are first
included, the functions that they declare behind the kernel, and of all that only what the stage uses; small
replacements, in tools/lab/single, stand for the harness."""
import re

import machine
from machine import ROOT, Unusable
from stage_diff import STAGE, find

DESCRIPTION = ("Prints a stage as one file without the project's headers. Its first lines say how to compile it; the "
               "program checks the stage against sums in double precision, times it, and exits with 0 only if all is "
               "right.")
PARTS = ROOT / "tools/lab/single"
# What stands for the harness, instead of the project's files.
REPLACED = {"common/stage/stage.hpp": "stage.hpp", "common/stage/workspace.hpp": "workspace.hpp",
            "common/kernel/compiled_kernel.hpp": "compiled_kernel.hpp"}
DEFINED_IN = {"common/kernel/hopper.hpp": ["common/harness/device/gpu/tensor_map_gpu.cu",
                                           "common/stage/tensor_map.cpp"]}
LEFT_OUT = re.compile(r"common/simt/|common/harness/|common/stage/(counters|error_model)\.hpp")
# Members that only the harness calls.
HARNESS_MEMBERS = ("predict", "predict_form", "error_model")
OPERATOR = "operator"

TOKEN = re.compile(r'''(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R"(\w*)\(.*?\)\3")|(?P<string>"(?:\\.|[^"\\\n])*")'''
                   r'''|(?P<char>(?<!\w)'(?:\\.|[^'\\\n])+')|(?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|[^\n])*)'''
                   r'''|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<semicolon>;)|(?P<other>[\w']+|.|\n)''', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
SHAPES = {  # n, c, h, w, k, r, s, padding
    "signals": ["1, 1, 1, 1, 1, 1, 3, Padding::zero", "2, 1, 1, 601, 1, 1, 11, Padding::reflect",
                "3, 1, 1, 100003, 1, 1, 31, Padding::replicate"],
    "images": ["1, 1, 5, 7, 1, 3, 3, Padding::zero", "2, 1, 71, 133, 1, 5, 5, Padding::reflect",
               "1, 1, 1080, 1920, 1, 7, 7, Padding::zero"],
    "depthwise": ["2, 3, 20, 37, 3, 7, 7, Padding::zero", "1, 5, 29, 31, 5, 5, 5, Padding::reflect",
                  "1, 64, 112, 112, 64, 3, 3, Padding::zero"],
    "lowering": ["2, 3, 17, 19, 5, 3, 3, Padding::zero", "1, 7, 13, 11, 9, 5, 3, Padding::reflect",
                 "1, 64, 56, 56, 64, 3, 3, Padding::zero"],
    "winograd": ["2, 3, 17, 19, 5, 3, 3, Padding::zero", "1, 70, 13, 11, 40, 3, 3, Padding::reflect",
                 "1, 64, 56, 56, 64, 3, 3, Padding::zero"]}
SHAPES |= {"cpu": SHAPES["lowering"], "hopper": [
    SHAPES["winograd"][0], "1, 50, 13, 11, 40, 3, 3, Padding::zero", SHAPES["winograd"][2]]}


def add_arguments(parser):
    parser.add_argument("stage", metavar="STAGE", help=STAGE)


def tokens(text):
    for match in TOKEN.finditer(text):
        yield match.lastgroup if match.lastgroup != "3" else "raw", match


def code_of(text):
    """Without comments, strings and directives' hash: what its names are looked for in."""
    return "".join(" " if kind in ("comment", "raw", "string", "char") else match[0] for kind, match in tokens(text))


class Unit:
    """A declaration, a definition or a macro, with the comment above it."""

    def __init__(self, text, path, scope, behind):
        self.text, self.path, self.scope, self.behind = text, path, scope, behind
        self.names = names_of(text)
        self.kept = False
        self.after_blank = True  # a blank line stands before it

    def words(self, names):
        """Those of its code. Of a macro that makes names by ##: all that begin so."""
        code = code_of(self.text)
        made = tuple(re.findall(r"(\w+)##", code))
        return set(WORD.findall(code)) | {name for name in names if made and name.startswith(made)}


def names_of(text):
    code = code_of(text).strip()
    if code.startswith("#"):
        macros = re.findall(r"^\s*#\s*(?:define|undef)\s+(\w+)", code, re.M)
        heads = [line for line in code.split("\n") if re.match(r"\w", line)]
        return {*macros, *(name for line in heads for name in re.findall(r"(\w+)(?=\(| =|;|$| \{)", line))}
    if re.match(r"[A-Z][A-Z0-9_]*\(", code):
        return {"Wgmma", "WgmmaOfRegisters"} if code.startswith("CONVLADDER_WGMMA") else set()
    code = without_template(code)
    if match := re.match(r"(?:alignas\([^)]*\)\s*|__align__\([^)]*\)\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+"
                         r"(?:alignas\([^)]*\)\s+|__align__\(\w+\)\s+)?(\w+)\s*(?:$|[<:{;]|final)", code):
        inside = re.findall(r"\bk[A-Z]\w*|\b[a-z]\w*(?=\s*[,}=])", code) if code.startswith("enum") else []
        return {match[1], *inside}
    if match := re.match(r"(?:using|namespace)\s+(\w+)\s*=", code):
        return {match[1]}
    if code.startswith("static_assert"):
        return set()
    if match := re.match(r"[^=;{]*?\boperator\s*[^\w\s(]+\s*\(([^)]*)\)", code):  # named by the types that it takes
        return {OPERATOR, *re.findall(r"\b[A-Z]\w*", match[1])}
    head = re.sub(r"__(?:launch_bounds|align)__\((?:[^()]|\([^()]*\))*\)|__attribute__\(\(.*?\)\)|\[\[.*?\]\]|"
                  r"alignas\(.*?\)|^decltype\([^()]*\)", " ", code, flags=re.S)
    head = re.split(r"\bnoexcept\b", head)[0]
    if match := re.match(r"[^=({;]*?(~?\w+)(?:<[^=({;]*>)?::~?\w+\s*\(", head):  # a member, defined outside
        return {match[1]}
    names = set()
    if match := re.match(r"[^=({;]*?(\w+)\s*(?:<[^(){};=]*>\s*)?\(", head, re.S):
        names.add(match[1])
    if match := re.match(r"[^=({;]*?(\w+)\s*(?:<[^(){};]*>\s*)?(?:\[[^=]*\]\s*)?(?:=|;|\{)", head, re.S):
        names.add(match[1])
        for other in re.findall(r"[,;]\s*(\w+)\s*=", head):  # const int a = 1, b = 2;
            names.add(other)
    return names


def without_template(code):
    while match := re.match(r"\s*template\s*<", code):
        angles, parentheses, i = 1, 0, match.end()
        while angles:
            parentheses += {"(": 1, ")": -1}.get(code[i], 0)
            angles += {"<": 1, ">": -1}.get(code[i], 0) if parentheses == 0 else 0
            i += 1
        code = code[i:].lstrip()
    return code


def known(condition, on_host):
    """Whether a preprocessor's condition holds; None where only the compiler knows."""
    condition = condition.strip().replace(" && !defined(SIMT_PLAIN_CUDA)", "")
    if condition.startswith("__has_include"):  # of a header that can also be copied alone
        return True
    if condition in ("defined(__CUDACC_RTC__)", "defined(__CUDACC__)"):
        return condition == "defined(__CUDACC__)" and not on_host
    if condition in ("!defined(__CUDACC_RTC__)", "!defined(__CUDACC__)"):
        return condition == "!defined(__CUDACC_RTC__)" or on_host
    return None


def resolve(text, on_host):
    """Without the branches that are for the simulator or for NVRTC."""
    lines, stack = [], []  # of [known, taken]
    logical = re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n", text)
    for line in logical:
        match = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if match:
            kind = match[1]
            if kind.startswith("if"):
                value = known(match[2], on_host) if kind == "if" else None
                stack.append([value is not None, value is not False])
                if value is not None:
                    continue
            elif stack[-1][0]:
                if kind == "else":
                    stack[-1][1] = not stack[-1][1]
                else:
                    assert kind == "endif", line
                    stack.pop()
                continue
            elif kind == "endif":
                stack.pop()
                if all(taken for _, taken in stack):
                    lines.append(line)
                continue
        if all(taken for _, taken in stack):
            lines.append(line)
    return "".join(lines)


def statement_end(text, at):
    """Behind the statement that begins there, a block or one with a semicolon."""
    depth, block = 0, text[at:].lstrip().startswith("{")
    for kind, match in tokens(text[at:]):
        depth += (kind == "open") - (kind == "close")
        if depth == 0 and (kind == "semicolon" or block and match[0] == "}"):
            return at + match.end()
    raise ValueError("a statement without end")


def dedented(statement):
    """As it stands where the `if` around it is gone."""
    statement = statement.strip()
    if statement.startswith("{"):
        statement = statement[1:-1].strip()
    return statement.replace("\n  ", "\n")


def without_compiling(text):
    """Without kernels that are compiled when the program runs: those that are compiled with it are what runs."""
    compiled = "if (kernel_.compiled())"
    while (at := text.find(compiled)) >= 0:
        end = statement_end(text, at + len(compiled))
        if rest := re.match(r"\s*else\b", text[end:]):
            other = end + rest.end()
            if text[other:].lstrip().startswith("if"):
                text = text[:at] + text[other:].lstrip()
            else:
                end = statement_end(text, other)
                text = text[:at] + dedented(text[other:end]) + text[end:]
        else:
            text = text[:at].rstrip(" ") + text[end:].lstrip("\n")
    text = re.sub(r"\n    if \(is_built_in\([^\n]*\) return;\n(?:.*\n)*?(?=  \}\n)", "\n", text)
    calls = re.compile(r"\n(?: *if \((?!is_built_in)[^\n]*\)\n)?[ \t]*(?:kernel_\.compile|compile_point)\(")
    while match := calls.search(text):
        text = text[:match.start()] + text[statement_end(text, match.end() - 1):]
    return re.sub(r"\n+  CompiledKernel kernel_;", "", text)


def without_members(text):
    """A class without the functions that only the harness calls."""
    names = "|".join(HARNESS_MEMBERS)
    pattern = re.compile(rf"\n(?:  //[^\n]*\n)*(?:  template <[^\n]*\n)?  (?:\w[\w:<>]* )+(?:{names})\(")
    while match := pattern.search(text):
        depth = 0
        for kind, token in tokens(text[match.end() - 1:]):
            depth += (kind == "open") - (kind == "close")
            if depth == 0 and (kind == "semicolon" or token[0] == "}"):
                rest = text[match.end() - 1 + token.end():]
                text = text[:match.start()] + re.sub(r"^\n(?=\n|\};)", "", rest)
                break
    return text


class Reader:
    def __init__(self, on_host):
        self.on_host = on_host
        self.units, self.seen, self.systems, self.behind = [], set(), set(), []
        self.order = []  # of files, each behind those that it includes

    def add_file(self, path, behind=False):
        """@param behind of functions that headers declare: after the kernel"""
        if path in self.seen or LEFT_OUT.search(path) and not (behind and path in self.behind):
            return
        self.seen.add(path)
        file = ROOT / path
        if self.on_host and path == "common/kernel/kernel.hpp":
            self.add_file("common/stage/problem.hpp")
            self.add_file("common/stage/stage.hpp")
            file = PARTS / "host_kernel.hpp"
        elif path in REPLACED:
            if path.endswith("stage/stage.hpp"):
                self.add_file("common/stage/problem.hpp")
            elif path.endswith("workspace.hpp"):
                self.add_file("common/kernel/kernel.hpp")
            file = PARTS / REPLACED[path]
        text = resolve(file.read_text(), self.on_host)
        if path.startswith("chapters/"):
            text = without_members(without_compiling(text))
        self.split(text, path, behind)
        self.order.append(path)
        if path.endswith(".hpp") and path.startswith("common/") and path not in REPLACED:
            twin = path[:-3] + "cpp"
            self.behind += [twin] * (ROOT / twin).exists() + DEFINED_IN.get(path, [])

    def add_behind(self):
        for path in self.behind:
            self.add_file(path, behind=True)

    def split(self, text, path, behind):
        scope, depth = [], 0
        last = 0  # where the unit that is being read begins, with its comments

        def finish(end):
            nonlocal last
            unit = text[last:end]
            if unit.strip():
                self.units.append(Unit(tidy(unit.strip("\n")), path, tuple(scope), behind))
                self.units[-1].after_blank = bool(re.match(r"[ \t]*\n[ \t]*\n", unit))
            last = end

        items = list(tokens(text))
        pending_code = False
        i = 0
        while i < len(items):
            kind, match = items[i]
            here = match[0]
            if kind == "directive" and depth == 0 and not pending_code:
                words = here.split()
                name = here.strip().lstrip("#").split()[0]
                if name in ("if", "ifdef", "ifndef"):
                    # To its #endif, as one unit.
                    nested = 1
                    j = i + 1
                    while nested:
                        if items[j][0] == "directive":
                            word = items[j][1][0].strip().lstrip("#").split()[0]
                            nested += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
                        j += 1
                    block = text[match.start():items[j - 1][1].end()]
                    if re.search(r"#include <", block):
                        self.systems.add(block)
                        last = items[j - 1][1].end()
                    else:
                        finish(items[j - 1][1].end())
                    i = j
                    continue
                if name == "pragma":
                    last = match.end()
                elif name == "include":
                    if words[-1].startswith("<"):
                        self.systems.add(words[-1])
                    else:
                        self.add_file(words[-1].strip('"'), behind)
                    last = match.end()
                else:
                    finish(match.end())
                i += 1
                continue
            if depth == 0 and not pending_code and kind == "other" and here == "namespace":
                head = re.match(r"namespace\s*(\w*)\s*\{", text[match.start():])
                if head:
                    self.note(text[last:match.start()], path, behind, scope)
                    scope.append(head[1])
                    end = match.start() + head.end()
                    last = end
                    while i < len(items) and items[i][1].start() < end:
                        i += 1
                    continue
            if depth == 0 and kind == "close" and here == "}" and not pending_code and scope:
                self.note(text[last:match.start()], path, behind, scope)
                scope.pop()
                line_end = text.find("\n", match.end())
                last = line_end if line_end >= 0 else len(text)
                while i < len(items) and items[i][1].start() < last:
                    i += 1
                continue
            if kind == "comment":
                # One that a blank line follows belongs to no declaration.
                if depth == 0 and not pending_code and text[match.end():match.end() + 2] == "\n\n":
                    self.note(text[last:match.end()], path, behind, scope)
                    last = match.end()
                i += 1
                continue
            if kind in ("open", "close"):
                depth += 1 if kind == "open" else -1
                pending_code = True
            elif here.strip() and kind != "directive":
                pending_code = True
            ended = depth == 0 and pending_code and (
                kind == "semicolon" or
                (kind == "close" and here == "}" and not re.match(r"\s*(;|=|,|\.|\(|\)|\{)", text[match.end():])) or
                (kind == "close" and here == ")" and re.match(r"\s*\n", text[match.end():]) and
                 re.match(r"\s*[A-Z][A-Z0-9_]*\(", code_of(text[last:match.end()]))))
            if ended:
                line_end = text.find("\n", match.end())
                trailing = re.match(r"[ \t]*//[^\n]*", text[match.end():])
                end = match.end() + (trailing.end() if trailing else 0)
                finish(end)
                pending_code = False
                while i < len(items) and items[i][1].start() < end:
                    i += 1
                continue
            i += 1

    def note(self, text, path, behind, scope):
        """A comment that stands by itself: kept in the chapters' files."""
        text = tidy(text.strip("\n"))
        if text.strip() and path.startswith("chapters/"):
            unit = Unit(text, path, tuple(scope), behind)
            unit.names = set()
            unit.kept = True
            self.units.append(unit)


def tidy(text):
    lines = [line for line in text.split("\n")
             if not re.match(r"\s*(/// @(file|cond|endcond)|// clang-format o)", line)]
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^(\s*)///", r"\1//", "\n".join(lines), flags=re.M)
                  .replace("///< ", "// "))


def rename_clashes(units):
    """A name of one .cpp file's own that another file has, too, gets that file's name before it."""
    owners = {}
    for unit in units:
        for name in unit.names:
            owners.setdefault(name, set()).add(unit.path)
    for path in {unit.path for unit in units if unit.behind}:
        own = {name for unit in units if unit.path == path and "" in unit.scope for name in unit.names
               if len(owners[name]) > 1}
        prefix = path.rsplit("/", 1)[1].split(".")[0]
        for unit in units:
            if unit.path == path:
                for name in own:
                    unit.text = re.sub(rf"(?<![\w:.]){name}\b", f"{prefix}_{name}", unit.text)
                    if name in unit.names:
                        unit.names = unit.names - {name} | {f"{prefix}_{name}"}


def keep_used(units, roots):
    by_name = {}
    for unit in units:
        for name in unit.names:
            by_name.setdefault(name, []).append(unit)
    wanted, done = set(roots), set()
    operators = [unit for unit in units if OPERATOR in unit.names]
    for unit in units:
        if unit.path.startswith("chapters/") and unit.text.lstrip().startswith("static_assert"):
            unit.kept = True
            wanted |= unit.words(by_name)
    while wanted:
        name = wanted.pop()
        done.add(name)
        for unit in by_name.get(name, []):
            if not unit.kept and unit not in operators:
                unit.kept = True
                wanted |= unit.words(by_name) - done
        for unit in operators:
            if not unit.kept and unit.names & done:
                unit.kept = True
                wanted |= unit.words(by_name) - done


def written(units):
    """Text, with the namespaces opened and closed where they change."""
    text, open_scope, file = [], (), None

    def move(scope):
        nonlocal open_scope
        common = 0
        while common < min(len(scope), len(open_scope)) and scope[common] == open_scope[common]:
            common += 1
        if open_scope[common:]:
            text.append("")
        for name in reversed(open_scope[common:]):
            text.append("}  // namespace" + (f" {name}" if name else ""))
        if open_scope[common:] and scope[common:]:
            text.append("")
        for name in scope[common:]:
            text.append(f"namespace {name} {{" if name else "namespace {")
        open_scope = scope

    for unit in units:
        if unit.path != file:
            move(())
            file = unit.path
            origin = f"tools/lab/single/{REPLACED[file]}" if file in REPLACED else file
            text += ["", f"// ---- {origin} ".ljust(120, "-")]
        move(unit.scope)
        if unit.after_blank or text[-1].startswith(("//", "namespace")):
            text.append("")
        text.append(unit.text)
    move(())
    return "\n".join(text).strip("\n") + "\n"


def main_of(manifest, tunable):
    track = manifest["track"]
    elements, layout = manifest["tensors"]["input"].split()
    if manifest["dtype"] == "fp32":
        bound = next(entry["fp32_error"] for entry in machine.json_of(machine.TRACKS) if entry["name"] == track)
        bound = {35: 1e-5, 36: 3e-7, 37: 1e-5}.get(manifest["number"], bound)
    else:
        bound = {"fp16": 4e-3, "int8": 2.5e-2}[manifest["dtype"]]
    shapes = SHAPES[track]
    if "step" in manifest:
        sizes = dict(pair.split("=") for pair in manifest["shape"].split(","))
        shapes = [", ".join(sizes.get(size, "1") for size in "nchwkrs") + ", Padding::zero"]
    shapes = ", ".join(f"shape({one})" for one in shapes)
    use = ""
    if tunable:
        use = """auto& tunable = dynamic_cast<convladder::TunableStage&>(*stage);
  if (verdict.accepted()) {
    const auto configuration = tunable.decided(x, limits, tunable.default_configuration(x, limits));
    verdict = tunable.check_configuration(x, limits, configuration);
    tunable.use(configuration);
  }"""
    change = "for (ConvProblem& x : shapes) x.groups = x.c;" if track == "depthwise" else ""
    values = {"ELEMENTS": {"fp32": "floats", "fp16": "halves", "int8": "bytes"}[elements],
              "CHANNELS_LAST": "true" if layout == "NHWC" else "false", "BOUND": f"{bound:g}",
              "SHAPES": "\n      " + shapes.replace("), ", "),\n      "), "USE_CONFIGURATION": use,
              "CHANGE_SHAPES": change}
    text = (PARTS / "main.cpp").read_text()
    return re.sub(r"\n  (USE_CONFIGURATION|CHANGE_SHAPES)\b",
                  lambda m: f"\n  {values[m[1]]}" if values[m[1]] else "",
                  re.sub(r"\b(ELEMENTS|CHANNELS_LAST|BOUND|SHAPES)\b", lambda m: values[m[1]], text))


def compile_command(manifest):
    name = manifest["name"].replace("-", "_")
    if machine.tracks()[manifest["track"]]:
        return f"g++ -std=c++20 -O3 -fopenmp {name}.cpp -o {name}"
    architecture = "-arch=native"
    if manifest["requires"].endswith("a"):
        code = manifest["requires"][3:]
        architecture = f"-gencode arch=compute_{code},code=sm_{code}"
    return f"nvcc -std=c++20 -O3 {architecture} {name}.cu -o {name}"


def single(folder):
    """The text."""
    manifest = machine.json_of(folder / "stage.json")
    on_host = bool(machine.tracks()[manifest["track"]])
    kernels = [path for path in folder.glob("*.cpp" if on_host else "*.cu")
               if not re.match(r"exercise|test\.cpp", path.name)]
    kernel = kernels[0].relative_to(ROOT).as_posix()
    reader = Reader(on_host)
    reader.add_file("common/stage/stage.hpp")
    reader.add_file(kernel)
    reader.add_behind()
    tunable = "common/stage/tunable.hpp" in reader.seen
    main = main_of(manifest, tunable)
    main = resolve(main, on_host)
    device = []
    if not on_host:
        device = Reader(on_host)
        device.split(resolve((PARTS / "device.cpp").read_text(), on_host), "tools/lab/single/device.cpp", True)
        reader.systems |= device.systems
        device = device.units
    units = sorted(reader.units, key=lambda unit: (unit.path.startswith("chapters/"), reader.order.index(unit.path)))
    behind = [unit for unit in units if unit.behind]
    front = [unit for unit in units if not unit.behind]
    # The device's functions first: tensor maps use its errors.
    units = front + device + behind
    rename_clashes(units)
    stage = [unit for unit in units if unit.path == kernel and unit.text.startswith("CONVLADDER_STAGE(")]
    stage[0].kept = True
    roots = set(WORD.findall(code_of(main))) | stage[0].words(()) | {"CONVLADDER_STAGE", "Stage", "Tensors"}
    if on_host:
        roots |= {"__host__", "__device__", "__forceinline__"}
    keep_used(units, roots)
    kept = [unit for unit in units if unit.kept]
    # A chapter's file whose code is not needed leaves no notes behind.
    files = {unit.path for unit in kept if unit.names or unit in stage}
    kept = [unit for unit in kept if unit.path in files]
    front = [unit for unit in kept if not unit.behind]
    chapter = next(i for i, unit in enumerate(front) if unit.path.startswith("chapters/"))
    systems, main_systems = set(reader.systems), re.findall(r"^#include (<.*>)\n", main, re.M)
    main = re.sub(r"^#include <.*>\n", "", main, flags=re.M).strip("\n") + "\n"
    systems |= set(main_systems)
    includes = sorted((s for s in systems if s.startswith("<")), key=lambda s: (not s.endswith(".h>"), s))
    blocks = sorted(s.strip() for s in systems if not s.startswith("<"))
    head = [f"// {folder.name}: {manifest['title']}.", "//", f"// {manifest['idea']}", "//", "//     " +
            compile_command(manifest), "//",
            f"// Runs on {'the host' if on_host else 'GPUs of ' + manifest['requires']}"
            f"{'' if on_host or manifest['requires'].endswith('a') else ' and later'}. Prints the error and the time "
            "for some shapes; the exit status is 0 only if all is right.",
            f"// Made from ConvLadder {version()} by ./lab single {folder.name.split('-')[0]}. Source: "
            f"{manifest['source']}.", "// MIT License, Copyright (c) 2026 the ConvLadder developers", ""]
    sections = [("1. Helpers", written(front[:chapter])), ("2. The stage", written(front[chapter:])),
                ("3. Functions that the helpers declare",
                 written([unit for unit in kept if unit.behind])), ("4. The check", main)]
    parts = ["\n".join(wrapped(head)), "\n".join([f"#include {name}" for name in includes] + blocks), ""]
    for title, text in sections:
        parts += ["/" * 120 + f"\n// {title}\n" + "/" * 120 + "\n", text]
    return "\n".join(parts)


def wrapped(lines):
    result = []
    for line in lines:
        while len(line) > 120 and not line.startswith("//     "):
            cut = line.rindex(" ", 0, 121)
            result.append(line[:cut])
            line = "// " + line[cut + 1:]
        result.append(line)
    return result


def version():
    return re.search(r"^project\(.*\bVERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def run(options):
    folder = find(options.stage, "single")
    if machine.json_of(folder / "stage.json")["track"] == "several":
        raise Unusable(f"single: {folder.name} talks to other GPUs through the project's communicator: one file cannot "
                       "hold it; take 09, whose kernel it launches")
    text = single(folder)
    if '#include "' in text:
        raise Unusable(f"single: {folder.name} compiles its kernel from the project's files when it runs: one file "
                       "cannot hold it; take the chapter's stage")
    print(text, end="")
    return 0
