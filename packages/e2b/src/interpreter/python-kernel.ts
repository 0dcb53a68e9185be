/** Keeps what was defined, shows the last expression in every form it has, and tells of errors with where they were. */
export const pythonKernel = String.raw`
import ast, asyncio, base64, builtins, inspect, io, json, linecache, os, signal, sys, traceback, types

ask = os.fdopen(int(os.environ.pop("WARREN_ASK")), "r", encoding="ascii")
say_file = os.fdopen(int(os.environ.pop("WARREN_SAY")), "w", encoding="ascii")
for fd in (ask.fileno(), say_file.fileno()):
    os.set_inheritable(fd, False)
MARK = b"\0warren-end\0"
FORMS = ("html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript")
MIMES = {
    "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
    "application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript",
    "text/plain": "text",
}


def say(message):
    say_file.write(json.dumps(message, default=str) + "\n")
    say_file.flush()


def plain(text):
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def encoded(value):
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value


def forms_of(value):
    forms = {}
    bundle = getattr(value, "_repr_mimebundle_", None)
    if callable(bundle) and not isinstance(value, type):
        made = bundle()
        for mime, content in (made[0] if isinstance(made, tuple) else made or {}).items():
            forms[MIMES.get(mime, mime)] = encoded(content)
    for form in FORMS:
        method = getattr(value, "_repr_%s_" % form, None)
        if callable(method) and not isinstance(value, type) and form not in forms:
            try:
                made = method()
            except Exception:
                continue
            if made is not None:
                forms[form] = encoded(made[0] if isinstance(made, tuple) else made)
    if type(value).__name__ == "DataFrame" and hasattr(value, "to_dict"):
        forms["data"] = json.loads(json.dumps(value.to_dict(orient="list"), default=str))
    forms.setdefault("text", plain(repr(value)))
    return forms


def show(value, is_main=False):
    say({"type": "result", "is_main_result": is_main, **forms_of(value)})


def display(*values, **_):
    for value in values:
        show(value)


class Shown:
    """What IPython.display has, where there is no IPython."""

    form = "html"

    def __init__(self, data=None, filename=None, **_):
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data

    def _repr_mimebundle_(self, **_):
        mime = next(mime for mime, form in MIMES.items() if form == self.form)
        return {mime: self.data, "text/plain": repr(self)}

    def __repr__(self):
        return "<%s object>" % type(self).__name__


def offer_display():
    try:
        import IPython.display as module
        module.display = display
    except ImportError:
        package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        kinds = {"HTML": "html", "Markdown": "markdown", "SVG": "svg", "Image": "png", "Latex": "latex", "JSON": "json"}
        for name, form in kinds.items():
            setattr(module, name, type(name, (Shown,), {"form": form}))
        module.display = package.display = display
        package.display = module
        sys.modules.update({"IPython": package, "IPython.display": module})


def show_figures():
    plots = sys.modules.get("matplotlib.pyplot")
    for number in plots.get_fignums() if plots else []:
        figure, file = plots.figure(number), io.BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight")
        say({"type": "result", "is_main_result": False, "png": encoded(file.getvalue()), "text": repr(figure)})
        plots.close(figure)


space = {"__name__": "__main__", "__builtins__": builtins, "display": display}
main = types.ModuleType("__main__")
main.__dict__.update(space)
space = main.__dict__
sys.modules["__main__"] = main
sys.path.insert(0, "")
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
count = 0


def run(code):
    global count
    count += 1
    name = "<cell %d>" % count
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    evaluate(compile(tree, name, "exec", flags))
    if last is not None and not code.rstrip().endswith(";"):
        value = evaluate(compile(ast.Expression(last.value), name, "eval", flags))
        if value is not None:
            space["_"] = value
            show(value, True)
    elif last is not None:
        evaluate(compile(ast.Expression(last.value), name, "eval", flags))
    show_figures()


def evaluate(code):
    made = eval(code, space)
    return loop.run_until_complete(made) if inspect.iscoroutine(made) and code.co_flags & inspect.CO_COROUTINE else made


def failed(failure):
    lines = traceback.format_exception(type(failure), failure, failure.__traceback__)
    ours = [line for line in lines if __file__ not in line]
    say({"type": "error", "name": type(failure).__name__, "value": str(failure), "traceback": "".join(ours)})


def handle(asked):
    before = dict(os.environ)
    os.environ.update(asked["env"])
    try:
        run(asked["code"])
    except SystemExit:
        pass
    except BaseException as failure:
        failed(failure)
    finally:
        if asked["env"]:
            os.environ.clear()
            os.environ.update(before)


offer_display()
# Line by line, as it is printed.
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, errors="replace")
while True:
    # What comes between two cells is for nobody.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = ask.readline()
    if not line:
        break
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handle(json.loads(line))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os.write(1, MARK)
    os.write(2, MARK)
    say({"type": "end"})
`
