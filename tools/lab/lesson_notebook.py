"""`./lab notebook`: a lesson as a notebook, with cells that run its stage, count and draw."""
import base64
import importlib.util
import os
import pathlib
import re

import notebook_cells
from machine import BUILD, ROOT, Unusable, json_of, tracks
from stage_diff import STAGE, find

DESCRIPTION = ("Makes a notebook of a stage's lesson: its text, and cells that run the stage, count what it does, turn "
               "a knob and draw, in the simulator or on a GPU. Prints the file that it wrote.")
# What the lessons have in comments, and nobody sees.
COMMENT = re.compile(r"<!--.*?-->", re.S)
TRACE = re.compile(r"^<!-- (trace|slider)\b.*?-->$", re.M)
ON_SITE = {"trace": "(Here the site that `./lab docs` makes has a player of what one block does.)",
           "slider": "(Here the site that `./lab docs` makes has sliders.)"}
FENCE = re.compile(r"^( *)(`{3,})([\w+]*)$")
LINK = re.compile(r"(?P<code>(?P<ticks>`+).*?(?P=ticks))"
                  r"|(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)", re.S)
KERNEL = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---
"""
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}


def add_arguments(parser):
    parser.add_argument("stage", metavar="STAGE", help=STAGE)
    parser.add_argument("file", metavar="FILE", nargs="?", type=pathlib.Path,
                        help="where to write it, by default build/notebooks/NN-name.ipynb; its extension decides the "
                             "form: .ipynb, .py (a script with cells) or .md")


def embedded(path):
    """A picture in the text of the notebook itself: whoever takes the file elsewhere has it. Drawings become those of
    the light theme, on white, since they cannot ask which theme is Jupyter's."""
    data = path.read_bytes()
    if path.suffix == ".svg":
        text = re.sub(r"\(prefers-color-scheme: *(light|dark)\)",
                      lambda match: "all" if match[1] == "light" else "not all", data.decode())
        data = text.replace("<style>", "<style>svg { background: #fff; }", 1).encode()
    return f"data:{PICTURES[path.suffix]};base64,{base64.b64encode(data).decode()}"


def with_links(text, chapter, folder):
    """Running text whose links lead from the notebook's folder to where they led from the chapter's."""
    def link(match):
        target = match["target"]
        if match["code"] or re.match(r"[a-z]+:", target):
            return match[0]
        name, _, fragment = target.partition("#")
        path = pathlib.Path(os.path.normpath(chapter / name)) if name else chapter / "README.md"
        if match["picture"]:
            return f"![{match['text']}]({embedded(path)})"
        relative = os.path.relpath(path, folder)
        return f"[{match['text']}]({relative}{'#' + fragment if fragment else ''})"

    return LINK.sub(link, text)


def markdown(lesson, chapter, folder):
    """The lesson as Jupyter shows it: without comments, formulas between dollars, pictures and links that work."""
    text = TRACE.sub(lambda match: ON_SITE[match[1]], lesson)
    lines, paragraph, fence = [], [], None

    def flush():
        text = COMMENT.sub("", "\n".join(paragraph))
        lines.extend(with_links(text, chapter, folder).split("\n") if paragraph else [])
        paragraph.clear()

    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence and mark and mark[2] == fence[2] and not mark[3]:
            lines.append(f"{fence[1]}$$" if fence[3] == "math" else line)
            fence = None
        elif fence:
            lines.append(line)
        elif mark:
            flush()
            fence = mark
            lines.append(f"{mark[1]}$$" if mark[3] == "math" else line)
        else:
            paragraph.append(line)
    flush()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def stage_of(folder):
    return json_of(folder / "stage.json")


def parts(chapter, folder):
    """[(kind, text)]: the cells of a chapter's notebook, which will lie in a folder."""
    stage = stage_of(chapter)
    before = stage["previous"] and stage_of(find(str(stage["previous"]), "notebook"))
    if before and before["track"] != stage["track"]:
        before = None
    code = notebook_cells.cells(stage, before, tracks()[stage["track"]])
    text = markdown((chapter / "README.md").read_text(), chapter, folder)
    found = []
    for place, section in enumerate(re.split(r"^(?=## )", text, flags=re.M)):
        found.append(("markdown", section.strip()))
        title = "begin" if place == 0 else section.split("\n", 1)[0][3:]
        for heading, cell in code.pop(title, []):
            if heading:
                found.append(("markdown", f"### {heading}"))
            found.append(("code" if heading else "helpers", cell.strip()))
    if code:
        raise Unusable(f"notebook: the lesson {chapter.name} has no section '{next(iter(code))}'")
    return found


def percent(cells):
    """Cells as a script with cells, from which jupytext makes any form."""
    header = {"markdown": "# %% [markdown]", "code": "# %%", "helpers": '# %% jupyter={"source_hidden": true}'}
    blocks = [header[kind] + "\n" + ("\n".join(f"# {line}".rstrip() for line in text.split("\n"))
                                     if kind == "markdown" else text) for kind, text in cells]
    return KERNEL + "\n" + "\n\n".join(blocks) + "\n"


def run(options):
    chapter = find(options.stage, "notebook")
    if chapter.parent.name != "chapters":
        raise Unusable(f"notebook: {chapter.name} is a step: the notebooks are those of the chapters")
    file = options.file or BUILD / "notebooks" / f"{chapter.name}.ipynb"
    if file.suffix not in (".ipynb", ".py", ".md"):
        raise Unusable(f"notebook: {file}: name a file that ends with .ipynb, .py or .md")
    if not importlib.util.find_spec("jupytext"):
        raise Unusable("notebook: needs jupytext: python3 -m pip install '.[notebook]' in an environment of yours "
                       "(docs/notebooks.md)")
    import jupytext
    if file.exists():
        raise Unusable(f"notebook: {file} is there, perhaps with work of yours: remove it, or name another file")
    notebook = jupytext.reads(percent(parts(chapter, file.parent.resolve())), fmt="py:percent")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(notebook, file)
    except OSError as problem:
        raise Unusable(f"notebook: cannot write {file}: {problem.strerror}") from None
    print(file)
    return 0
